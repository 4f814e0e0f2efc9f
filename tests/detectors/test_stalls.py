"""Stalls and context warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.request import Request
from rung.detectors.context_usage import ContextMonitor, ContextThresholds
from rung.detectors.stalls import StallThresholds, ToolDurations, durations_of, stalled

SECONDS = st.floats(0, 1e5)


@given(st.lists(SECONDS, max_size=50), SECONDS)
def test_what_usually_takes_so_long_is_no_stall(durations: list[float], took: float) -> None:
    """A usual duration gives no finding; one past every bound does."""
    patience = StallThresholds(min_seconds=10, max_seconds=200_000, default_seconds=50, silence_seconds=1e9)
    limit = patience.limit(durations)
    assert 10 <= limit <= 200_000
    found = stalled(now=took, began=0, durations=durations, thresholds=patience)
    assert (found is not None) == (took >= limit)
    if len(durations) < 5:
        assert limit == 50


def test_more_history_more_patience() -> None:
    """A kind of task that takes an hour is given two, one that takes ten seconds a minute."""
    patience = StallThresholds()
    assert patience.limit([3600.0] * 10) == 7200
    assert patience.limit([10.0] * 10) == 60
    assert patience.limit([10.0]) == 1800


def test_silence() -> None:
    """Silence is a stall long before the task is overdue; activity resets it."""
    found = stalled(now=301, began=0, what="the build")
    assert found is not None
    assert (found.rule, found.kind) == ("silent", "stalled")
    assert found.text == "the build has shown no activity for 301 s"
    assert stalled(now=301, began=0, last_sign=200) is None
    overdue = stalled(now=2000, began=0, last_sign=1999)
    assert overdue is not None
    assert overdue.rule == "overdue"


def test_durations_of_a_journal() -> None:
    """Durations of successful attempts are grouped by project, ladder and agent; failures do not count."""
    terms = ev.IncidentContext(ladder="task", policy="default", project="site")
    story: list[ev.Event] = [
        ev.Opened(at=0, id="a", terms=terms, request=Request(agent="coder")),
        ev.AttemptSucceeded(at=9, seconds=9.0, dollars=0),
    ]
    found = durations_of([story, story])
    assert found.of("site/task/coder") == (9.0, 9.0)
    assert found.of("other") == ()


@given(st.lists(st.tuples(st.sampled_from("abc"), SECONDS), max_size=60))
def test_durations_in_json_and_back(taken: list[tuple[str, float]]) -> None:
    """The history is bounded and serialisable."""
    durations = ToolDurations()
    for kind, seconds in taken:
        durations.record(kind, seconds)
    restored = ToolDurations.from_json(json.loads(json.dumps(durations.to_json())))
    assert restored.to_json() == durations.to_json()


def test_durations_are_bounded() -> None:
    """The number of kinds and of durations per kind is bounded; the latest stay."""
    durations = ToolDurations()
    for number in range(1000):
        durations.record(f"kind {number % 150}", float(number))
        durations.record("busy", float(number))
    assert len(durations.to_json()) == 100
    assert len(durations.of("busy")) == 200
    assert durations.of("busy")[-1] == 999


def test_a_context_that_fills_while_the_work_stands() -> None:
    """A filling context is reported once, and again only after progress and a new standstill."""
    watch = ContextMonitor()
    said = [
        watch.turn(used, 100, mark=mark)
        for used, mark in ((10, "a"), (30, "a"), (41, "a"), (60, "a"), (62, "b"), (80, "b"), (93, "b"))
    ]
    assert [found and found.rule for found in said] == [
        None,
        None,
        "context-filling",
        None,
        None,
        None,
        "context-filling",
    ]
    found = said[2]
    assert found is not None
    assert found.kind == "context_warning"


def test_a_context_ahead_of_the_work() -> None:
    """Where progress is known, context usage may not be far ahead of it."""
    watch = ContextMonitor(ContextThresholds(growth_share=1.0))
    assert watch.turn(30, 100, done=0.1) is None
    found = watch.turn(55, 100, done=0.1)
    assert found is not None
    assert found.text == "the context is 55% full, 10% of the work is done"


def test_thrash_after_compaction() -> None:
    """Three consecutive refills within five turns are thrashing; a longer interval resets the count."""

    def told(*turns: int) -> list[Any]:
        watch = ContextMonitor(ContextThresholds(growth_share=1.0))
        said = []
        for used in turns:
            if used < 0:
                watch.compacted(-used, 100)
            else:
                said.append(watch.turn(used, 100))
        return [found.rule for found in said if found is not None]

    assert told(-30, 85, -30, 60, 85, -30, 85) == ["context-thrash"]
    assert told(-30, 85, -30, 85, -30, 40, 41, 42, 43, 44, 45, 85, -30, 85) == []


def test_thrash_without_token_counts() -> None:
    """Compactions at most five turns apart count; a longer interval resets the count."""

    def told(*turns: int) -> list[int]:
        watch = ContextMonitor()
        found = [watch.full_again(apart) for apart in turns]
        return [one.count for one in found if one is not None]

    assert told(0, 5, 5, 0) == [3]
    assert told(0, 5, 5, 6, 5, 5) == []
    assert told(0, 5, 5, 6, 5, 5, 5, 1) == [3, 4]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.sampled_from(("a", "b", None)), st.booleans()), max_size=30),
    st.integers(0, 30),
)
def test_context_state_in_json_and_back(turns: list[tuple[int, str | None, bool]], at: int) -> None:
    """A monitor restored at any turn gives the same findings."""
    watch = ContextMonitor()
    other = watch
    for number, (used, mark, compacted) in enumerate(turns):
        if number == at:
            other = ContextMonitor.from_json(json.loads(json.dumps(watch.to_json())))
        for one in (watch, other) if other is not watch else (watch,):
            if compacted:
                one.compacted(used, 100)
        said = watch.turn(used, 100, mark=mark)
        if other is not watch:
            assert other.turn(used, 100, mark=mark) == said


@pytest.mark.parametrize(
    "make",
    [
        lambda: StallThresholds(factor=0),
        lambda: StallThresholds(samples=0),
        lambda: ContextThresholds(growth_share=2),
        lambda: ContextThresholds(soon_turns=0),
        lambda: ContextMonitor().turn(5, 0),
        lambda: ContextMonitor.from_json({}),
        lambda: ToolDurations.from_json([]),
        lambda: ToolDurations().record("a", -1),
    ],
)
def test_values_that_cannot_be(make: Any) -> None:
    """Invalid values are rejected."""
    with pytest.raises(ConfigError):
        make()


def test_silence_is_usual_for_a_long_task() -> None:
    """Ten minutes without activity are no stall where such tasks take twenty; without a history they are."""
    usual = [1_200.0] * 5
    assert stalled(now=600.0, began=0.0, durations=usual) is None
    found = [stalled(now=at, began=0.0, durations=times) for at, times in ((2_400.0, usual), (600.0, usual[:4]))]
    assert [finding.rule for finding in found if finding is not None] == ["silent", "silent"]
