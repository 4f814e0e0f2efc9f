"""Preset ladders, row by row as designed."""

from __future__ import annotations

import pytest

from rung.core.domain.failures import GROUPS, Evidence, Failure, Kind
from rung.core.domain.ladder import Ladder, RungScope
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import preset

Row = tuple[str, int, float | None]

# name, tries, seconds; the tries of an ending are one.
RUNGS: dict[str, list[Row]] = {
    "task": [
        ("retry", 3, 30),
        ("nudge", 3, 300),
        ("replan", 1, 900),
        ("fallback", 9, 1200),
        ("force-done", 1, 60),
    ],
    "call": [
        ("retry", 3, None),
        ("raise-limit", 1, None),
        ("resume", 3, None),
        ("compact", 1, None),
        ("repair", 1, None),
        ("fallback", 1, None),
        ("surface", 1, None),
    ],
    "pipeline": [
        ("retry", 2, None),
        ("nudge", 1, None),
        ("respawn", 3, None),
        ("restructure", 1, None),
        ("ask", 1, None),
    ],
    "model": [
        ("retry", 3, None),
        ("retry-with-context", 1, None),
        ("escalate", 9, None),
        ("surface", 1, None),
    ],
    "crew": [
        ("fix", 4, None),
        ("investigate", 3, None),
        ("replan", 3, None),
        ("person", 1, None),
    ],
}
# What the design says of entries, and what follows from a rung's name.
ENTRIES: list[tuple[str, Kind, str]] = [
    *[("task", kind, "retry") for kind in (Kind.TIMEOUT, Kind.RATE_LIMIT)],
    *[
        ("task", kind, "nudge")
        for kind in (Kind.NOT_FOUND, Kind.PERMISSION_DENIED, Kind.MALFORMED_OUTPUT, Kind.UNKNOWN)
    ],
    ("task", Kind.GOAL_MISALIGNED, "replan"),
    ("task", Kind.ARCHITECTURAL_BLOCKER, "replan"),
    ("task", Kind.TEST_FAILURE, "replan"),
    ("crew", Kind.ARCHITECTURAL_BLOCKER, "replan"),
    ("task", Kind.CAPABILITY_MISMATCH, "fallback"),
    ("task", Kind.SERVICE_DOWN, "fallback"),
    ("task", Kind.MISSING_CREDENTIALS, "force-done"),
    ("call", Kind.OUTPUT_LIMIT, "raise-limit"),
    ("call", Kind.PARTIAL_OUTPUT, "resume"),
    ("call", Kind.CONTEXT_LIMIT, "compact"),
    ("call", Kind.SERVICE_DOWN, "fallback"),
    ("call", Kind.INVALID_REQUEST, "repair"),
    ("call", Kind.AUTH_ERROR, "surface"),
    ("pipeline", Kind.PARTIAL_OUTPUT, "nudge"),
    ("pipeline", Kind.TURNS_EXHAUSTED, "respawn"),
    ("pipeline", Kind.SCOPE_CONFLICT, "restructure"),
    ("pipeline", Kind.STRATEGIC_AMBIGUITY, "ask"),
    ("model", Kind.MALFORMED_OUTPUT, "retry"),
    ("model", Kind.TEST_FAILURE, "retry-with-context"),
    ("model", Kind.CAPABILITY_MISMATCH, "escalate"),
    ("model", Kind.MISSING_CREDENTIALS, "surface"),
    ("crew", Kind.TOOL_ERROR, "fix"),
    ("crew", Kind.UNKNOWN, "investigate"),
    ("crew", Kind.REVIEW_EXHAUSTED, "replan"),
    ("crew", Kind.STRATEGIC_AMBIGUITY, "person"),
]


def enters(ladder: Ladder, kind: Kind, repeats: int = 0) -> str:
    failure = Failure(kind=kind, retryable=False, rule="x", evidence=Evidence(repeats=repeats))
    return ladder.rungs[ladder.entry_index(failure)].name


