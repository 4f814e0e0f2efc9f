"""Errors of workers: how large, what is proposed, when it is enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify import classify
from rung.core.failures import Evidence, Failure, Kind
from rung.core.fixing import ErrorReport, Proposal, Size, entering, no_progress, size
from rung.core.presets import LADDERS

TEXTS = st.text(max_size=60).map(str.strip)
SOME = TEXTS.filter(bool)


def failure(kind: Kind, text: str = "") -> Failure:
    return Failure(kind, retryable=False, rule="test", message=text, evidence=Evidence(text=text))


@given(SOME, SOME, SOME, st.integers(1, 5))
def test_a_proposal_is_read_as_it_was_written(cause: str, fix: str, afterwards: str, number: int) -> None:
    """Cause, fix and what to do then come back from the message."""
    proposal = Proposal(root_cause=cause, fix=fix, afterwards=afterwards)
    assert Proposal.parse(proposal.body(number)) == proposal


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No text stops a reader; one without cause or fix is no proposal."""
    assert Proposal.parse(text) is None or "root cause" in text.lower()
    assert isinstance(ErrorReport.parse(text).error, str)
    assert size(failure(Kind.UNKNOWN, text), text) in Size


def test_a_proposal_needs_a_cause_and_a_fix() -> None:
    """What is left out at the end has a default; a cause or a fix has not."""
    proposal = Proposal.parse("FIX PROPOSAL (Retry 1/5):\n Root cause: a typo\n Fix: write it right")
    assert proposal == Proposal(root_cause="a typo", fix="write it right")
    assert Proposal.parse("Root cause: a typo") is None
    assert Proposal.parse("Fix: it\nRoot cause:") is None


@given(SOME, st.one_of(st.none(), st.integers(0, 100)), st.sampled_from([True, False, None]))
def test_an_error_is_read_as_it_was_written(error: str, context: float | None, corrected: bool | None) -> None:
    """The report of an error comes back from its message."""
    report = ErrorReport(error=f"x {error} y", context=context, self_correction=corrected, report="docs/e.md")
    assert ErrorReport.parse(report.body(2)) == report


def test_an_error_in_a_workers_own_words() -> None:
    """The documented layout, and plain text, are both read."""
    report = ErrorReport.parse(
        """ERROR (Retry 2/5):
     Context Usage: 44%
     Self-Correction: NO
     Error: cannot import name Parser
     Report: docs/reports/task-03-error-retry-2.md
     Awaiting conductor fix proposal"""
    )
    assert report == ErrorReport(
        error="cannot import name Parser",
        context=44,
        self_correction=False,
        report="docs/reports/task-03-error-retry-2.md",
    )
    assert ErrorReport.parse(" it broke\n").error == "it broke"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Kind.NOT_FOUND, "no such file: a.py", Size.SIMPLE),
        (Kind.UNKNOWN, "ModuleNotFoundError: No module named x", Size.SIMPLE),
        (Kind.UNKNOWN, "it broke", Size.UNCERTAIN),
        (Kind.TEST_FAILURE, "1 failed", Size.COMPLEX),
        (Kind.TOOL_ERROR, "7 tests failed after the merge", Size.COMPLEX),
        (Kind.TOOL_ERROR, "it deadlocks", Size.COMPLEX),
        (Kind.TEST_FAILURE, "not sure why, flaky", Size.UNCERTAIN),
        (Kind.TEST_FAILURE, "needs an architectural decision", Size.BEYOND),
        (Kind.TOOL_ERROR, "the fix is out of scope: another task's files", Size.BEYOND),
        (Kind.BEYOND_AUTHORITY, "a typo", Size.BEYOND),
        (Kind.MISSING_CREDENTIALS, "", Size.BEYOND),
        (Kind.TIMEOUT, "", Size.SIMPLE),
        (Kind.LOW_QUALITY, "", Size.COMPLEX),
    ],
)
def test_how_large_a_problem_is(kind: Kind, text: str, expected: Size) -> None:
    """Its kind and the words of the report decide, the larger first."""
    assert size(failure(kind), text) is expected
    assert size(failure(kind, text)) is expected


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_size(kind: Kind) -> None:
    """No kind falls through; what nobody could name is uncertain."""
    assert (size(failure(kind)) is Size.UNCERTAIN) == (kind is Kind.UNKNOWN)


def test_two_corrections_in_vain_are_no_progress() -> None:
    """The third time the same error comes it is said; other errors between do not hide it."""
    assert not no_progress([])
    assert not no_progress(["a", "a"])
    assert no_progress(["a", "a", "a"])
    assert no_progress(["a", "b", "a", "b", "a"])
    assert not no_progress(["a", "a", "b"])


@pytest.mark.parametrize(
    ("kind", "how_large", "tries", "rung"),
    [
        (Kind.NOT_FOUND, Size.SIMPLE, 1, "fix"),
        (Kind.UNKNOWN, Size.SIMPLE, 5, "fix"),
        (Kind.TEST_FAILURE, Size.SIMPLE, 1, "fix"),
        (Kind.TOOL_ERROR, Size.COMPLEX, 1, "investigate"),
        (Kind.NOT_FOUND, Size.UNCERTAIN, 1, "investigate"),
        (Kind.NOT_FOUND, Size.BEYOND, 1, "replan"),
        (Kind.NOT_FOUND, Size.SIMPLE, 6, "replan"),
        (Kind.AUTH_ERROR, Size.BEYOND, 1, "person"),
    ],
)
def test_where_an_error_enters_the_crews_ladder(kind: Kind, how_large: Size, tries: int, rung: str) -> None:
    """By its size, and after five tries of the task's life at the plan; what only a person can mend goes to one."""
    ladder = LADDERS["crew"]
    failure = entering(classify(Evidence(text="x", finding=kind)), how_large, tries, ladder)
    assert ladder.rungs[ladder.enter(failure)].name == rung
