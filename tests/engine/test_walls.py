"""Walls of overload that the library outlasts by default, on a clock of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.domain.incident import Incident

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from tests.conftest import World

ASK = rung.Request(prompt="x", model="a")
HOURS = 3_600.0


def outcome_of(world: World, seconds: float, policy: Policy) -> rung.Outcome[str]:
    """Recover a call of a service that is overloaded for so long."""
    ends = world.clock.now() + seconds

    def attempt(_: rung.Request) -> str:
        if world.clock.now() < ends:
            raise rung.AttemptError("Overloaded", status=529)
        return "done"

    return world.recover(attempt, ASK, policy=policy)


@pytest.mark.parametrize("template", ["default", "conservative", "aggressive", "unattended"])
@pytest.mark.parametrize("ladder", ["call", "task", "pipeline", "model"])
@pytest.mark.parametrize("seconds", [30, 90, 240])
def test_minutes_are_waited_out_by_default(world: World, ladder: str, template: str, seconds: float) -> None:
    """Every ladder and template with recovery outlasts a wall of up to four minutes, without further settings."""
    outcome = outcome_of(world, seconds, rung.policy(ladder, template))
    assert outcome.status is rung.Status.RECOVERED


@pytest.mark.parametrize("ladder", ["call", "task", "pipeline", "model"])
@pytest.mark.parametrize("seconds", [600, HOURS, 4 * HOURS])
def test_hours_are_waited_out_unattended(world: World, ladder: str, seconds: float) -> None:
    """Unattended work outlasts a wall of hours; attended work ends after five minutes and names the spent patience."""
    assert outcome_of(world, seconds, rung.policy(ladder, "unattended")).status is rung.Status.RECOVERED
    outcome = outcome_of(world, seconds, rung.policy(ladder))
    assert not outcome.ok
    assert "the patience of 300 s is spent" in outcome.reason


def test_a_wait_uses_no_time_of_the_rung_below(world: World) -> None:
    """A nudge has its five minutes for attempts: those in which the service is waited for do not count."""
    ends = world.clock.now() + 290

    def attempt(request: rung.Request) -> str:
        if not request.recovery:
            raise rung.AttemptError("not there", finding="not_found")
        if world.clock.now() < ends:
            raise rung.AttemptError("Overloaded", status=529)
        world.clock.advance(100)
        return "done"

    outcome = world.recover(attempt, ASK, policy=rung.policy("task"))
    assert outcome.status is rung.Status.RECOVERED
    entered = Incident.of(outcome.events).entered_at[1]
    assert world.clock.now() - entered < 300


def test_what_an_inner_recovery_waited_for_is_not_waited_for_again(world: World) -> None:
    """An outer recovery counts its patience from its beginning, so nesting does not double the wait."""
    began = world.clock.now()

    def attempt(request: rung.Request) -> str:
        def inner(_: rung.Request) -> str:
            raise rung.AttemptError("Overloaded", status=529)

        ports = {"clock": world.clock, "jitter": lambda: 0.5, "breakers": None, "retry_budget": None}
        return str(rung.recover_sync(inner, request, policy=rung.policy("call"), **ports).unwrap())  # type: ignore[arg-type]

    assert not world.recover(attempt, ASK, policy=rung.policy("task")).ok
    assert world.clock.now() - began <= 330


def test_a_kind_that_is_not_retried_is_not_waited_for(world: World) -> None:
    """A policy whose `retry` leaves a kind out sends no such request again, after a wait neither."""
    outcome = outcome_of(world, 240, rung.policy("call", retry=["timeout"]))
    assert (outcome.ok, outcome.attempts, world.clock.sleeps) == (False, 1, [])
