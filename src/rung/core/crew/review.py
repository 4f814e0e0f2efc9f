"""Reviews: the eleven fields of a worker's review request, and the verdict that its own grade leads to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rung.core.classify.evidence import clip
from rung.core.crew.contract import MAX_REVIEW_CYCLES
from rung.core.crew.evidence import evidence_gap
from rung.core.crew.message_format import (
    format_message,
    format_percent,
    format_yes_no,
    parse_fields,
    parse_int,
    parse_number,
    parse_severity,
    parse_yes_no,
)
from rung.core.domain.failures import Evidence, Kind

MIN_SMOOTHNESS, MAX_SMOOTHNESS = 0, 9
MAX_APPROVED: Final = 4  # smoothness: 0 is perfect, 4 has noticeable deviations
FULL_REVIEW_AT: Final = 5  # smoothness with significant deviations: the work must be read first
MAX_REVISED: Final = 7
MAX_CHECKPOINT: Final = 10_000

# The label that is written for each field, then other spellings that are accepted.
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
_FAIL_FIRST: Final = re.compile(r"\W*fail", re.IGNORECASE)
_SOME_FAIL: Final = re.compile(r"\b(?!0+ )\d{1,9} (?:tests? )?(?:fail|error)", re.IGNORECASE)


class ReviewDecision(StrEnum):
    """The decision on a review request, the mildest first."""

    APPROVE = "approve"
    NEEDS_FULL_REVIEW = "needs_full_review"
    REVISE = "revise"
    REJECT = "reject"


_STRICTNESS: Final = tuple(ReviewDecision)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """A worker's review request at a checkpoint. An empty text or None is a missing field."""

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
        """Return the text of a review_request message."""
        values = {
            name: getattr(self, name) for name in LABELS if name not in {"context", "self_correction", "smoothness"}
        } | {
            "context": format_percent(self.context),
            "self_correction": format_yes_no(self.self_correction),
            "smoothness": "" if self.smoothness is None else str(self.smoothness),
        }
        header = f"CHECKPOINT {'?' if self.checkpoint is None else self.checkpoint}: REVIEW REQUEST"
        return format_message(header, ((spellings[0], values[name]) for name, spellings in LABELS.items()))

    @classmethod
    def parse(cls, text: str) -> ReviewRequest:
        """Parse any text. Fields that cannot be read are missing."""
        fields = parse_fields(text, LABELS)
        match = _CHECKPOINT.match(text)
        number = int(match[1]) if match else None
        return cls(
            checkpoint=number if number is not None and number <= MAX_CHECKPOINT else None,
            context=parse_number(fields.pop("context", ""), 0, 100),
            self_correction=parse_yes_no(fields.pop("self_correction", "")),
            smoothness=parse_int(fields.pop("smoothness", ""), MIN_SMOOTHNESS, MAX_SMOOTHNESS),
            **fields,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the labels of the missing fields. Each is a deviation."""
        return tuple(spellings[0] for name, spellings in LABELS.items() if getattr(self, name) in (None, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """The decision, its reasons, and the message to the worker (empty while a full review is needed)."""

    decision: ReviewDecision
    reasons: tuple[str, ...]
    body: str


def judge_review(request: ReviewRequest, *, fully_reviewed: bool = False) -> ReviewVerdict:
    """Return the verdict by grade: 0-4 approve, 5 needs a full review, 6-7 revise, 8-9 reject.

    Doubts can only make the verdict stricter; missing evidence of passing tests is one. `fully_reviewed` means that a
    full review found no problem; then a request that needed nothing else is approved.
    """
    decision, reasons = _decision_for_grade(request.smoothness)
    for minimum, reason in _doubts(request):
        if _STRICTNESS.index(minimum) >= _STRICTNESS.index(decision):
            decision = minimum
            reasons += (reason,)
    if fully_reviewed and decision is ReviewDecision.NEEDS_FULL_REVIEW:
        decision = ReviewDecision.APPROVE
    return ReviewVerdict(decision=decision, reasons=reasons, body=_format_verdict(decision, reasons, request))


def reviews_left(checkpoints: int, approved: int) -> str:
    """Return which reviews a task with checkpoints still needs before it may complete; empty if none, or no checkpoints."""
    if not checkpoints or approved > checkpoints:
        return ""
    return (
        f"{approved} of {checkpoints + 1} reviews are approved, {checkpoints} of checkpoints and the last one of the whole"
        f" work; request the review of checkpoint {approved + 1}"
    )


def review_exhausted(checkpoint: int | None, cycles: int) -> Evidence | None:
    """Return the failure of a checkpoint after too many reviews without approval; None while another is allowed."""
    if cycles <= MAX_REVIEW_CYCLES:
        return None
    text = f"checkpoint {checkpoint}: {MAX_REVIEW_CYCLES} reviews without approval"
    return Evidence(text=text, finding=Kind.REVIEW_EXHAUSTED)


def approve(request: ReviewRequest) -> ReviewVerdict:
    """Return the verdict of a reviewer that approves the work."""
    decision = ReviewDecision.APPROVE
    reasons = ("the reviewer approves",)
    return ReviewVerdict(decision=decision, reasons=reasons, body=_format_verdict(decision, reasons, request))


def request_changes(request: ReviewRequest, problem: str) -> ReviewVerdict:
    """Return the verdict for a problem that a full review found."""
    decision, reasons = ReviewDecision.REVISE, (problem,)
    return ReviewVerdict(decision=decision, reasons=reasons, body=_format_verdict(decision, reasons, request))


def _decision_for_grade(smoothness: int | None) -> tuple[ReviewDecision, tuple[str, ...]]:
    if smoothness is None:
        return ReviewDecision.REVISE, ("the request has no smoothness from 0 to 9",)
    reasons = (f"smoothness {smoothness} of {MAX_SMOOTHNESS}",)
    if smoothness <= MAX_APPROVED:
        return ReviewDecision.APPROVE, reasons
    if smoothness == FULL_REVIEW_AT:
        return ReviewDecision.NEEDS_FULL_REVIEW, reasons
    return (ReviewDecision.REVISE if smoothness <= MAX_REVISED else ReviewDecision.REJECT), reasons


def _doubts(request: ReviewRequest) -> list[tuple[ReviewDecision, str]]:
    doubts = [
        (ReviewDecision.NEEDS_FULL_REVIEW, f"{label} is missing, which is a deviation") for label in request.missing
    ]
    if request.self_correction:
        doubts.append((ReviewDecision.NEEDS_FULL_REVIEW, "the worker corrected itself"))
    if parse_severity(request.deviations) == "high":
        doubts.append((ReviewDecision.NEEDS_FULL_REVIEW, "a deviation of high severity"))
    if gap := evidence_gap(request.tests):
        doubts.append((ReviewDecision.NEEDS_FULL_REVIEW, gap))
    if _reports_failing_tests(request.tests):
        doubts.append((ReviewDecision.REVISE, f"tests fail: {clip(request.tests, 200)}"))
    return doubts


def _reports_failing_tests(tests: str) -> bool:
    """Return whether the worker reports failing tests: `3 failed`, or a text that begins with `fail`."""
    return bool(_FAIL_FIRST.match(tests) or _SOME_FAIL.search(tests))


def _format_verdict(decision: ReviewDecision, reasons: tuple[str, ...], request: ReviewRequest) -> str:
    where = "" if request.checkpoint is None else f"checkpoint {request.checkpoint}"
    if decision is ReviewDecision.NEEDS_FULL_REVIEW:
        return ""
    if decision is ReviewDecision.APPROVE:
        return f"REVIEW APPROVED: {where or 'the work'}. Continue."
    grade = "?" if request.smoothness is None else request.smoothness
    missing = f"Fill in: {', '.join(request.missing)}. " if request.missing else ""
    required, retry = _REQUIRED[decision]
    return format_message(
        f"REVIEW FAILED (Smoothness: {grade}/{MAX_SMOOTHNESS}){where and ', ' + where}:",
        (("Issue", "; ".join(reasons)), ("Required", missing + required), ("Retry", retry)),
    )


_REQUIRED: Final = {
    ReviewDecision.REVISE: (
        "fix what the reasons name and nothing else, with passing tests.",
        "request the review of the same checkpoint again.",
    ),
    ReviewDecision.REJECT: (
        "do not build on this work: go back to the last approved state, state why it failed, and redo it.",
        "request the review of the same checkpoint again when its tests pass.",
    ),
}
