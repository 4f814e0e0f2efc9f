"""Where a policy learns, the first climb begins at the rung that helped before; and never anywhere worse."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.parser import parse_ladder
from rung.core.policy.parser import policy as make
from rung.core.recovery.decide import decide

OPENED = ev.Opened(10.0, "i1", ev.IncidentContext("task", "default"), Request(prompt="do it", model="small"), 1_000.0)


def failed(kind: Kind = Kind.NOT_FOUND, **more: Any) -> ev.AttemptFailed:
    failure = Failure(kind=kind, retryable=True, rule="x", message="gone", evidence=Evidence(**more))
    return ev.AttemptFailed(11.0, failure, 1.0, 0.0, may_retry=True)


def decided(rung: int, kind: Kind = Kind.NOT_FOUND, *, before: tuple[ev.Event, ...] = (), **settings: Any) -> Any:
    """What is decided about a failure when this rung is remembered."""
    first = failed(kind)
    incident = Incident.of([OPENED, first, ev.Hinted(11.0, rung, "it worked"), *before])
    policy = make(settings.pop("ladder", "task"), **{"models": ["small", "large"], "learn": True, **settings})
    return decide(incident, first.failure, policy, 12.0, 0.5)


def test_a_hint_is_remembered() -> None:
    """Folding a hint keeps its rung, and moves nothing else."""
    incident = Incident.of([OPENED])
    assert incident.hint == -1
    incident.fold(ev.Hinted(11.0, 2, "replan worked last time"))
    assert incident.hint == 2
    assert (incident.rung, incident.path, incident.decision) == (-1, (), None)


def test_the_first_climb_begins_there() -> None:
    """The rung that helped is taken at once, and the reason says why."""
    decision = decided(2)
    assert (decision.rung, decision.action) == (2, Action.REPLAN)
    assert decision.reason == "not_found: replan worked last time"
    over = decided(3)
    assert (over.rung, over.model, over.reason) == (3, "large", "not_found: fallback worked last time")


def test_also_instead_of_a_repeat() -> None:
    """What never helped to repeat is not repeated first."""
    assert isinstance(decided(-1, Kind.OVERLOADED), ev.Repeat)
    assert decided(3, Kind.OVERLOADED).reason == "overloaded: fallback worked last time"


def test_off_unless_asked_for() -> None:
    """A policy that does not learn passes a hint over; that is the default."""
    assert decided(2, learn=False).action is Action.NUDGE
    assert not make("task").learn.enabled
    with pytest.raises(ConfigError, match="learn"):
        make("task", learn="yes")  # type: ignore[arg-type]  # the mistake that is tested


@pytest.mark.parametrize("rung", [-1, 0, 1, 5, 99])
def test_never_lower_and_never_outside(rung: int) -> None:
    """A hint below or at the entry rung changes nothing, nor does one this ladder does not have."""
    decision = decided(rung)
    assert (decision.rung, decision.reason) == (1, "not_found")


def test_never_to_an_end() -> None:
    """The last rung is come to by climbing only, whatever is remembered."""
    assert decided(4).rung == 1
    assert decided(6, Kind.SERVER_ERROR, ladder="call").rung == 0


def test_never_to_a_repeat() -> None:
    """A repeat further up has its own rules, and is come to by climbing."""
    rungs = [{"action": "nudge"}, {"action": "retry", "tries": 3}, {"action": "surface"}]
    assert decided(1, Kind.OVERLOADED, ladder=parse_ladder({"rungs": rungs})).rung == 0


def test_never_to_a_rung_that_cannot_help_now() -> None:
    """Where it cannot be taken this time, the ladder begins as it always does: nothing cheaper is passed over."""
    decision = decided(3, models=["small"])
    assert (decision.rung, decision.action, decision.skipped) == (1, Action.NUDGE, ())
    assert decided(3, Kind.OVERLOADED, models=[]).rung == 0


def test_never_to_a_question() -> None:
    """What a person would have to agree to is not begun with, nor is anything blocked by a hint."""
    assert decided(3, confirm="always").rung == 1


def test_only_the_first_decision() -> None:
    """Once something was decided the ladder goes on by itself."""
    before = (ev.Decided(11.0, ev.Repeat(0, 1.0, "again")),)
    assert decided(2, before=before).rung == 1


def test_caps_stand_over_it() -> None:
    """No hint goes past a cap."""
    assert isinstance(decided(2, attempts=1), ev.Finish)
