"""The fast path of guarded calls: a first failure goes to the engine with all that happened before."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import Kind, Phase
from rung.core.policy.breaker import Breaker, CircuitState
from rung.engine.loop.run import CURRENT
from rung.engine.ports.clock import EPOCH
from rung.engine.timeouts.sync_timeout import WATCHDOG, AttemptInterrupt, call_with_timeout
from rung.testing import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy.policy import Policy

STEADY = rung.policy("call", patience=0, backoff={"base": 0.001, "jitter": False})


def alone(**ports: Any) -> dict[str, Any]:
    """Ports that share nothing with any other test, with a breaker that stays closed."""
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=1_000))
    return {"breakers": breakers, "retry_budget": rung.RetryBudget(), "key": "the same", **ports}


class Failing:
    """Fails by these, one after the other, then returns "good"; the first calls of a function are let pass."""

    def __init__(self, *errors: Callable[[], BaseException]) -> None:
        self.errors: Sequence[Callable[[], BaseException]] = errors
        self.made = 0
        self.short: list[bool] = []  # whether each attempt was on the fast path

    def __call__(self) -> str:
        self.made += 1
        self.short.append(CURRENT.get() is None)
        if self.made <= len(self.errors):
            error = self.errors[self.made - 1]()
            raise error
        return "good"

    def guarded(self, mode: str, policy: Policy, **ports: Any) -> Any:
        """This, guarded, and called once: a plain function is watched from then on."""

        def function() -> str:
            return self()

        async def coroutine() -> str:
            return self()

        wrap = rung.guarded(policy, **ports)
        guarded: Any = wrap(function) if mode == "sync" else wrap(coroutine)
        errors, self.errors = self.errors, ()
        run(guarded)
        self.errors, self.made, self.short = errors, 0, []
        return guarded


def run(guarded: Any) -> Any:
    value = guarded()
    return asyncio.run(value) if inspect.iscoroutine(value) else value


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def timeless(events: Sequence[ev.Event]) -> list[ev.Event]:
    """The events without their ids and times."""
    bare: list[ev.Event] = []
    for event in events:
        if isinstance(event, ev.Opened):
            left = None if event.deadline is None else round(event.deadline - event.at, 3)
            bare.append(event._replace(at=0.0, id="", deadline=left))
        elif isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
            assert event.seconds >= 0
            bare.append(event._replace(at=0.0, seconds=0.0))
        else:
            bare.append(event._replace(at=0.0))
    return bare


def not_json() -> Exception:
    return json.JSONDecodeError("Expecting value", "x", 0)


def chained() -> Exception:
    error = ConnectionError("chained")
    error.__cause__ = HttpError(503, "behind it")
    return error


@pytest.mark.parametrize(
    "errors",
    [
        (ConnectionError, TimeoutError, ConnectionError, ConnectionError),
        (lambda: HttpError(429, "too many"), lambda: HttpError(503, "busy"), not_json, chained),
        (ConnectionError, lambda: HttpError(401)),
        (ConnectionError, lambda: ValueError("nobody knows")),
        (
            lambda: rung.AttemptError("half of it", finding="malformed_output", output="half"),
            lambda: HttpError(429, "later", {"retry-after": "900"}),
        ),
        (lambda: HttpError(400, "wrong"),),
    ],
)
def test_nothing_is_lost_on_the_way(mode: str, errors: Sequence[Callable[[], BaseException]]) -> None:
    """A call that leaves the fast path has recorded, when it fails in the end, all that the engine alone records."""
    ends = []
    for ports in ({}, {"listeners": [lambda _event, _incident: None]}):
        attempt = Failing(*errors)
        call = attempt.guarded(mode, STEADY, **alone(**ports))
        with pytest.raises(Exception) as caught:  # one of those above
            run(call)
        outcome = caught.value.__dict__["__rung_outcome__"]
        assert outcome.attempts == attempt.made == len(errors)
        ends.append((outcome, attempt.short))
    (fast, on_fast_path), (engine, on_engine) = ends
    assert timeless(fast.events) == timeless(engine.events)
    assert (fast.status, fast.reason, fast.path) == (engine.status, engine.reason, engine.path)
    assert on_fast_path == [True, True, False, False][: len(errors)]
    assert on_engine == [False] * len(errors)


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_attempts_are_counted_across(mode: str, failures: int) -> None:
    """A call that succeeds in the engine has made as many attempts as failures, and one."""
    attempt = Failing(*[ConnectionError] * failures)
    call = attempt.guarded(mode, STEADY, **alone())
    assert run(call) == "good"
    assert attempt.made == failures + 1


def test_stopped_on_the_way(mode: str) -> None:
    """A call that is stopped after it left the fast path carries all that happened."""

    class Leave(BaseException):
        pass

    attempt = Failing(ConnectionError, TimeoutError, Leave)
    call = attempt.guarded(mode, STEADY, **alone())
    with pytest.raises(Leave) as caught:
        run(call)
    outcome = caught.value.__dict__["__rung_outcome__"]
    names = [type(event).__name__ for event in outcome.events]
    assert names == ["Opened", *["AttemptFailed", "Decided"] * 2, "Cancelled"]


# Time.


def once(**settings: Any) -> Policy:
    """One repeat at once, with these settings."""
    rungs = [{"action": "retry", "tries": 1}, {"action": "surface"}]
    ladder: Any = {"name": "short", "rungs": rungs}
    return rung.policy(ladder, backoff={"base": 0}, **settings)


def test_an_overdue_call() -> None:
    """A call the watchdog ends on the fast path is our own timeout, and is repeated."""
    attempt = Failing(
        lambda: AttemptInterrupt(len(WATCHDOG.deadlines) - 1), SystemExit
    )  # as its signal handler raises it
    call = attempt.guarded("sync", STEADY.replace(attempt_seconds=7.5), **alone())
    with pytest.raises(SystemExit) as caught:
        run(call)
    assert attempt.short == [True, True]
    events = caught.value.__dict__["__rung_outcome__"].events
    (failed,) = (event for event in events if isinstance(event, ev.AttemptFailed))
    assert (failed.failure.kind, failed.failure.evidence.phase) == (Kind.TIMEOUT, Phase.LIMIT)
    assert failed.failure.message == "the attempt timed out after 7.5 s"


def test_an_overdue_repeat() -> None:
    """A repeated attempt the watchdog ends is our own timeout, and its ladder goes on."""
    attempt = Failing(ConnectionError, lambda: time.sleep(9) or AssertionError())  # type: ignore[func-returns-value]
    call = attempt.guarded("sync", once(attempt_seconds=0.1), **alone())
    with pytest.raises(AttemptTimeout) as caught:
        run(call)
    kinds = [
        event.failure.kind
        for event in caught.value.__dict__["__rung_outcome__"].events
        if isinstance(event, ev.AttemptFailed)
    ]
    assert kinds == [Kind.NETWORK, Kind.TIMEOUT]


@pytest.mark.parametrize("failures", [0, 1], ids=["first", "repeated"])
def test_an_outer_limit(failures: int) -> None:
    """The time of an outer attempt ends a call inside it, in its first and in its repeated attempt."""
    block: Callable[[], BaseException] = lambda: time.sleep(9) or AssertionError()  # type: ignore[func-returns-value]  # noqa: E731
    attempt = Failing(*[ConnectionError] * failures, block)
    call = attempt.guarded("sync", STEADY, **alone())
    with pytest.raises(AttemptTimeout) as caught:
        call_with_timeout(call, (), 0.1)
    assert caught.value.seconds == 0.1
    assert attempt.made == failures + 1
    assert WATCHDOG.deadlines == []


def test_a_wait_that_would_outlast_the_call(mode: str) -> None:
    """A repeat that would begin after the call's total time is not waited for."""
    attempt = Failing(ConnectionError)
    policy = rung.policy("call", patience=0, backoff={"base": 30, "jitter": False}, seconds=20)
    with pytest.raises(ConnectionError) as caught:
        run(attempt.guarded(mode, policy, **alone()))
    assert attempt.made == 1
    assert any("exceed the deadline" in why for _, why in skips(caught.value))


