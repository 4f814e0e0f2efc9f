"""How a conductor's own helpers fail, what is done about it, and when somebody else must come to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.failures import GROUPS, TRANSIENT, Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence


class HelperTrouble(StrEnum):
    """How a conductor's own helper failed."""

    TRANSIENT = "transient"
    CONFIGURATION = "configuration"
    LOGIC = "logic"
    SYSTEMIC = "systemic"


class HelperMove(StrEnum):
    """What to do about a helper that failed."""

    SAME = "same"
    FIX_PROMPT = "fix_prompt"
    ADD_CORRECTION = "add_correction"
    ESCALATE = "escalate"


class Resort(StrEnum):
    """Who is left when a helper has failed for good, in this order."""

    WORKAROUND = "workaround"
    REPLANNER = "replanner"
    PERSON = "person"


HELPER_TRIES: Final = 3
_PASSES: Final = TRANSIENT | {
    Kind.CONTEXT_LIMIT,
    Kind.OUTPUT_LIMIT,
    Kind.TURNS_EXHAUSTED,
    Kind.RESOURCE_EXHAUSTED,
    Kind.STALLED,
    Kind.WORKER_DEAD,
    Kind.WORKER_HUNG,
    Kind.HOOK_CRASH,
}
_WRONGLY_ASKED: Final = frozenset(
    {
        Kind.NOT_FOUND,
        Kind.CONFIGURATION,
        Kind.INVALID_REQUEST,
        Kind.MODEL_UNAVAILABLE,
        Kind.PERMISSION_DENIED,
        Kind.TOOL_ERROR,
        Kind.CLAIM_BLOCKED,
    }
)
# An answer that is not good, or that nobody could name: what was wrong with it can be told.
_CORRECTABLE: Final = frozenset({*GROUPS["result"], Kind.UNKNOWN, Kind.CONTEXT_WARNING, Kind.LOOP_DETECTED}) - {
    Kind.GOAL_MISALIGNED
}


_NO_PROGRAM: Final = (126, 127)  # exit codes of a shell: cannot be run, is not there


def helper_trouble(failure: Failure, *, same_as_before: bool = False) -> HelperTrouble:
    """Which of the four; what comes again after it was answered is systemic, unless it passes by itself."""
    kind = failure.kind
    if failure.evidence.exit_code in _NO_PROGRAM:
        return HelperTrouble.SYSTEMIC  # no prompt brings a program that cannot be run
    if kind in _PASSES or (kind is Kind.PARTIAL_OUTPUT and not failure.evidence.missing):
        return HelperTrouble.TRANSIENT
    if same_as_before:
        return HelperTrouble.SYSTEMIC
    if kind in _WRONGLY_ASKED:
        return HelperTrouble.CONFIGURATION
    return HelperTrouble.LOGIC if kind in _CORRECTABLE else HelperTrouble.SYSTEMIC


_MOVES: Final = {
    HelperTrouble.TRANSIENT: HelperMove.SAME,
    HelperTrouble.CONFIGURATION: HelperMove.FIX_PROMPT,
    HelperTrouble.LOGIC: HelperMove.ADD_CORRECTION,
    HelperTrouble.SYSTEMIC: HelperMove.ESCALATE,
}


def after_helper(trouble: HelperTrouble, tries: int) -> HelperMove:
    """The next move after so many tries."""
    return HelperMove.ESCALATE if tries >= HELPER_TRIES else _MOVES[trouble]


_WHY_NOT: Final = {
    HelperTrouble.TRANSIENT: "it should have passed by itself and has not, so it is not transient",
    HelperTrouble.CONFIGURATION: "correcting what it was given has not helped, so that was not all that is wrong",
    HelperTrouble.LOGIC: "saying what was wrong has not led to a right answer",
    HelperTrouble.SYSTEMIC: "the same prompt would fail in the same way: the task or the way of asking is wrong",
}
_NEXT: Final = {
    Resort.WORKAROUND: "work around it without this helper",
    Resort.REPLANNER: "have the plan revised",
    Resort.PERSON: "a person decides",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The written account of a helper that failed for good."""

    what: str
    errors: tuple[str, ...]
    trouble: HelperTrouble
    resort: Resort

    def body(self) -> str:
        """What was asked for, every try, the category, why another try would not help, what is done instead."""
        times = "once" if len(self.errors) == 1 else f"{len(self.errors)} times"
        tried = "\n".join(f"- Attempt {number}: {error}" for number, error in enumerate(self.errors, 1))
        return (
            f"A helper failed {times}: {self.what}\n\nErrors:\n{tried}\n\nCategory: {self.trouble}\n"
            f"Why not again: {_WHY_NOT[self.trouble]}.\nNext: {_NEXT[self.resort]}.\n"
        )


class InstructionTrouble(StrEnum):
    """What is wrong with a task's instructions: small enough to edit, or to be written anew."""

    SMALL = "small"
    LARGE = "large"


class Flaw(StrEnum):
    """One thing that is wrong with a task's instructions."""

    WRONG_PATH = "wrong_path"
    TYPO = "typo"
    MISSING_MARK = "missing_mark"
    MISSING_SECTION = "missing_section"
    WRONG_KIND = "wrong_kind"
    BROKEN = "broken"
    EMPTY = "empty"


EDITED: Final = frozenset({Flaw.WRONG_PATH, Flaw.TYPO, Flaw.MISSING_MARK})
MANY: Final = 5  # small flaws, from where writing anew is less work than editing


def instruction_trouble(flaws: Sequence[Flaw]) -> InstructionTrouble | None:
    """Small where every flaw can be edited and they are few; None where there is none."""
    if not flaws:
        return None
    small = len(flaws) < MANY and all(flaw in EDITED for flaw in flaws)
    return InstructionTrouble.SMALL if small else InstructionTrouble.LARGE