def test_five_ship() -> None:
    """Five ladders ship, each with its own name and a word about what it is for."""
    assert list(LADDERS) == list(RUNGS)
    assert all(ladder.name == name and ladder.about for name, ladder in LADDERS.items())


@pytest.mark.parametrize("name", RUNGS)
def test_rungs(name: str) -> None:
    """Each ladder has the rungs of the design, with their tries and seconds."""
    assert [(rung.name, rung.tries, rung.seconds) for rung in LADDERS[name].rungs] == RUNGS[name]


@pytest.mark.parametrize(("name", "kind", "rung"), ENTRIES)
def test_entries(name: str, kind: Kind, rung: str) -> None:
    """Each kind the design speaks of enters where it says."""
    assert enters(LADDERS[name], kind) == rung


@pytest.mark.parametrize("name", [name for name in RUNGS if RUNGS[name][0][0] == "retry"])
def test_transient_first(name: str) -> None:
    """Where a ladder begins with retry, everything transient enters there, and retry alone starts afresh."""
    ladder = LADDERS[name]
    assert {enters(ladder, kind) for kind in GROUPS["transient"]} == {"retry"}
    assert [rung.name for rung in ladder.rungs if rung.scope is RungScope.ACTION] == ["retry"]


@pytest.mark.parametrize("name", RUNGS)
def test_the_hopeless_go_straight_to_the_end(name: str) -> None:
    """Without a key, with a refused one or without money no rung but the last is tried."""
    for kind in (Kind.MISSING_CREDENTIALS, Kind.AUTH_ERROR, Kind.BUDGET_EXHAUSTED):
        assert enters(LADDERS[name], kind) == LADDERS[name].rungs[-1].name


@pytest.mark.parametrize(
    ("repeats", "rung"),
    [
        (0, "replan"),
        (3, "replan"),
        (4, "replan"),
        (5, "fallback"),
        (7, "fallback"),
        (8, "force-done"),
        (99, "force-done"),
    ],
)
def test_loops_on_the_task_ladder(repeats: int, rung: str) -> None:
    """A loop enters the higher the more often it has turned: replan, from 5 fallback, from 8 the end."""
    assert enters(LADDERS["task"], Kind.LOOP_DETECTED, repeats) == rung


def test_numbering() -> None:
    """The pipeline's levels begin at L0, those of the others at 1."""
    assert {name: ladder.level(0) for name, ladder in LADDERS.items()} == {
        "task": 1,
        "call": 1,
        "pipeline": 0,
        "model": 1,
        "crew": 1,
    }


def test_what_each_rung_can_help_with() -> None:
    """Rungs that mend one thing only are passed over for all else."""
    helps = {
        (name, rung.name): rung.applies_to
        for name, ladder in LADDERS.items()
        for rung in ladder.rungs
        if rung.applies_to
    }
    assert helps["call", "raise-limit"] == {Kind.OUTPUT_LIMIT}
    assert helps["call", "compact"] == {Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING}
    assert Kind.OUTPUT_LIMIT in helps["call", "resume"]
    assert helps["pipeline", "restructure"] == {Kind.SCOPE_CONFLICT, Kind.CLAIM_BLOCKED}
    assert Kind.SERVICE_DOWN not in helps["task", "force-done"]
    assert Kind.TEST_FAILURE in helps["task", "force-done"]


def test_only_small_gaps_are_nudged() -> None:
    """On the pipeline a nudge is for at most two missing sections."""
    assert [rung.max_missing_sections for rung in LADDERS["pipeline"].rungs] == [None, 2, None, None, None]


def test_one_fallback_for_each_session() -> None:
    """The call ladder's fallback is counted for the whole session."""
    assert [rung.name for rung in LADDERS["call"].rungs if rung.scope is RungScope.SESSION] == ["fallback"]


def test_waits_on_the_model_ladder() -> None:
    """Its repeats wait 1, 2, 4 … seconds and at most 30."""
    assert [preset("model").backoff.ceiling(n) for n in (1, 2, 3, 9)] == [1, 2, 4, 30]
