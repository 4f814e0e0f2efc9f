"""Sessions: one fallback for all calls, also for concurrent ones, and models that requests name themselves."""

from __future__ import annotations

import asyncio
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.ladder import Action
from rung.engine.first_attempt import FirstAttempt
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from tests.conftest import World

ASK = rung.Request(prompt="the task", model="small")
GONE = HttpError(404, "model: small not found", code="not_found_error")
MODELS = ["small", "large", "huge"]


def dead_small(request: rung.Request) -> str:
    if request.model == "small":
        raise rung.AttemptError("gone", finding="model_unavailable")
    return request.model


def switches(outcome: rung.Outcome[Any]) -> list[str]:
    return [
        e.decision.model for e in outcome.events if isinstance(e, ev.Decided) and isinstance(e.decision, ev.HandOver)
    ]


def test_the_second_call_may_use_the_sessions_fallback(world: World) -> None:
    """With `sticky = "call"` each call begins on its own model, and may follow the session's one fallback again."""
    session, policy = rung.Session(), rung.policy("call", models=MODELS)
    for _ in range(3):
        outcome = world.recover(Script(dead_small), ASK, policy=policy, session=session)
        assert (outcome.status, outcome.value, switches(outcome)) == ("recovered", "large", ["large"])
    assert session.tries_used == {"fallback": 1}


def test_the_session_has_one_fallback(world: World) -> None:
    """A call that follows the session and fails there too has no second model."""
    session, policy = rung.Session(), rung.policy("call", models=MODELS)
    world.recover(Script(dead_small), ASK, policy=policy, session=session)
    script = Script(rung.AttemptError("gone", finding="model_unavailable"))
    outcome = world.recover(script, ASK, policy=policy, session=session)
    assert (outcome.status, [request.model for request in script.requests]) == ("failed", ["small", "large"])
    other = world.recover(Script(GONE), ASK.replace(model="huge"), policy=policy, session=session)
    assert (other.status, switches(other)) == ("failed", [])


def test_concurrent_calls_switch_once() -> None:
    """Four concurrent calls of one session all recover, and together take one try of its fallback."""
    session = rung.Session()
    ports: Any = {"policy": rung.policy("call", models=MODELS), "session": session}

    async def attempt(request: rung.Request) -> Any:
        await asyncio.sleep(0)
        return dead_small(request)

    async def main() -> list[rung.Outcome[Any]]:
        calls = [rung.recover(attempt, ASK, breakers=rung.BreakerRegistry(), **ports) for _ in range(4)]
        return list(await asyncio.gather(*calls))

    outcomes = asyncio.run(main())
    assert [outcome.value for outcome in outcomes] == ["large"] * 4
    assert session.tries_used == {"fallback": 1}


def test_calls_in_threads_switch_once() -> None:
    """Calls of one session in several threads take one try of its fallback."""
    session, policy, barrier = rung.Session(), rung.policy("call", models=MODELS), Barrier(4)
    values: list[Any] = []

    def attempt(request: rung.Request) -> str:
        if request.model == "small":
            barrier.wait(30)
        return dead_small(request)

    def call() -> None:
        values.append(rung.recover_sync(attempt, ASK, policy=policy, session=session).value)

    threads = [Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert values == ["large"] * 4
    assert session.tries_used == {"fallback": 1}


def test_a_call_in_flight_during_a_switch_follows_it() -> None:
    """A first attempt on the old model that fails after the session has switched follows the switch."""
    session, policy = rung.Session("small"), rung.policy("call", models=MODELS, sticky="session")
    ports: Any = {"policy": policy, "session": session, "breakers": rung.BreakerRegistry(), "clock": FakeClock()}

    async def attempt(request: rung.Request) -> Any:
        return dead_small(request)

    async def main() -> rung.Outcome[Any]:
        await rung.recover(attempt, ASK, **ports)
        assert session.model == "large"
        return await rung.recover(attempt, ASK, first=FirstAttempt(1_000_000.0, 1_000_000.5, None, GONE), **ports)

    outcome = asyncio.run(main())
    assert (outcome.status, outcome.value, switches(outcome)) == ("recovered", "large", ["large"])
    assert any(isinstance(event, ev.SessionSwitched) for event in outcome.events)
    assert session.tries_used == {"fallback": 1}


@pytest.mark.parametrize(
    ("session", "model", "called"),
    [
        (rung.Session("small"), "huge", "huge"),
        (rung.Session("small"), "", "small"),
        (rung.Session(), "huge", "huge"),
        (rung.Session(), "", ""),
    ],
    ids=["own", "session's", "own without the session's", "none"],
)
def test_a_request_keeps_its_own_model(world: World, session: rung.Session, model: str, called: str) -> None:
    """A session's model is for requests that name none."""
    script = Script("done")
    world.recover(script, rung.Request(prompt="x", model=model), session=session)
    assert script.requests[0].model == called
    world.recover(script, rung.Request(prompt="x", model="large"), session=session)
    assert script.requests[1].model == "large"


def test_a_sticky_session_moves_only_the_model_it_left(world: World) -> None:
    """After a sticky handover requests for the old model begin on the new one; others keep theirs, also when guarded."""
    session, policy = rung.Session(), rung.policy("call", models=MODELS, sticky="session")
    world.recover(Script(dead_small), ASK, policy=policy, session=session)
    script = Script("done")
    world.recover(script, ASK, policy=policy, session=session)
    world.recover(script, ASK.replace(model="huge"), policy=policy, session=session)
    assert [request.model for request in script.requests] == ["large", "huge"]
    assert rung.guarded(policy, session=session)(dead_small)(ASK) == "large"


def test_an_exhausted_quota_does_not_follow_to_a_dearer_model(world: World) -> None:
    """A call whose quota is exhausted does not follow the session to a more expensive model."""
    session, policy = rung.Session(), rung.policy("call", models=MODELS)
    world.recover(Script(dead_small), ASK, policy=policy, session=session)
    spent = rung.AttemptError("no credit", finding="quota_exhausted")
    outcome = world.recover(Script(spent), ASK, policy=policy, session=session)
    assert (outcome.status, switches(outcome)) == ("failed", [])


@given(
    calls=st.lists(st.tuples(st.sampled_from(MODELS), st.sets(st.sampled_from(MODELS))), min_size=1, max_size=8),
    tries=st.integers(1, 2),
)
def test_a_session_never_switches_more_often_than_its_ladder_says(
    calls: list[tuple[str, set[str]]], tries: int
) -> None:
    """Whatever models fail in whatever calls, all calls of a session together take at most the rung's tries."""
    policy = rung.policy("call", models=MODELS, escalate_after=0).with_tries(Action.FALLBACK, tries)
    session, targets = rung.Session(), set()
    for model, dead in calls:

        def attempt(request: rung.Request, dead: set[str] = dead) -> str:
            if request.model in dead:
                raise rung.AttemptError("gone", finding="model_unavailable")
            return request.model

        ports: Any = {"clock": FakeClock(), "breakers": rung.BreakerRegistry(), "retry_budget": None}
        outcome = rung.recover_sync(attempt, ASK.replace(model=model), policy=policy, session=session, **ports)
        targets |= {(model, target) for target in switches(outcome)}
    assert session.tries_used.get("fallback", 0) == len(targets) <= tries
