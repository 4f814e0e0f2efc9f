"""Messages to an agent in its session: the fact, the count, what to stop doing, two things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.failures import Kind
from rung.core.text.quoted_data import on_one_line
from rung.detectors.loop_messages import MAX_FACT_CHARS, loop_message, quote_fact

if TYPE_CHECKING:
    from rung.detectors.finding import Finding

loop = loop_message


def denied(fact: str, number: int) -> str:
    """Return why a tool call is denied after the last rung."""
    again = "" if number == 1 else f" This is denial {number}; describe the next steps, do not run them."
    return (
        f"Denied by rung: the work is stuck in a loop and ends here.{again} Write your final answer: what is finished, "
        f"what is not, what a person should do next. Fact:\n{quote_fact(fact)}"
    )


def stopped(fact: str) -> str:
    """Return the notice for the user when an agent keeps calling tools after the last rung."""
    return f"rung stopped the agent; the outcome is partial: {_notice(fact)}"


def unfinished(finding: Finding, blocks: int) -> str:
    """Return why the agent may not finish yet; each message of a session is different."""
    fact = quote_fact(finding.text)
    if finding.kind is Kind.GAVE_UP:
        ask = "Continue with what can still be done, in another way; if one part cannot be done, name it in one line and do the rest."
    elif finding.kind is Kind.GOAL_MISALIGNED:
        ask = "Read the task again, write a new plan in two sentences, and do what was asked for."
    elif finding.missing:
        ask = f"Complete only what is missing: {on_one_line(', '.join(finding.missing))}."
    else:
        ask = "Do what is still missing, run the command that proves it, and quote its output; or say plainly that it is not done."
    if blocks == 0:
        return f"Not finished yet (rung):\n{fact}\n{ask} Do not claim anything you have not run."
    return (
        f"There is still no evidence (rung, final request):\n{fact}\nEither show evidence now, or end with an honest "
        f"partial report: what is done, what is not, and why."
    )


def violated(finding: Finding) -> str:
    """Return the message to an agent that did what its task forbids."""
    return (
        f"The task forbids what was just done (rung):\n{quote_fact(finding.text)}\n"
        "Undo it, and reach the goal in a way that the task allows. If the task cannot be done so, say it instead."
    )


def violated_notice(finding: Finding) -> str:
    """Return the notice for the user when an agent does what its task forbids and has been told often enough."""
    return f"rung: {_notice(finding.text)}"


def unproven(finding: Finding) -> str:
    """Return the notice for the user when the agent finishes without evidence."""
    return f"rung: finished without evidence, so the outcome is partial: {_notice(finding.text)}"


def _notice(fact: str) -> str:
    return on_one_line(clip(redacted(fact), MAX_FACT_CHARS))
