"""Messages that tell an agent about a loop: the fact, the count, what to avoid, and two suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.failures import Kind
from rung.core.text.quoted_data import quote_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.detectors.finding import Finding

MAX_FACT_CHARS: Final = 700
# Two suggestions for each kind of repeated error.
SUGGESTIONS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.NOT_FOUND: ("list the files in the parent directory", "search the whole tree for the name"),
    Kind.PERMISSION_DENIED: (
        "work in a directory where you have write access",
        "name the missing permission and ask for it",
    ),
    Kind.TEST_FAILURE: (
        "read the failing test and the code it calls, line by line",
        "run that one test alone, with its full output",
    ),
    Kind.TIMEOUT: ("do a smaller part of it at a time", "run it in the background and read its output"),
    Kind.NETWORK: (
        "check with one plain request whether the address answers",
        "work without the network: local files, a cache",
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
        "start from the smallest working configuration",
    ),
    Kind.MALFORMED_OUTPUT: ("inspect the raw text before parsing it", "generate it with a program instead of by hand"),
    Kind.RESOURCE_EXHAUSTED: ("work on a part of the data", "free resources that are no longer needed"),
}
_DEFAULT_SUGGESTIONS: Final = (
    "investigate the cause with another tool: read the file, the log or the code that the message comes from",
    "test your assumption with the smallest command that can prove it wrong",
)


def quote_fact(text: str) -> str:
    """Return what was noticed as quoted data: it repeats what commands and tools have written."""
    return quote_data(clip(redacted(text), MAX_FACT_CHARS), "fact")


def loop_message(rung: str, finding: Finding) -> str:
    """Return the message to the agent for the rung that the ladder took."""
    fact = quote_fact(finding.text)
    first, second = _suggestions_for(finding)
    if rung == "replan":
        return (
            f"STOP and make a new plan (rung: {finding.repeats} repetitions). Fact:\n{fact}\n"
            f"The next call will have the same outcome. Do not make this call again, reworded or not. "
            f"First write a revised plan in two sentences: what do you know now, and what do you not know? "
            f"Then try one of these: (1) {first}; (2) {second}."
        )
    if rung == "explore":
        return (
            f"STILL THE SAME (rung: {finding.repeats} repetitions). Fact:\n{fact}\n"
            f"The revised plan did not change the outcome. An entirely different tool or method is needed now: "
            f"not another variation of this command, not the same file again. Choose a method that you have not used in "
            f"this session: (1) {first}; (2) {second}; or skip this part and say so. At {_final_count(finding)} "
            f"repetitions all tools are denied and the work ends as partial."
        )
    return (
        f"THE END (rung: {finding.repeats} repetitions). Fact:\n{fact}\n"
        f"No more tools: every further call is denied. Write your final answer now: what is finished, what is not, where "
        f"the work stopped and why, and what a person should do next. Do not claim anything that was not done."
    )


def _final_count(finding: Finding) -> str:
    return "eight" if finding.repeats < _FORCE_DONE_REPEATS else "a few more"


_FORCE_DONE_REPEATS: Final = 8


def _suggestions_for(finding: Finding) -> tuple[str, str]:
    from rung.core.classify.classifier import classify
    from rung.core.domain.failures import Evidence, Phase

    error_text = finding.text.partition(": ")[2]
    return SUGGESTIONS.get(classify(Evidence(text=error_text, phase=Phase.TOOL)).kind, _DEFAULT_SUGGESTIONS)
