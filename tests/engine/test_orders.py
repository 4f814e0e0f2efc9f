"""A person steps in unasked: a recovery that waits goes on at once, changed as ordered, or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import World

BUSY = HttpError(503, "busy")


class Desk:
    """A journal on which an order lies from the given look on."""

    def __init__(self, order: Any, look: int = 1, model: str = "") -> None:
        self.orders, self.after, self.looks, self.model = [order], look, 0, model
        self.kept: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        assert first == len(self.kept)
        self.kept.extend(events)

    def intervention(self, incident: str) -> Intervention | None:
        self.looks += 1
        if self.looks < self.after or not self.orders:
            return None
        order: Intervention | Exception | None = self.orders.pop()
        if isinstance(order, Exception):
            raise order
        return order

    def model_for(self, session: str) -> str:
        if session == "broken":
            raise OSError("gone")
        return self.model


def test_retry_cuts_the_wait_short(world: World) -> None:
    """The wait was for a minute; the order came after a second."""
    policy = rung.policy("call", backoff={"base": 60, "cap": 60, "jitter": False}, retry_after_cap=90)
    desk = Desk(Intervention(InterventionType.RETRY, "ada"), look=3)
    outcome = world.recover(Script(BUSY, "done"), "task", policy=policy, journal=desk)
    assert outcome.status == "recovered"
    assert outcome.seconds < 2
    (ordered,) = [event for event in desk.kept if isinstance(event, ev.Ordered)]
    assert ordered[1:] == ("retry", "ada", "", "")


def test_retry_changed(world: World) -> None:
    """Another model and another prompt, written down before the attempt."""
    script = Script(BUSY, "done")
    outcome = world.recover(
        script,
        rung.Request(prompt="first", model="small"),
        policy="call",
        journal=Desk(Intervention(InterventionType.RETRY, "ada", "large", "second")),
    )
    assert outcome.ok
    assert (script.requests[-1].prompt, script.requests[-1].model) == ("second", "large")
    names = [type(event).__name__ for event in outcome.events]
    assert names[-3:] == ["Ordered", "Changed", "AttemptSucceeded"]


def test_a_prompt_for_a_conversation() -> None:
    """What is said to a conversation comes at its end."""
    request = rung.Request(messages=({"role": "user", "content": "first"},))
    assert Intervention(InterventionType.RETRY, prompt="second").apply_to(request).messages[-1]["content"] == "second"
    assert Intervention(InterventionType.RETRY).apply_to(request) == request


def test_a_prompt_replaces_the_one_before_it() -> None:
    """A conversation that is retried twice tells about the last failure alone."""
    request = rung.Request(messages=({"role": "user", "content": "first"},))
    once = Intervention(InterventionType.RETRY, prompt="it failed").apply_to(request)
    twice = Intervention(InterventionType.RETRY, prompt="it failed again").apply_to(once)
    assert [message["content"] for message in twice.messages] == ["first", "it failed again"]


def test_a_run_that_a_person_asks_for(world: World) -> None:
    """The first attempt is made as the person says; the incident keeps the request without it, for the next retry."""
    script = Script("done")
    outcome = world.recover(
        script,
        rung.Request(prompt="the task", model="small"),
        policy="call",
        intervention=Intervention(InterventionType.RETRY, "ada", "large", "with context"),
    )
    assert outcome.ok
    (made,) = script.requests
    assert (made.prompt, made.model) == ("with context", "large")
    assert [type(event).__name__ for event in outcome.events] == ["Opened", "Ordered", "Changed", "AttemptSucceeded"]
    assert Incident.of(outcome.events).first_request == rung.Request(prompt="the task", model="small")


def test_cancel(world: World) -> None:
    """It ends, honestly, and says who wanted that."""
    script = Script(BUSY, "never")
    outcome = world.recover(script, "task", policy="call", journal=Desk(Intervention(InterventionType.CANCEL, "ada")))
    assert (outcome.status, outcome.reason) == ("partial", "stopped by ada; last error: overloaded: busy")
    assert len(script.requests) == 1


def test_an_order_that_cannot_be_read(world: World) -> None:
    """The desk breaks: said, and the ladder goes on as if there were none."""
    with pytest.warns(RuntimeWarning, match="interventions failed and was ignored: OSError: gone"):
        outcome = world.recover(Script(BUSY, "done"), "task", policy="call", journal=Desk(OSError("gone")))
    assert outcome.ok
    with pytest.raises(rung.errors.ConfigError, match="one of retry, cancel"):
        Intervention.of({"action": "explode"})
    assert Intervention.of({"action": "retry", "model": None, "by": "ada"}) == Intervention(
        InterventionType.RETRY, "ada"
    )


@pytest.mark.parametrize(("session", "model"), [("s-1", "large"), ("broken", "small"), ("", "small")])
def test_a_session_put_on_another_model(world: World, session: str, model: str) -> None:
    """From the next call on; a store in trouble changes nothing."""
    script = Script("done")
    world.recover(
        script,
        rung.Request(prompt="x", model="small"),
        journal=Desk(None, model="large"),
        session=rung.Session(id=session),
    )
    assert script.requests[0].model == model


def test_an_order_for_a_call_that_cannot_be_changed() -> None:
    """A call that was not given as a request goes on at once, as it was."""
    made = 0

    @rung.guarded(
        rung.policy("call", backoff={"base": 60, "cap": 60, "jitter": False}, retry_after_cap=90),
        journal=Desk(Intervention(InterventionType.RETRY, "ada", "large", "second")),
        breakers=rung.BreakerRegistry(),
        retry_budget=None,
    )
    def call() -> str:
        nonlocal made
        made += 1
        if made == 1:
            raise BUSY
        return "done"

    assert (call(), made) == ("done", 2)
