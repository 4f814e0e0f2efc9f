"""What a conductor does about an error: how large the problem is, what a proposal says, how its own helpers fail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.failures import GROUPS, TRANSIENT, Failure, Kind
from rung.core.labelled import fields_in, number_in, percent, written, yes_in, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIES: Final = 5  # of a task, for life
_ERROR: Final = {
    "context": ("Context Usage", "Context"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "error": ("Error",),
    "report": ("Report",),
}
_PROPOSAL: Final = {
    "root_cause": ("Root cause",),
    "fix": ("Fix",),
    "afterwards": ("Retry", "Afterwards", "After", "Then"),
}
_WAITS: Final = re.compile(r"\s*awaiting conductor.*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """What a worker says when it cannot go on; `report` is the path of a longer account."""

    error: str
    context: float | None = None
    self_correction: bool | None = None
    report: str = ""

    def body(self, number: int) -> str:
        """The message of an error, which is this task's number-th."""
        told = (
            ("Context Usage", percent(self.context)),
            ("Self-Correction", yes_or_no(self.self_correction)),
            ("Error", self.error),
            ("Report", self.report),
        )
        return written(f"ERROR (Retry {number}/{TRIES}):", told)

    @classmethod
    def parse(cls, text: str) -> ErrorReport:
        """What any text says; without a line `Error:` all of it is the error."""
        found = fields_in(_WAITS.sub("", text), _ERROR)
        return cls(
            error=found.get("error") or text.strip(),
            context=number_in(found.get("context", ""), 0, 100),
            self_correction=yes_in(found.get("self_correction", "")),
            report=found.get("report", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A fix: why it failed, what to change, and what to do after that."""

    root_cause: str
    fix: str
    afterwards: str = "Run the step that failed again, then go on."

    def body(self, number: int) -> str:
        """The message of a fix_proposal, which answers the task's number-th error."""
        told = (("Root cause", self.root_cause), ("Fix", self.fix), ("Retry", self.afterwards))
        return written(f"FIX PROPOSAL (Retry {number}/{TRIES}):", told)

    @classmethod
    def parse(cls, text: str) -> Proposal | None:
        """The proposal a text makes; None where it names no cause or no fix, as that is no proposal."""
        found = fields_in(text, _PROPOSAL)
        if not found.get("root_cause") or not found.get("fix"):
            return None
        return cls(**{name: value for name, value in found.items() if value})


class Size(StrEnum):
    """How large a problem is: who may solve it, and how."""

    SIMPLE = "simple"  # propose a fix at once
    COMPLEX = "complex"  # have it investigated first
    UNCERTAIN = "uncertain"  # have the cause found first; not found, it is replanned
    BEYOND = "beyond"  # not this conductor's to decide: replan at once


_SIMPLE: Final = frozenset(
    {
        *TRANSIENT,
        Kind.CONTEXT_LIMIT,
        Kind.OUTPUT_LIMIT,
        Kind.TURNS_EXHAUSTED,
        Kind.RESOURCE_EXHAUSTED,
        Kind.INVALID_REQUEST,
        Kind.MODEL_UNAVAILABLE,
        Kind.NOT_FOUND,
        Kind.PERMISSION_DENIED,
        Kind.CONFIGURATION,
        Kind.MALFORMED_OUTPUT,
        Kind.PARTIAL_OUTPUT,
        Kind.GAVE_UP,
        Kind.UNVERIFIED,
        Kind.TOOL_ERROR,
        Kind.CONTEXT_WARNING,
        Kind.CLAIM_BLOCKED,
        Kind.HOOK_CRASH,
        Kind.WORKER_DEAD,
        Kind.WORKER_HUNG,
        Kind.STALLED,
    }
)
_BEYOND: Final = frozenset(
    {
        Kind.QUOTA_EXHAUSTED,
        Kind.BUDGET_EXHAUSTED,
        Kind.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS,
        Kind.SCOPE_CONFLICT,
        Kind.STRATEGIC_AMBIGUITY,
        Kind.BEYOND_AUTHORITY,
        Kind.REVIEW_EXHAUSTED,
    }
)
# What workers say where a kind alone does not tell. Whole words, in the order in which they are asked.
_SAID: Final = (
    (
        Size.BEYOND,
        (
            r"architectur\w+ (?:change|decision)|cross-(?:phase|task)|(?:another|other) (?:task|phase)'?s? (?:file|scope|work)"
            r"|(?:change|revise|contradicts?) the plan|beyond (?:my|its|our) (?:authority|scope)|out of scope"
            r"|needs? a (?:person|human)'?s? decision"
        ),
    ),
    (
        Size.UNCERTAIN,
        (
            r"(?:root )?cause (?:is )?(?:unclear|unknown|not clear)|not sure (?:why|what)|do(?:es)? ?n[o']t know why"
            r"|several possible|multiple possible|could be (?:either|any)|intermittent(?:ly)?|flaky|sometimes"
        ),
    ),
    (
        Size.COMPLEX,
        (
            r"race condition|deadlock(?:ed|s)?|integration (?:test|failure|error)s?|regressions?|cascad\w+|corrupt\w*|logic error"
            r"|memory leak|(?:[3-9]|[1-9]\d+) (?:tests? )?(?:failed|failing|failures)"
        ),
    ),
    (
        Size.SIMPLE,
        (
            r"typo|missing import|ModuleNotFoundError|ImportError|NameError|SyntaxError|IndentationError|undefined name"
            r"|no such file|wrong path|misspelled|unused (?:import|variable)|trailing whitespace|missing (?:key|setting|file)"
        ),
    ),
)
_WORDS: Final = tuple((size, re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)) for size, words in _SAID)
_LOOKED_AT: Final = 20_000  # characters of a report


def size(failure: Failure, report: str = "") -> Size:
    """How large: what only a person or a plan can change, then what the report says, then by the kind."""
    if failure.kind in _BEYOND:
        return Size.BEYOND
    said = f"{failure.message[:_LOOKED_AT]}\n{report[:_LOOKED_AT]}"
    for found, words in _WORDS:
        if words.search(said):
            return found
    if failure.kind is Kind.UNKNOWN:
        return Size.UNCERTAIN
    return Size.SIMPLE if failure.kind in _SIMPLE else Size.COMPLEX


def no_progress(history: Sequence[str]) -> bool:
    """Is the last error one that two corrections were already made for? `history`: their fingerprints, oldest first."""
    return bool(history) and history[:-1].count(history[-1]) >= _CORRECTED_IN_VAIN


_CORRECTED_IN_VAIN: Final = 2
CONSIDER_REPLANNING: Final = (
    "Two corrections have not changed this error. If this one does not either, say so at once instead of trying a "
    "variation: the plan may be wrong, not the work."
)


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
