"""Ladders: validation, and entry rungs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.ladder import ENDING_ACTIONS, HANDOVER_ACTIONS, Action, Ladder, Rung, RungScope

RETRY = Rung(action=Action.RETRY, scope=RungScope.ACTION)
NUDGE = Rung(action=Action.NUDGE)
END = Rung(action=Action.FORCE_DONE)
SMALL = Ladder(
    name="small",
    rungs=(RETRY, NUDGE, END),
    entry={Kind.TIMEOUT: "retry", Kind.AUTH_ERROR: "force-done"},
    default_entry="nudge",
    loops=((8, "force-done"), (3, "nudge")),
    base_level=0,
)


def failure(kind: Kind, repeats: int = 0) -> Failure:
    return Failure(kind=kind, retryable=False, rule="x", evidence=Evidence(repeats=repeats))


def test_a_rung_is_named_after_its_action() -> None:
    """Without a name a rung is called as its action, and it repeats only when its tries start afresh."""
    assert (NUDGE.name, NUDGE.tries, NUDGE.seconds, NUDGE.scope) == ("nudge", 1, None, RungScope.INCIDENT)
    assert RETRY.is_retry
    assert not NUDGE.is_retry
    assert Rung(action=Action.NUDGE, name="push").name == "push"
    assert not Rung(action=Action.RETRY).is_retry


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", 5),
        ("name", None),
        ("tries", -1),
        ("tries", 1.5),
        ("tries", True),
        ("tries", "3"),
        ("tries", None),
        ("tries", math.nan),
        ("seconds", -1),
        ("seconds", math.nan),
        ("seconds", math.inf),
        ("seconds", 10**400),
        ("seconds", True),
        ("seconds", "30"),
        ("max_missing_sections", -1),
        ("max_missing_sections", 1.5),
        ("max_missing_sections", True),
        ("rollback", 1),
        ("rollback", None),
        ("cost", -0.01),
        ("cost", math.nan),
        ("cost", math.inf),
        ("cost", None),
        ("cost", False),
    ],
)
def test_what_a_rung_cannot_be(key: str, value: Any) -> None:
    """A rung's setting that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        Rung(action=Action.NUDGE, **{key: value})
    assert raised.value.key == key
    assert raised.value.value is value


@pytest.mark.parametrize("action", [action for action in Action if action is not Action.RETRY])
def test_only_retry_starts_afresh(action: Action) -> None:
    """No other rung may have its tries forgotten after a climb: it would never be spent."""
    with pytest.raises(ConfigError, match="scope: 'action'"):
        Rung(action=action, scope=RungScope.ACTION)


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"rungs": ()}, "rungs", []),
        ({"rungs": (RETRY, NUDGE, NUDGE, END)}, "rungs.name", "nudge"),
        ({"rungs": (RETRY, NUDGE)}, "rungs", "nudge"),
        ({"rungs": (RETRY, END, NUDGE, Rung(action=Action.ASK))}, "rungs", "force-done"),
        ({"default_entry": "hope"}, "default_entry", "hope"),
        ({"default_entry": ""}, "default_entry", ""),
        ({"entry": {Kind.TIMEOUT: "wait"}}, "entry.timeout", "wait"),
        ({"loops": ((0, "nudge"),)}, "loops", 0),
        ({"loops": ((3, "stop"),)}, "loops.3", "stop"),
    ],
)
def test_what_a_ladder_cannot_be(changes: dict[str, Any], key: str, value: Any) -> None:
    """A ladder that leads nowhere is refused at once, with the key, the value and what is allowed."""
    with pytest.raises(ConfigError) as raised:
        replace(SMALL, **changes)
    assert (raised.value.key, raised.value.value) == (key, value)
    assert raised.value.allowed


@pytest.mark.parametrize("ending", sorted(ENDING_ACTIONS))
def test_a_ladder_may_be_its_ending_alone(ending: Action) -> None:
    """Any of the three endings may be last, and the last may be all there is."""
    ladder = Ladder(name="x", rungs=(Rung(action=ending),), entry={}, default_entry=ending.value)
    assert {ladder.entry_index(failure(kind)) for kind in Kind} == {0}


@given(st.sampled_from(list(Kind)), st.integers(0, 20))
@example(Kind.LOOP_DETECTED, 7)
@example(Kind.LOOP_DETECTED, 8)
def test_where_a_failure_enters(kind: Kind, repeats: int) -> None:
    """A kind enters where `entry` says, else where `default_entry` says, and a loop by how often it has turned."""
    expected = {Kind.TIMEOUT: 0, Kind.AUTH_ERROR: 2}.get(kind, 1)
    if kind is Kind.LOOP_DETECTED and repeats >= 8:
        expected = 2
    assert SMALL.entry_index(failure(kind, repeats)) == expected


def test_loops_are_kept_in_order() -> None:
    """Limits of repeats may be given in any order."""
    assert SMALL.loops == ((3, "nudge"), (8, "force-done"))
    assert replace(SMALL, loops=((1, "nudge"),)).entry_index(failure(Kind.LOOP_DETECTED, 1)) == 1


def test_levels_and_names() -> None:
    """A rung is found by its name, and has the number people know it by."""
    assert [SMALL.index(rung.name) for rung in SMALL.rungs] == [0, 1, 2]
    assert [SMALL.level(n) for n in range(3)] == [0, 1, 2]
    assert replace(SMALL, base_level=1).level(2) == 3
    with pytest.raises(ConfigError) as raised:
        SMALL.index("hope")
    assert (raised.value.key, raised.value.value, raised.value.allowed) == ("rung", "hope", "retry, nudge, force-done")


def test_entry_cannot_be_changed_behind_its_back() -> None:
    """A ladder keeps its own copy of the entries, and ladders built of the same data are equal."""
    entry = {Kind.TIMEOUT: "retry", Kind.AUTH_ERROR: "force-done"}
    ladder = replace(SMALL, entry=entry)
    entry[Kind.TIMEOUT] = "nudge"
    assert ladder == SMALL
    with pytest.raises(TypeError):
        ladder.entry[Kind.TIMEOUT] = "nudge"  # type: ignore[index]  # that is the point


def test_actions_are_sorted_into_sets() -> None:
    """Hand-overs and endings are different things."""
    assert sorted(HANDOVER_ACTIONS) == ["escalate", "fallback"]
    assert sorted(ENDING_ACTIONS) == ["ask", "force-done", "surface"]


def test_a_wait_is_just_below_the_end() -> None:
    """A wait rung elsewhere, or as an entry, is refused with its place."""
    wait, end = Rung(action=Action.WAIT, seconds=60), Rung(action=Action.ASK)
    with pytest.raises(ConfigError, match="just below the end"):
        Ladder(name="x", rungs=(wait, Rung(action=Action.NUDGE), end), entry={}, default_entry="ask")
    with pytest.raises(ConfigError, match="default_entry"):
        Ladder(name="x", rungs=(wait, end), entry={}, default_entry="wait")
