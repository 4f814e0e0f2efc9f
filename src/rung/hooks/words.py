"""What we say to an agent in its own session: the fact, the count, what not to do, two things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.evidence import clip
from rung.core.failures import Kind
from rung.core.redact import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.detectors.finding import Finding

_ROOM: Final = 700
# Two things to try, by what the repeated error is.
TRY: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.NOT_FOUND: ("list what is really there, one directory above", "search the whole tree for the name"),
    Kind.PERMISSION_DENIED: ("work in a place where you may write", "say which right is missing, and ask for it"),
    Kind.TEST_FAILURE: (
        "read the failing test and the code it calls, line by line",
        "run that one test alone, with its whole output",
    ),
    Kind.TIMEOUT: ("do a smaller part of it at a time", "run it in the background and look at its output"),
    Kind.NETWORK: (
        "check with one plain request whether the address answers",
        "do the work without the network: local files, a cache",
    ),
    Kind.AUTH_ERROR: (
        "leave this service alone and use what is at hand",
        "say which credentials are missing, and ask for them",
    ),
    Kind.MISSING_CREDENTIALS: (
        "leave this service alone and use what is at hand",
        "say which credentials are missing, and ask for them",
    ),
    Kind.CONFIGURATION: (
        "read the configuration that the error names",
        "start from the smallest configuration that works",
    ),
    Kind.MALFORMED_OUTPUT: ("look at the raw text before parsing it", "produce it with a program instead of by hand"),
    Kind.RESOURCE_EXHAUSTED: ("work on a part of the data", "free what was used before"),
}
_OTHERWISE: Final = (
    "look at the cause with another tool: read the file, the log or the code that the message comes from",
    "test your assumption with the smallest command that can prove it wrong",
)


def loop(rung: str, finding: Finding) -> str:
    """What a loop is answered with, by the rung that the ladder took."""
    fact = clip(redacted(finding.text), _ROOM)
    one, other = _tries(finding)
    if rung == "replan":
        return (
            f"STOP and make a new plan (rung: {finding.repeats} repetitions). Fact: {fact}\n"
            f"It will not help the next time either. Do not make this call again, reworded or not. "
            f"First write a revised plan in two sentences: what do you know now, and what do you not know? "
            f"Then try one of these: (1) {one}; (2) {other}."
        )
    if rung == "explore":
        return (
            f"STILL THE SAME (rung: {finding.repeats} repetitions). Fact: {fact}\n"
            f"The revised plan did not change the outcome. An entirely different tool or method is needed now: "
            f"not another variation of this command, not the same file again. Choose a way you have not used in this "
            f"session: (1) {one}; (2) {other}; or leave this part out and say so. At {_last(finding)} repetitions tools are "
            f"taken away and the work ends as partial."
        )
    return (
        f"THE END (rung: {finding.repeats} repetitions). Fact: {fact}\n"
        f"No more tools: every further call is denied. Write your closing answer now: what is finished, what is not, where "
        f"it stopped and why, and what a person should do next. Do not claim anything that was not done."
    )


def _last(finding: Finding) -> str:
    return "eight" if finding.repeats < _EIGHT else "a few more"


_EIGHT: Final = 8


def _tries(finding: Finding) -> tuple[str, str]:
    from rung.core.classify import classify
    from rung.core.failures import Evidence, Phase

    said = finding.text.partition(": ")[2]
    return TRY.get(classify(Evidence(text=said, phase=Phase.TOOL)).kind, _OTHERWISE)


def denied(fact: str, number: int) -> str:
    """Why a call is not made once the end was reached."""
    again = "" if number == 1 else f" This is denial {number}; the next steps are yours to write, not to run."
    return (
        f"Denied by rung: the work went in circles ({clip(redacted(fact), _ROOM)}) and ends here.{again} Write your closing answer: "
        "what is finished, what is not, what a person should do next."
    )


def stopped(fact: str) -> str:
    """What the user is told when an agent goes on calling tools after the end."""
    return f"rung stopped the agent; the outcome is partial: {clip(redacted(fact), _ROOM)}"


def unfinished(finding: Finding, blocks: int) -> str:
    """Why it may not finish yet; never the same words twice."""
    fact = clip(redacted(finding.text), _ROOM)
    if finding.kind is Kind.GAVE_UP:
        ask = "Go on with what can still be done, another way; if one part really cannot be done, name it in one line and do the rest."
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
    return f"rung: finished without evidence, so the outcome is partial: {clip(redacted(finding.text), _ROOM)}"
