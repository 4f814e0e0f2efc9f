"""The report about a helper that gave no usable answer: what failed, of which category, and what is done instead."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import GROUPS
from rung.core.text.quoted_data import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure

_MAX_ERROR_CHARS: Final = 300


class FailureCategory(StrEnum):
    """Why a helper failed, as far as another try is concerned."""

    TRANSIENT = "transient"
    CONFIGURATION = "configuration"
    LOGIC = "logic"
    SYSTEMIC = "systemic"


_ASSESSMENT: Final = {
    FailureCategory.TRANSIENT: "it kept failing although the question was repeated unchanged",
    FailureCategory.CONFIGURATION: "the question or the command names something that does not exist or may not be used",
    FailureCategory.LOGIC: "its answers stayed unusable although it was told what was wrong",
    FailureCategory.SYSTEMIC: "another try would fail in the same way",
}


def failure_category(failures: Sequence[Failure]) -> FailureCategory:
    """Return the category of the last failure. One that came back in spite of its correction is systemic."""
    *earlier, last = failures
    if last.kind in GROUPS["transient"]:
        return FailureCategory.TRANSIENT
    if any(last.fingerprint == one.fingerprint for one in earlier):
        return FailureCategory.SYSTEMIC
    if last.kind in GROUPS["request"]:
        return FailureCategory.CONFIGURATION
    return FailureCategory.LOGIC if last.kind in GROUPS["result"] else FailureCategory.SYSTEMIC


def helper_report(*, question: str, task: str, program: str, failures: Sequence[Failure], next_step: str) -> str:
    """Return the report about an unanswered question, as Markdown."""
    category = failure_category(failures)
    times = "once" if len(failures) == 1 else f"{len(failures)} times"
    attempts = "\n".join(
        f"- Attempt {number}: {failure.kind}: {on_one_line(failure.message)[:_MAX_ERROR_CHARS]}"
        for number, failure in enumerate(failures, 1)
    )
    return (
        f"# The question '{question}' about {task} was not answered\n\n"
        f"Helper failed {times}: {program}\n\nError summary:\n{attempts}\n\n"
        f"Failure category: {category}\n"
        f"Assessment: {_ASSESSMENT[category]}\n"
        f"Next: {next_step}\n\n"
    )
