"""Reviews: eleven fields in, a verdict out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.review import LABELS, ReviewDecision, ReviewRequest, judge_review, review_exhausted, sent_back
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
    """Whatever the fields say, the message gives the same request again."""
    assert ReviewRequest.parse(request.body()) == request


@given(st.text())
def test_no_text_stops_the_reader(text: str) -> None:
    """Any text is read, and judged."""
    request = ReviewRequest.parse(text)
    assert judge_review(request).judged in ReviewDecision
    assert 0 <= len(request.missing) <= 11


def test_what_an_agent_writes_by_hand() -> None:
    """The eleven fields in a worker's own layout."""
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
    assert judge_review(request).judged is ReviewDecision.APPROVE
    assert judge_review(request).body == "REVIEW APPROVED: checkpoint 3. Go on."


@pytest.mark.parametrize(
    ("smoothness", "judged"),
    [
        (n, j)
        for j, ns in (("approve", range(5)), ("read_deeply", [5]), ("revise", [6, 7]), ("reject", [8, 9]))
        for n in ns
    ],
)
def test_the_grade_decides(smoothness: int, judged: str) -> None:
    """0-4 approve, 5 read deeply, 6-7 revise, 8-9 reject."""
    assert judge_review(replace(GOOD, smoothness=smoothness)).judged == judged


@pytest.mark.parametrize("name", LABELS)
def test_a_missing_field_is_a_deviation(name: str) -> None:
    """Each of the eleven, left out, is named, and no work is approved unread then."""
    left_out: dict[str, Any] = {name: None if name in {"context", "self_correction", "smoothness"} else ""}
    missing = replace(GOOD, **left_out)
    verdict = judge_review(missing)
    assert missing.missing == (LABELS[name][0],)
    assert verdict.judged is (ReviewDecision.REVISE if name == "smoothness" else ReviewDecision.READ_DEEPLY)
    assert any(LABELS[name][0].lower() in reason.lower() for reason in verdict.reasons)


@given(REQUESTS)
def test_doubts_never_make_it_milder(request: ReviewRequest) -> None:
    """Leaving out a field, correcting oneself, a severe deviation or a worse grade never gives a milder verdict."""
    before = ORDER.index(judge_review(request).judged)
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
        assert ORDER.index(judge_review(replace(request, **change)).judged) >= before or (
            "self_correction" in change and request.self_correction is None
        )


def test_who_has_read_the_work_may_approve_it() -> None:
    """Reading settles doubts, never a bad grade or failing tests."""
    assert judge_review(replace(GOOD, smoothness=5), read=True).judged is ReviewDecision.APPROVE
    assert judge_review(replace(GOOD, self_correction=True)).judged is ReviewDecision.READ_DEEPLY
    assert judge_review(replace(GOOD, self_correction=True)).body == ""
    assert judge_review(replace(GOOD, self_correction=True, summary=""), read=True).judged is ReviewDecision.APPROVE
    assert judge_review(replace(GOOD, smoothness=6), read=True).judged is ReviewDecision.REVISE
    assert judge_review(replace(GOOD, tests="failing"), read=True).judged is ReviewDecision.REVISE
    assert judge_review(replace(GOOD, tests="10 tests failed"), read=True).judged is ReviewDecision.REVISE
    assert judge_review(replace(GOOD, smoothness=9, tests="2 errors"), read=True).judged is ReviewDecision.REJECT


def test_what_a_deep_reader_found_goes_back() -> None:
    """The worker is told what was wrong, and to revise just that, however well it graded itself."""
    verdict = sent_back(GOOD, "the parser reads nothing after a comment")
    assert verdict.judged is ReviewDecision.REVISE
    assert "Issue: the parser reads nothing after a comment" in verdict.body


def test_a_refusal_says_what_is_wanted() -> None:
    """The message names the issue, what is required and what to do then."""
    revise = judge_review(replace(GOOD, smoothness=7, reason=""))
    assert revise.body.startswith("REVIEW FAILED (Smoothness: 7/9), checkpoint 2:\nIssue: smoothness 7 of 9")
    assert "Required: Fill in: Reason. correct" in revise.body
    assert "Retry: ask for the review" in revise.body
    reject = judge_review(ReviewRequest(smoothness=9)).body
    assert reject.startswith("REVIEW FAILED (Smoothness: 9/9):\n")
    assert "last approved state" in reject
    assert judge_review(ReviewRequest()).body.startswith("REVIEW FAILED (Smoothness: ?/9):\n")
    assert judge_review(replace(GOOD, checkpoint=None)).body == "REVIEW APPROVED: the work. Go on."


def test_reviews_of_a_checkpoint_are_exhausted() -> None:
    """Five reviews of one checkpoint are answered; the sixth is a failure of its own kind."""
    assert all(review_exhausted(1, cycles) is None for cycles in range(6))
    found = review_exhausted(1, 6)
    assert found is not None
    assert (found.finding, found.text) == (Kind.REVIEW_EXHAUSTED, "checkpoint 1: 5 reviews without approval")
