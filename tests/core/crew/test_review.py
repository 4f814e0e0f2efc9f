"""Reviews: parsing the eleven fields, and the verdict on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.review import LABELS, ReviewDecision, ReviewRequest, judge_review, request_changes, review_exhausted
from rung.core.domain.failures import Kind

TEXTS = st.text(max_size=60).map(str.strip)
REQUESTS = st.builds(
    ReviewRequest,
    checkpoint=st.one_of(st.none(), st.integers(0, 10_000)),
    context=st.one_of(st.none(), st.integers(0, 100).map(float), st.sampled_from([0.5, 62.5])),
    self_correction=st.sampled_from([True, False, None]),
    smoothness=st.one_of(st.none(), st.integers(0, 9)),
    **dict.fromkeys(
        ("deviations", "agents_remaining", "proposal", "summary", "files_modified", "tests", "reason", "key_outputs"),
        TEXTS,
    ),
)
GOOD = ReviewRequest(
    checkpoint=2,
    context=41,
    self_correction=False,
    deviations="1 (Low: renamed a field)",
    agents_remaining="1 (~5% each, ~5% total)",
    proposal="N/A",
    summary="The parser reads every example.",
    files_modified="3",
    tests="128 passed, 0 failed",
    smoothness=2,
    reason="one detour",
    key_outputs="src/parser.py (created)\ntests/test_parser.py (created)",
)
ORDER = tuple(ReviewDecision)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: ReviewRequest) -> None:
    """Any request survives formatting and parsing."""
    assert ReviewRequest.parse(request.body()) == request


@given(st.text())
def test_no_text_stops_the_reader(text: str) -> None:
    """Any text is parsed and judged."""
    request = ReviewRequest.parse(text)
    assert judge_review(request).decision in ReviewDecision
    assert 0 <= len(request.missing) <= 11


def test_what_an_agent_writes_by_hand() -> None:
    """The eleven fields are parsed in a worker's layout."""
    request = ReviewRequest.parse(
        """CHECKPOINT 3: REVIEW REQUEST
        Context Usage: 48%
        Self-Correction: NO
        Deviations: 0
        Agents Remaining: 2 (~6% each, ~12% total)
        Proposal: N/A
        Summary: Endpoints done.
        Files Modified: 4
        Tests: 31 passed
        Smoothness: 3/9
        Reason: some friction with fixtures
        Key Outputs:
          - api/routes.py (modified)
          - api/tests.py (created)"""
    )
    assert request.missing == ()
    assert (request.checkpoint, request.context, request.smoothness) == (3, 48, 3)
    assert request.key_outputs.splitlines()[1].strip() == "- api/tests.py (created)"
    assert judge_review(request).decision is ReviewDecision.APPROVE
    assert judge_review(request).body == "REVIEW APPROVED: checkpoint 3. Continue."


@pytest.mark.parametrize(
    ("smoothness", "judged"),
    [
        (n, j)
        for j, ns in (("approve", range(5)), ("needs_full_review", [5]), ("revise", [6, 7]), ("reject", [8, 9]))
        for n in ns
    ],
)
def test_the_grade_decides(smoothness: int, judged: str) -> None:
    """0-4 approve, 5 needs a full review, 6-7 revise, 8-9 reject."""
    assert judge_review(replace(GOOD, smoothness=smoothness)).decision == judged


@pytest.mark.parametrize("name", LABELS)
def test_a_missing_field_is_a_deviation(name: str) -> None:
    """Each missing field is named, and the work is not approved without a full review."""
    left_out: dict[str, Any] = {name: None if name in {"context", "self_correction", "smoothness"} else ""}
    missing = replace(GOOD, **left_out)
    verdict = judge_review(missing)
    assert missing.missing == (LABELS[name][0],)
    assert verdict.decision is (ReviewDecision.REVISE if name == "smoothness" else ReviewDecision.NEEDS_FULL_REVIEW)
    assert any(LABELS[name][0].lower() in reason.lower() for reason in verdict.reasons)


@given(REQUESTS)
def test_doubts_never_make_it_milder(request: ReviewRequest) -> None:
    """A missing field, self-correction, a severe deviation or a worse grade never gives a milder verdict."""
    before = ORDER.index(judge_review(request).decision)
    worse: list[dict[str, Any]] = [
        {"self_correction": True},
        {"deviations": "1 (High: the schema)"},
        {"tests": "2 failed"},
    ]
    worse += [{"summary": ""}, {"smoothness": None if request.smoothness is None else 9}]
    for change in worse:
        if "deviations" in change and not request.deviations:
            continue  # a field that was missing is there now, which is no worse
        if "tests" in change and not request.tests:
            continue
        assert ORDER.index(judge_review(replace(request, **change)).decision) >= before or (
            "self_correction" in change and request.self_correction is None
        )


def test_who_has_read_the_work_may_approve_it() -> None:
    """A full review settles doubts, but never a bad grade or failing tests."""
    assert judge_review(replace(GOOD, smoothness=5), fully_reviewed=True).decision is ReviewDecision.APPROVE
    assert judge_review(replace(GOOD, self_correction=True)).decision is ReviewDecision.NEEDS_FULL_REVIEW
    assert judge_review(replace(GOOD, self_correction=True)).body == ""
    assert (
        judge_review(replace(GOOD, self_correction=True, summary=""), fully_reviewed=True).decision
        is ReviewDecision.APPROVE
    )
    assert judge_review(replace(GOOD, smoothness=6), fully_reviewed=True).decision is ReviewDecision.REVISE
    assert judge_review(replace(GOOD, tests="failing"), fully_reviewed=True).decision is ReviewDecision.REVISE
    assert judge_review(replace(GOOD, tests="10 tests failed"), fully_reviewed=True).decision is ReviewDecision.REVISE
    assert (
        judge_review(replace(GOOD, smoothness=9, tests="2 errors"), fully_reviewed=True).decision
        is ReviewDecision.REJECT
    )


def test_what_a_deep_reader_found_goes_back() -> None:
    """A problem found in a full review is sent back, even with a good grade."""
    verdict = request_changes(GOOD, "the parser reads nothing after a comment")
    assert verdict.decision is ReviewDecision.REVISE
    assert "Issue: the parser reads nothing after a comment" in verdict.body


def test_a_refusal_says_what_is_wanted() -> None:
    """The message names the issue, what is required and the next step."""
    revise = judge_review(replace(GOOD, smoothness=7, reason=""))
    assert revise.body.startswith("REVIEW FAILED (Smoothness: 7/9), checkpoint 2:\nIssue: smoothness 7 of 9")
    assert "Required: Fill in: Reason. fix" in revise.body
    assert "Retry: request the review" in revise.body
    reject = judge_review(ReviewRequest(smoothness=9)).body
    assert reject.startswith("REVIEW FAILED (Smoothness: 9/9):\n")
    assert "last approved state" in reject
    assert judge_review(ReviewRequest()).body.startswith("REVIEW FAILED (Smoothness: ?/9):\n")
    assert judge_review(replace(GOOD, checkpoint=None)).body == "REVIEW APPROVED: the work. Continue."


def test_reviews_of_a_checkpoint_are_exhausted() -> None:
    """Five reviews of one checkpoint are allowed; the sixth is a review_exhausted failure."""
    assert all(review_exhausted(1, cycles) is None for cycles in range(6))
    found = review_exhausted(1, 6)
    assert found is not None
    assert (found.finding, found.text) == (Kind.REVIEW_EXHAUSTED, "checkpoint 1: 5 reviews without approval")
