"""Learned skips: a try is left out only if it surely helps less than the next rung, and the ladder keeps its order."""

from __future__ import annotations

from typing import Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.policy.parser import policy as make
from rung.core.recovery.backtest import replay
from rung.core.recovery.decide import decide
from rung.core.recovery.learned_skips import RungCount, explores, learned_skips

REQUEST = rung.Request(prompt="do it", model="small")
NAMES = tuple(each.name for each in make("task").ladder.rungs)
CONTEXT = ev.IncidentContext("task", "default", rungs=NAMES)
OPENED = ev.Opened(10.0, "i", CONTEXT, request=REQUEST)
NUDGE_HELPS_LESS = ev.LearnedSkip(1, 1, 3, "learned: it helps less")


def task(**settings: Any) -> Any:
    return make("task", **{"models": ["small", "large"], "learn": True, **settings})


def count(name: str, succeeded: int, tried: int = 100, number: int = 1, model: str = "small") -> RungCount:
    return RungCount(model, "gave_up", name, number, tried, succeeded)


def skips(*counts: RungCount, model: str = "small", **settings: Any) -> list[tuple[str, int, str]]:
    """The tries left out after `gave_up`: rung, first number, rung instead."""
    found = learned_skips(counts, task(**settings), Kind.GAVE_UP, model)
    return [(NAMES[skip.rung], skip.number, NAMES[skip.instead]) for skip in found]


def decided(
    *learned: ev.LearnedSkip, kind: Kind = Kind.GAVE_UP, before: tuple[ev.Event, ...] = (), **settings: Any
) -> Any:
    """What is decided after a failure when these tries were learned to be left out."""
    failed = failure(kind)
    events = [OPENED, failed, ev.Learned(11.0, kind.value, learned), *before]
    return decide(Incident.of(events), failed.failure, task(**settings), 12.0, 0.5)


def failure(kind: Kind = Kind.GAVE_UP) -> ev.AttemptFailed:
    return ev.AttemptFailed(11.0, Failure(kind, True, "x", "no", evidence=Evidence()), 1.0, 0.0, may_retry=True)


def test_a_rung_that_helps_less_than_the_next() -> None:
    """The interval of the rung must end below that of the next one."""
    assert skips(count("nudge", 5), count("replan", 40), count("fallback", 40)) == [("nudge", 1, "replan")]
    assert skips(count("nudge", 30), count("replan", 40), count("fallback", 40)) == []


def test_rungs_that_help_less_than_one_further_up() -> None:
    """A rung that is left out itself is no reason to keep the one below it."""
    found = skips(count("nudge", 5), count("replan", 6), count("fallback", 50))
    assert found == [("nudge", 1, "fallback"), ("replan", 1, "fallback")]


def test_the_last_rung_stays() -> None:
    """However little the top of the path helps, it is not left out; nor is a rung below one without data."""
    assert skips(count("nudge", 5), count("replan", 0), count("fallback", 0)) == []
    assert skips(count("nudge", 0), count("fallback", 90)) == []


def test_only_later_tries() -> None:
    """The first try of a rung may be worth it when the later ones are not."""
    counts = [count("nudge", 40), count("nudge", 1, number=2), count("nudge", 1, number=3)]
    assert skips(*counts, count("replan", 40), count("fallback", 40)) == [("nudge", 2, "replan")]


def test_too_few_tries() -> None:
    """Nothing is left out with fewer tries than the policy asks for, of the rung or of the next one."""
    few = [count("nudge", 0, 29), count("replan", 29, 29), count("fallback", 20, 29)]
    assert skips(*few) == []
    assert skips(*few, learn={"enabled": True, "min_attempts": 29}) == [("nudge", 1, "replan")]
    assert skips(count("nudge", 0), count("replan", 29, 29), count("fallback", 20, 29)) == []