def skips(error: BaseException) -> list[tuple[int, str]]:
    events = error.__dict__["__rung_outcome__"].events
    return [skip for event in events if isinstance(event, ev.Decided) for skip in event.decision.skipped]


# The breaker.


def test_the_failure_that_opens_the_circuit(mode: str) -> None:
    """When a call's own failure opens the circuit its repeat is refused, and both are in the outcome."""
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=0.5, minimum=2))
    attempt = Failing(ConnectionError, ConnectionError)
    call = attempt.guarded(mode, STEADY, **alone(breakers=breakers))
    with pytest.raises(CircuitOpenError) as caught:
        run(call)
    assert attempt.made == 1
    outcome = caught.value.__dict__["__rung_outcome__"]
    failed = [event.failure.kind for event in outcome.events if isinstance(event, ev.AttemptFailed)]
    assert failed == [Kind.NETWORK, Kind.SERVICE_DOWN]
    assert outcome.attempts == 1


def test_breaker_votes(mode: str) -> None:
    """A failure and a success count for the breaker once each, wherever the first attempt was made."""
    counts = []
    for ports in ({}, {"listeners": [lambda _event, _incident: None]}):
        breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=50))
        attempt = Failing(ConnectionError, not_json, ConnectionError)
        call = attempt.guarded(mode, STEADY, **alone(breakers=breakers, **ports))
        assert run(call) == "good"
        counts.append([at < 0 for at in breakers.get("the same").calls])
    assert counts[0] == counts[1] == [False, True, True, False]


class OpeningCircuit(Breaker):
    """Opens, as another thread would, just after it was asked whether it is closed."""

    armed = False
    state = CircuitState.CLOSED

    @property
    def circuit(self) -> CircuitState:
        state = self.state
        if self.armed:
            self.armed = False
            self._open(EPOCH + time.monotonic(), 30.0)
        return state

    @circuit.setter
    def circuit(self, state: CircuitState) -> None:
        self.state = state


def test_a_circuit_that_opens_while_a_call_begins() -> None:
    """A circuit that opens in another thread, while a call asks for it, is open for the calls after that one."""
    breakers = rung.BreakerRegistry()
    breakers._by_key["the same"] = breaker = OpeningCircuit()  # noqa: SLF001  # no public way to add a breaker of another class
    call = rung.guarded(STEADY, **alone(breakers=breakers))(time.monotonic)
    breaker.armed = True
    for _ in range(3):
        with suppress(CircuitOpenError):
            call()
    assert breaker.fast_path_thread is None
    with pytest.raises(CircuitOpenError):
        call()


def test_a_call_in_a_worker_does_not_disturb() -> None:
    """Calls in the main thread stay on the fast path, whatever other threads call the same function."""
    attempt = Failing()
    call = attempt.guarded("sync", STEADY, **alone())
    for _ in range(2):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        call()
    assert attempt.short == [False, True] * 2
