"""What we say to an agent in its own session: the fact, the count, what not to do, two things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.failures import Kind
from rung.detectors.loop_messages import MAX_FACT_CHARS, loop_message

if TYPE_CHECKING:
    from rung.detectors.finding import Finding

loop = loop_message


def denied(fact: str, number: int) -> str:
    """Why a call is not made once the end was reached."""
    again = "" if number == 1 else f" This is denial {number}; the next steps are yours to write, not to run."
    return (
        f"Denied by rung: the work went in circles ({clip(redacted(fact), MAX_FACT_CHARS)}) and ends here.{again} Write your closing answer: "
        "what is finished, what is not, what a person should do next."
    )


def stopped(fact: str) -> str:
    """What the user is told when an agent goes on calling tools after the end."""
    return f"rung stopped the agent; the outcome is partial: {clip(redacted(fact), MAX_FACT_CHARS)}"


def unfinished(finding: Finding, blocks: int) -> str:
    """Why it may not finish yet; never the same words twice."""
    fact = clip(redacted(finding.text), MAX_FACT_CHARS)
    if finding.kind is Kind.GAVE_UP:
        ask = "Go on with what can still be done, another way; if one part really cannot be done, name it in one line and do the rest."
    elif finding.kind is Kind.GOAL_MISALIGNED:
        ask = "Read the task again, write a new plan in two sentences, and do what was asked for."
    elif finding.missing:
        ask = f"Complete only what is missing: {', '.join(finding.missing)}."
    else:
        ask = "Do what is still missing, run the command that proves it, and quote its output; or say plainly that it is not done."
    if blocks == 0:
        return f"Not finished yet (rung). {fact}. {ask} Do not claim anything you have not run."
    return (
        f"Still nothing that shows it (rung, the last time it asks). {fact}. Either show evidence now, or end with an honest "
        f"partial report: what is done, what is not, and why."
    )


def unproven(finding: Finding) -> str:
    """What the user is told when it finished all the same."""
    return f"rung: finished without evidence, so the outcome is partial: {clip(redacted(finding.text), MAX_FACT_CHARS)}"
