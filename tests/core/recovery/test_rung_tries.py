"""Tries of rungs are read from recorded incidents: what each answered, its number, its result and its cost."""

from __future__ import annotations

from typing import Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.recovery.resume_point import process_death_failure
from rung.core.recovery.rung_tries import tries_of
from rung.testing import FakeClock, HttpError, Script

BUSY = HttpError(529, "overloaded")
GAVE_UP = rung.AttemptError("cannot do it", finding="gave_up")


def recorded(*script: Any, **settings: Any) -> list[ev.Event]:
    """The events of a recovery whose attempts take 2 seconds and cost 0.1 dollars each."""
    clock, play = FakeClock(), Script(*script)

    def attempt(request: rung.Request) -> Any:
        clock.advance(2)
        rung.report_cost(0.1)
        return play(request)

    policy = rung.policy("task", report="", backoff={"base": 1, "jitter": False}, **settings)
    quiet: dict[str, Any] = {"breakers": rung.BreakerRegistry(), "retry_budget": None, "jitter": lambda: 0.5}
    request = rung.Request(prompt="do it", model="small")
    return list(rung.recover_sync(attempt, request, policy=policy, clock=clock, **quiet).events)


def test_every_rung_with_its_kind_and_number() -> None:
    """Retries count anew after a climb, other rungs in the whole incident; a retry's wait is part of its seconds."""
    found = tries_of(recorded(BUSY, GAVE_UP, GAVE_UP, BUSY, "done"))
    assert [(one.kind.value, one.rung, one.number, one.succeeded) for one in found.tries] == [
        ("overloaded", "retry", 1, False),
        ("gave_up", "nudge", 1, False),
        ("gave_up", "nudge", 2, False),
        ("overloaded", "retry", 1, True),
    ]
    assert [one.seconds for one in found.tries] == pytest.approx([3, 2, 2, 3])
    assert [one.dollars for one in found.tries] == pytest.approx([0.1] * 4)
    assert (found.model, found.ladder, found.recovered) == ("small", "task", True)


def test_a_forced_last_turn_is_no_try() -> None:
    """A partial end is not a recovery, and the turn before it not a try of a rung."""
    found = tries_of(recorded(*[GAVE_UP] * 5, "what there is"))
    assert [one.rung for one in found.tries] == ["nudge"] * 3 + ["replan"]
    assert not found.recovered


def test_waits_for_a_service_are_no_tries() -> None:
    """Attempts after a wait for a failing service answer no rung."""
    found = tries_of(recorded(*[BUSY] * 8, "done", patience=300))
    assert [one.rung for one in found.tries] == ["retry"] * 3


def test_a_handover_is_a_try_of_its_rung() -> None:
    """Another model counts for the rung that handed over."""
    found = tries_of(
        recorded(rung.AttemptError("too hard", finding="capability_mismatch"), "done", models=["small", "large"])
    )
    assert [(one.rung, one.succeeded) for one in found.tries] == [("fallback", True)]


def test_an_attempt_whose_process_died_is_no_try() -> None:
    """The try is the attempt that is made again."""
    events = recorded(GAVE_UP, "done")
    place = next(n for n, event in enumerate(events) if isinstance(event, ev.AttemptSucceeded))
    death = ev.AttemptFailed(
        events[place].at, process_death_failure(Incident.of(events[:place])), 0.0, 0.0, may_retry=True
    )
    again = ev.Decided(death.at, ev.Repeat(1, 0.0, "cut off"))
    found = tries_of([*events[:place], death, again, *events[place:]])
    assert [(one.rung, one.number, one.succeeded) for one in found.tries] == [("nudge", 1, True)]


def test_a_success_has_no_tries() -> None:
    """An incident without a failure tried no rung."""
    assert tries_of(recorded("done")).tries == ()
