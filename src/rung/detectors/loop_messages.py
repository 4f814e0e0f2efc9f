"""What an agent is told of a loop, whoever tells it: the fact, the count, what not to do, two things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.detectors.finding import Finding

ROOM: Final = 700
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


def loop_told(rung: str, finding: Finding) -> str:
    """What a loop is answered with, by the rung that the ladder took."""
    fact = clip(redacted(finding.text), ROOM)
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
    from rung.core.classify.classifier import classify
    from rung.core.domain.failures import Evidence, Phase

    said = finding.text.partition(": ")[2]
    return TRY.get(classify(Evidence(text=said, phase=Phase.TOOL)).kind, _OTHERWISE)
