"""Size of an error: how its text states it, and where it enters a ladder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.error_size import Size, size_of
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import preset
from rung.core.recovery.decide import decide

CREW = preset("crew")


def failure(kind: Kind, text: str = "") -> Failure:
    return Failure(kind, retryable=False, rule="test", message=text, evidence=Evidence(text=text))


def enters(kind: Kind, text: str = "") -> str:
    ladder = LADDERS["crew"]
    return ladder.rungs[ladder.entry_index(failure(kind, text))].name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no such file: a.py", Size.SIMPLE),
        ("ModuleNotFoundError: No module named x", Size.SIMPLE),
        ("7 tests failed after the merge", Size.COMPLEX),
        ("it deadlocks", Size.COMPLEX),
        ("not sure why, flaky", Size.UNCERTAIN),
        ("needs an architectural decision", Size.BEYOND),
        ("a typo, but the fix is out of scope: another task's files", Size.BEYOND),
        ("it broke", None),
        ("1 failed", None),
        ("", None),
    ],
)
def test_size_by_words(text: str, expected: Size | None) -> None:
    """The words of a report state its size, the larger first; most state none."""
    assert size_of(failure(Kind.UNKNOWN, text)) is expected
    assert size_of(failure(Kind.UNKNOWN)._replace(evidence=Evidence(text=text))) is expected


@given(st.text())
def test_any_text_has_a_size_or_none(text: str) -> None:
    """No text stops the reader."""
    assert size_of(failure(Kind.UNKNOWN, text)) in (None, *Size)


@pytest.mark.parametrize(
    ("kind", "text", "rung"),
    [
        (Kind.NOT_FOUND, "", "fix"),
        (Kind.TIMEOUT, "", "fix"),
        (Kind.UNKNOWN, "it broke", "investigate"),
        (Kind.UNKNOWN, "ImportError: x", "fix"),
        (Kind.TEST_FAILURE, "1 failed", "investigate"),
        (Kind.TEST_FAILURE, "a typo", "fix"),
        (Kind.LOW_QUALITY, "", "investigate"),
        (Kind.TOOL_ERROR, "it deadlocks", "investigate"),
        (Kind.NOT_FOUND, "the cause is unclear", "investigate"),
        (Kind.NOT_FOUND, "out of scope", "replan"),
        (Kind.SCOPE_CONFLICT, "a typo", "replan"),
        (Kind.GOAL_MISALIGNED, "flaky", "replan"),
        (Kind.BEYOND_AUTHORITY, "a typo", "replan"),
        (Kind.SERVICE_DOWN, "sometimes", "person"),
        (Kind.AUTH_ERROR, "out of scope", "person"),
    ],
)
def test_where_an_error_enters_the_crew_ladder(kind: Kind, text: str, rung: str) -> None:
    """A stated size decides, unless the kind needs a plan or a person; without a size the kind decides."""
    assert enters(kind, text) == rung


def test_the_decision_names_the_true_kind() -> None:
    """A size chooses the rung and leaves the kind as it was classified."""
    decision = decided(opened(), [], failure(Kind.TEST_FAILURE, "a typo in the name"))
    assert isinstance(decision, ev.Change)
    assert (decision.action, decision.reason) == (Action.FIX, Kind.TEST_FAILURE)


def opened(earlier: int = 0) -> ev.Opened:
    """An incident of a task that had so many errors in earlier ones."""
    used = (("fix", earlier),) if earlier else ()
    return ev.Opened(0.0, "i", ev.IncidentContext("crew", "default"), Request(prompt="x"), used=used)


def decided(first: ev.Opened, before: list[ev.Event], error: Failure) -> ev.Decision:
    """The decision about one more error; `before` grows by it."""
    before.append(ev.AttemptFailed(0.0, error, 0.0, 0.0, may_retry=True))
    decision = decide(Incident.of([first, *before]), error, CREW, 0.0, 0.5)
    before.append(ev.Decided(0.0, decision))
    return decision


@pytest.mark.parametrize("split", [(4,), (3, 1), (2, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("fifth", ["ImportError: foo", "it deadlocks", "it broke"])
def test_four_corrections_for_life_then_the_plan(split: tuple[int, ...], fifth: str) -> None:
    """Fixes of a task's earlier incidents count: the fifth error is neither fixed nor investigated, in any incident."""
    errors = 0
    for count in split:
        first, events = opened(errors), list[ev.Event]()
        for _ in range(count):
            decision = decided(first, events, failure(Kind.NOT_FOUND, f"no such file {errors}"))
            assert isinstance(decision, ev.Change)
            assert decision.action is Action.FIX
            errors += 1
    for last in (
        decided(first, events, failure(Kind.UNKNOWN, fifth)),
        decided(opened(4), [], failure(Kind.UNKNOWN, fifth)),
    ):
        assert isinstance(last, ev.Change)
        assert last.action is Action.REPLAN
