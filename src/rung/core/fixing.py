"""What a conductor does about a worker's error: how large the problem is, and what a proposal says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.crew import ERROR_TRIES
from rung.core.failures import TRANSIENT, Failure, Kind
from rung.core.labelled import fields_in, number_in, percent, written, yes_in, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.ladder import Ladder

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
        return written(f"ERROR (Retry {number}/{ERROR_TRIES}):", told)

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
        return written(f"FIX PROPOSAL (Retry {number}/{ERROR_TRIES}):", told)

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


def entering(failure: Failure, size: Size, tries: int, ladder: Ladder) -> Failure:
    """The failure as it enters the ladder: by what it takes to mend it, and how often that was tried in the task's life."""
    if tries > ERROR_TRIES or size is Size.BEYOND:
        beyond = failure._replace(kind=Kind.BEYOND_AUTHORITY)
        return max(failure, beyond, key=ladder.enter)  # what only a person can help with goes to one at once
    if size is not Size.SIMPLE:
        return failure._replace(kind=Kind.UNKNOWN)
    return failure._replace(kind=Kind.TOOL_ERROR) if failure.kind in (Kind.UNKNOWN, Kind.TEST_FAILURE) else failure


def no_progress(history: Sequence[str]) -> bool:
    """Is the last error one that two corrections were already made for? `history`: their fingerprints, oldest first."""
    return bool(history) and history[:-1].count(history[-1]) >= _CORRECTED_IN_VAIN


_CORRECTED_IN_VAIN: Final = 2
CONSIDER_REPLANNING: Final = (
    "Two corrections have not changed this error. If this one does not either, say so at once instead of trying a "
    "variation: the plan may be wrong, not the work."
)