def test_a_model_with_data_of_its_own() -> None:
    """The counts of a model decide for it; where they are too few, those of all models of the project."""
    counts = [count("nudge", 5, 400), count("replan", 200, 400), count("fallback", 200, 400)]
    own = [count("nudge", 50, model="large"), count("replan", 50, model="large"), count("fallback", 50, model="large")]
    assert skips(*counts, *own, model="large") == []
    assert skips(*counts, *own, model="small") == [("nudge", 1, "replan")]
    assert skips(*counts, *own, model="new") == skips(*counts, *own, model="") == [("nudge", 1, "replan")]


def test_the_reason_states_both_rates() -> None:
    """A skip says what it rests on."""
    (skip,) = learned_skips([count("nudge", 5), count("replan", 40), count("fallback", 40)], task(), Kind.GAVE_UP, "")
    assert skip.reason == ("learned: 5 of 100 tries (2 to 11 %) helped, of replan 40 of 100 tries (31 to 50 %)")


def test_no_counts_no_skips() -> None:
    """An empty journal teaches nothing, about any kind."""
    assert all(learned_skips([], task(), kind, "small") == () for kind in Kind)


def test_what_was_learned_is_decided_and_told() -> None:
    """The next rung is taken, and the decision lists what it left out, and why."""
    plain, learned = decided(), decided(NUDGE_HELPS_LESS, NUDGE_HELPS_LESS._replace(rung=2))
    assert (plain.rung, learned.rung, learned.model) == (1, 3, "large")
    assert learned.skipped == ((1, "learned: it helps less"), (2, "learned: it helps less"))


def test_retries_are_left_out_as_well() -> None:
    """A retry yields to a handover that helps more."""
    skip = ev.LearnedSkip(0, 1, 3, "learned: retries help less")
    assert isinstance(decided(kind=Kind.OVERLOADED), ev.Repeat)
    assert decided(skip, kind=Kind.OVERLOADED).model == "large"
    again = (ev.Decided(11.5, ev.Repeat(0, 1.0, "again")),)
    later = skip._replace(number=2)
    assert isinstance(decided(later, kind=Kind.OVERLOADED), ev.Repeat)
    assert decided(later, kind=Kind.OVERLOADED, before=again).skipped[0] == (0, "learned: retries help less")


@pytest.mark.parametrize(
    "settings",
    [{"models": ["small"]}, {"confirm": "always"}, {"learn": False}, {"entry": {"gave_up": "replan"}}],
    ids=["no other model", "a person must approve", "off", "entry above"],
)
def test_the_ladder_keeps_its_order(settings: dict[str, Any]) -> None:
    """Where the rung that helps more cannot be taken at once, or the policy does not learn, nothing is left out."""
    assert decided(NUDGE_HELPS_LESS, **settings) == decided(**settings)


def test_caps_stand_over_it() -> None:
    """Nothing learned goes past a cap."""
    assert isinstance(decided(NUDGE_HELPS_LESS, attempts=1), ev.Finish)


def test_an_incident_that_explores() -> None:
    """It takes the ladder's own order; the share of such incidents is that of the policy, fixed by their ids."""
    incident = Incident.of([OPENED, failure(), ev.Learned(11.0, "gave_up", (NUDGE_HELPS_LESS,), explored=True)])
    assert incident.learned == {"gave_up": ()}
    assert decide(incident, failure().failure, task(), 12.0, 0.5) == decided()
    shares = [sum(explores(f"incident-{n}", share) for n in range(2_000)) / 2_000 for share in (0.0, 0.1, 0.5)]
    assert shares == pytest.approx([0.0, 0.1, 0.5], abs=0.03)


def test_a_replay_decides_the_same() -> None:
    """What was learned is in the events: written and read back, they lead to the same decision, on renamed ladders as well."""
    learned = ev.Learned(11.0, "gave_up", (NUDGE_HELPS_LESS, NUDGE_HELPS_LESS._replace(rung=2)))
    decision = ev.Decided(11.0, decided(*learned.skips))
    end = ev.AttemptSucceeded(13.0, 1.0, 0.0)
    events = [from_json(to_json(event)) for event in (OPENED, failure(), learned, decision, end)]
    assert events[2] == learned
    assert replay(events, task()).is_same
    plain = replay(events, task(learn=False))
    assert plain.point is not None
    assert plain.point.instead == "changed the request (nudge)"
