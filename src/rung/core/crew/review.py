"""A review: the eleven fields a worker fills in at a checkpoint, and what the grade it gives itself leads to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rung.core.classify.evidence import clip
from rung.core.crew.contract import REVIEW_CYCLES
from rung.core.crew.message_format import (
    fields_in,
    number_in,
    percent,
    severity_in,
    whole_in,
    written,
    yes_in,
    yes_or_no,
)
from rung.core.domain.failures import Evidence, Kind

BEST, WORST = 0, 9
APPROVED_TO: Final = 4  # 0 perfect … 4 noticeable deviations
READ_AT: Final = 5  # significant ones: somebody reads the work first
REVISED_TO: Final = 7
CHECKPOINTS: Final = 10_000

# By field, as a worker writes it, then other spellings of it.
LABELS: Final = {
    "context": ("Context Usage", "Context"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "deviations": ("Deviations",),
    "agents_remaining": ("Agents Remaining",),
    "proposal": ("Proposal",),
    "summary": ("Summary",),
    "files_modified": ("Files Modified", "Files"),
    "tests": ("Tests", "Test Status"),
    "smoothness": ("Smoothness",),
    "reason": ("Reason",),
    "key_outputs": ("Key Outputs",),
}
_CHECKPOINT: Final = re.compile(r"\s*checkpoint\s*#?\s*(\d{1,5})\b", re.IGNORECASE)
_FAIL: Final = re.compile(r"\W*fail", re.IGNORECASE)
_SOME_FAIL: Final = re.compile(r"\b(?!0+ )\d{1,9} (?:tests? )?(?:fail|error)", re.IGNORECASE)


class ReviewDecision(StrEnum):
    """What becomes of a review, from the mildest."""

    APPROVE = "approve"
    READ_DEEPLY = "read_deeply"
    REVISE = "revise"
    REJECT = "reject"


_ORDER: Final = tuple(ReviewDecision)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """What a worker says of its work at a checkpoint; an empty text, or None, is a field that is missing."""

    checkpoint: int | None = None
    context: float | None = None
    self_correction: bool | None = None
    deviations: str = ""
    agents_remaining: str = ""
    proposal: str = ""
    summary: str = ""
    files_modified: str = ""
    tests: str = ""
    smoothness: int | None = None
    reason: str = ""
    key_outputs: str = ""

    def body(self) -> str:
        """The message of a review_request."""
        values = {
            name: getattr(self, name) for name in LABELS if name not in {"context", "self_correction", "smoothness"}
        } | {
            "context": percent(self.context),
            "self_correction": yes_or_no(self.self_correction),
            "smoothness": "" if self.smoothness is None else str(self.smoothness),
        }
        header = f"CHECKPOINT {'?' if self.checkpoint is None else self.checkpoint}: REVIEW REQUEST"
        return written(header, ((spellings[0], values[name]) for name, spellings in LABELS.items()))

    @classmethod
    def parse(cls, text: str) -> ReviewRequest:
        """What any text says of the eleven fields; what cannot be read is missing."""
        found = fields_in(text, LABELS)
        match = _CHECKPOINT.match(text)
        number = int(match[1]) if match else None
        return cls(
            checkpoint=number if number is not None and number <= CHECKPOINTS else None,
            context=number_in(found.pop("context", ""), 0, 100),
            self_correction=yes_in(found.pop("self_correction", "")),
            smoothness=whole_in(found.pop("smoothness", ""), BEST, WORST),
            **found,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """The labels of the fields that are not there. Each is a deviation."""
        return tuple(spellings[0] for name, spellings in LABELS.items() if getattr(self, name) in (None, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """The verdict, why, and the message that tells the worker (nothing yet where somebody must read first)."""

    judged: ReviewDecision
    reasons: tuple[str, ...]
    body: str


def judge_review(request: ReviewRequest, *, read: bool = False) -> ReviewVerdict:
    """By its grade: 0-4 approve, 5 read deeply first, 6-7 revise, 8-9 reject; doubts never make it milder.

    `read`: somebody has read the work and found nothing against it, which settles every doubt but the grade.
    """
    judged, reasons = _graded(request.smoothness)
    for at_least, reason in _doubts(request):
        if _ORDER.index(at_least) >= _ORDER.index(judged):
            judged = at_least
            reasons += (reason,)
    if read and judged is ReviewDecision.READ_DEEPLY:
        judged = ReviewDecision.APPROVE
    return ReviewVerdict(judged=judged, reasons=reasons, body=_told(judged, reasons, request))


def review_exhausted(checkpoint: int | None, cycles: int) -> Evidence | None:
    """The failure of a checkpoint that was reviewed too often without approval; None while it may be reviewed again."""
    if cycles <= REVIEW_CYCLES:
        return None
    text = f"checkpoint {checkpoint}: {REVIEW_CYCLES} reviews without approval"
    return Evidence(text=text, finding=Kind.REVIEW_EXHAUSTED)


def sent_back(request: ReviewRequest, wrong: str) -> ReviewVerdict:
    """What somebody found who read the work deeply goes back to its worker."""
    return ReviewVerdict(
        judged=ReviewDecision.REVISE, reasons=(wrong,), body=_told(ReviewDecision.REVISE, (wrong,), request)
    )


def _graded(smoothness: int | None) -> tuple[ReviewDecision, tuple[str, ...]]:
    if smoothness is None:
        return ReviewDecision.REVISE, ("it has no smoothness from 0 to 9, so it cannot be judged",)
    graded = (f"smoothness {smoothness} of {WORST}",)
    if smoothness <= APPROVED_TO:
        return ReviewDecision.APPROVE, graded
    if smoothness == READ_AT:
        return ReviewDecision.READ_DEEPLY, graded
    return (ReviewDecision.REVISE if smoothness <= REVISED_TO else ReviewDecision.REJECT), graded


def _doubts(request: ReviewRequest) -> list[tuple[ReviewDecision, str]]:
    doubts = [(ReviewDecision.READ_DEEPLY, f"{label} is missing, which is a deviation") for label in request.missing]
    if request.self_correction:
        doubts.append((ReviewDecision.READ_DEEPLY, "it corrected itself on the way"))
    if severity_in(request.deviations) == "high":
        doubts.append((ReviewDecision.READ_DEEPLY, "a deviation of high severity"))
    if _fails(request.tests):
        doubts.append((ReviewDecision.REVISE, f"tests fail: {clip(request.tests, 200)}"))
    return doubts


def _fails(tests: str) -> bool:
    """Do the tests fail by the worker's own words: `3 failed`, or `failing` as the first of them?"""
    return bool(_FAIL.match(tests) or _SOME_FAIL.search(tests))


def _told(judged: ReviewDecision, reasons: tuple[str, ...], request: ReviewRequest) -> str:
    where = "" if request.checkpoint is None else f"checkpoint {request.checkpoint}"
    if judged is ReviewDecision.READ_DEEPLY:
        return ""
    if judged is ReviewDecision.APPROVE:
        return f"REVIEW APPROVED: {where or 'the work'}. Go on."
    grade = "?" if request.smoothness is None else request.smoothness
    missing = f"Fill in: {', '.join(request.missing)}. " if request.missing else ""
    required, then = _REQUIRED[judged]
    return written(
        f"REVIEW FAILED (Smoothness: {grade}/{WORST}){where and ', ' + where}:",
        (("Issue", "; ".join(reasons)), ("Required", missing + required), ("Retry", then)),
    )


_REQUIRED: Final = {
    ReviewDecision.REVISE: (
        "correct what the reasons name and nothing else, with tests that pass.",
        "ask for the review of the same checkpoint again.",
    ),
    ReviewDecision.REJECT: (
        "do not build on this work: go back to the last approved state, say what made it fail, and do it anew.",
        "ask for the review of the same checkpoint again when its tests pass.",
    ),
}
