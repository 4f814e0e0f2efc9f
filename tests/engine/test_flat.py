"""The short way of guarded calls decides and records exactly what the long way would."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.core import events as ev
from rung.core.breaker import Breaker, Circuit, Vote
from rung.core.config import ladder_from
from rung.core.decide import decide
from rung.core.errors import Refused, TimeUp
from rung.core.failures import NEVER_RETRYABLE, TRANSIENT, Evidence, Failure, Kind, Phase
from rung.core.incident import Incident
from rung.core.presets import LADDERS
from rung.engine.flat import Brief, Lane
from rung.engine.guard import Guard
from rung.engine.interrupt import WATCHDOG, Overdue, limited
from rung.engine.ports import EPOCH
from rung.engine.run import CURRENT, vote
from rung.testing import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy import Policy

STEADY = rung.policy("call", backoff={"base": 0.001, "jitter": False})


def alone(**ports: Any) -> dict[str, Any]:
    """Ports that share nothing with any other test, with a breaker that stays closed."""
    breakers = rung.Breakers(rung.BreakerSettings(rate=1.0, minimum=1_000))
    return {"breakers": breakers, "retry_budget": rung.RetryBudget(), "key": "the same", **ports}


class Failing:
    """Fails by these, one after the other, then returns "good"; the first calls of a function are let pass."""

    def __init__(self, *errors: Callable[[], BaseException]) -> None:
        self.errors: Sequence[Callable[[], BaseException]] = errors
        self.made = 0
        self.short: list[bool] = []  # whether each attempt went the short way

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


def chained() -> Exception:
    error = ConnectionError("chained")
    error.__cause__ = HttpError(503, "behind it")
    return error


ERRORS: dict[str, Callable[[], BaseException]] = {
    "plain": lambda: ConnectionError("x"),
    "with arguments": lambda: ConnectionResetError(104, "reset by peer"),
    "no text": TimeoutError,
    "a status": lambda: HttpError(503, "busy"),
    "another status": lambda: HttpError(500, "broken", {"x-request-id": "7"}),
    "throttled": lambda: HttpError(429, "too many"),
    "a finding": lambda: rung.AttemptError("not what was asked for", finding="malformed_output", output="half"),
    "a tool": lambda: rung.AttemptError("grep broke", finding="tool_error", phase="tool"),
    "not JSON": lambda: json.JSONDecodeError("Expecting value", "x", 0),
    "not hashable": lambda: ConnectionError(["x"]),
    "chained": chained,
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("ladder", ["call", "pipeline", "task"])
def test_a_brief_is_what_the_long_way_records(mode: str, ladder: str, error: Callable[[], BaseException]) -> None:
    """A call that fails once leaves a brief whose events are, one by one, those of the long way."""
    policy = STEADY.but(ladder=LADDERS[ladder])
    heard: list[ev.Event] = []
    attempt = Failing(error)
    long = attempt.guarded(mode, policy, **alone(listeners=[lambda event, _: heard.append(event)]))
    heard.clear()
    try:
        assert run(long) == "good"
    except Exception:
        assert attempt.made == 1  # this ladder does not repeat it: there is no brief to compare
        return
    assert attempt.short == [False, False]

    attempt = Failing(error)
    short = attempt.guarded(mode, policy, **alone())
    lane: Lane = short.__rung__
    assert lane.briefs() == []
    assert run(short) == "good"
    assert attempt.short == [True, True]
    (brief,) = lane.briefs()
    events = brief.events(lane.guard)
    assert timeless(events) == timeless(heard)
    assert [type(event) for event in events] == [ev.Opened, ev.AttemptFailed, ev.Decided, ev.AttemptSucceeded]
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert Incident.of(timeless(events)) == Incident.of(timeless(heard))


def test_times_of_a_brief(mode: str) -> None:
    """The times in a brief are those at which it happened, in UTC seconds."""
    before = time.time()
    call = Failing(ConnectionError).guarded(mode, STEADY, **alone())
    assert run(call) == "good"
    brief: Brief = call.__rung__.briefs()[-1]
    assert before - 1 <= brief.began <= brief.failed <= brief.again <= brief.ended <= time.time() + 1
    assert brief.wait == 0.001
    assert brief.again - brief.failed >= brief.wait


def test_briefs_are_bounded(mode: str) -> None:
    """Only the latest hundred briefs are kept."""
    attempt = Failing()
    call = attempt.guarded(mode, STEADY.but(backoff=rung.Backoff(base=0)), **alone(retry_budget=None))
    for number in range(130):
        attempt.errors, attempt.made = (lambda number=number: ConnectionError(f"x{number}"),), 0  # type: ignore[misc]
        run(call) if mode == "sync" or number > 125 else None
    briefs = call.__rung__.briefs()
    assert len(briefs) == (100 if mode == "sync" else 4)
    assert briefs[-1].failure.message == "x129"


@pytest.mark.parametrize(
    "errors",
    [
        (ConnectionError, TimeoutError, ConnectionError, ConnectionError),
        (ERRORS["throttled"], ERRORS["a status"], ERRORS["not JSON"], ERRORS["chained"]),
        (ConnectionError, lambda: HttpError(401)),
        (ConnectionError, lambda: ValueError("nobody knows")),
        (ERRORS["a finding"], lambda: HttpError(429, "later", {"retry-after": "900"})),
        (lambda: HttpError(400, "wrong"),),
    ],
)
def test_nothing_is_lost_on_the_way(mode: str, errors: Sequence[Callable[[], BaseException]]) -> None:
    """A call that leaves the short way has recorded, when it fails in the end, all that the long way records."""
    ends = []
    for ports in ({}, {"listeners": [lambda _event, _incident: None]}):
        attempt = Failing(*errors)
        call = attempt.guarded(mode, STEADY, **alone(**ports))
        with pytest.raises(Exception) as caught:  # one of those above
            run(call)
        outcome = caught.value.__dict__["__rung_outcome__"]
        assert outcome.attempts == attempt.made == len(errors)
        ends.append((outcome, attempt.short))
    (short, went_short), (long, went_long) = ends
    assert timeless(short.events) == timeless(long.events)
    assert (short.status, short.reason, short.path) == (long.status, long.reason, long.path)
    assert went_short == [True, True, False, False][: len(errors)]
    assert went_long == [False] * len(errors)


@pytest.mark.parametrize("failures", [2, 3])
def test_attempts_are_counted_across(mode: str, failures: int) -> None:
    """A call that succeeds on the long way has made as many attempts as failures, and one."""
    attempt = Failing(*[ConnectionError] * failures)
    call = attempt.guarded(mode, STEADY, **alone())
    assert run(call) == "good"
    assert attempt.made == failures + 1
    assert call.__rung__.briefs() == []


def test_stopped_on_the_way(mode: str) -> None:
    """A call that is stopped after it left the short way carries all that happened."""

    class Leave(BaseException):
        pass

    attempt = Failing(ConnectionError, TimeoutError, Leave)
    call = attempt.guarded(mode, STEADY, **alone())
    with pytest.raises(Leave) as caught:
        run(call)
    outcome = caught.value.__dict__["__rung_outcome__"]
    names = [type(event).__name__ for event in outcome.events]
    assert names == ["Opened", *["AttemptFailed", "Decided"] * 2, "Cancelled"]


# The decision, for anything that can fail.

AMOUNT = st.integers(0, 64).map(lambda eighths: eighths / 8)  # exact in floats, also beside the time of day
NOW = 2e9  # later than anything another test may have reported


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """What is simple enough for the short way, four times out of five."""
    return st.integers(0, 9).flatmap(lambda n: st.just(usual) if n < 8 else st.sampled_from(others))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that bears on a first repeat."""
    backoff = rung.Backoff(
        base=draw(AMOUNT), multiplier=draw(st.sampled_from([1, 2])), cap=draw(AMOUNT), jitter=draw(st.booleans())
    )
    ladder = draw(st.sampled_from([LADDERS["call"], LADDERS["task"], *LADDERS.values()]))
    if draw(st.booleans()):
        seconds = draw(mostly(None, 0.0, 1.0, 4.0))
        rungs = [{"action": "retry", "tries": draw(mostly(1, 0)), "seconds": seconds}, {"action": "surface"}]
        ladder = ladder_from({"name": "own", "rungs": rungs})
    kinds = st.frozensets(st.sampled_from([kind for kind in Kind if kind not in NEVER_RETRYABLE]))
    return rung.policy(
        ladder,
        backoff=backoff,
        budget=rung.Budget(attempts=draw(mostly(None, 1, 2)), seconds=draw(st.none() | st.just(8.0) | AMOUNT)),
        retry=[*draw(kinds), *draw(mostly(("transient",), ()))],
        retry_after_cap=draw(AMOUNT),
        attempt_seconds=draw(st.none() | st.just(9.0)),
    )


@st.composite
def failures(draw: st.DrawFn) -> Failure:
    """Any failure, as classify could have named it."""
    evidence = Evidence(
        text="x",
        phase=draw(st.sampled_from(Phase)),
        output_started=draw(mostly(False, True)),
        side_effects=draw(mostly(False, True)),
        missing=draw(st.sampled_from([(), ("a", "b", "c")])),
        repeats=draw(st.integers(0, 9)),
    )
    return Failure(
        kind=draw(st.sampled_from(list(TRANSIENT)) | st.sampled_from(Kind)),
        retryable=draw(mostly(True, False)),
        rule="test",
        retry_after=draw(mostly(None, 0.0, 1.5, 99.0)),
        evidence=evidence,
    )


@settings(max_examples=250)
@given(
    policy=policies(),
    failure=failures(),
    before=failures(),
    took=AMOUNT,
    tokens=mostly(500, 0, 5, 14),
    idempotent=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_same_decision(
    policy: Policy, failure: Failure, before: Failure, took: float, tokens: int, idempotent: bool, seed: int
) -> None:
    """Where the short way repeats, `decide` repeats, after the same wait; where it does not, nothing is charged."""
    herd = rung.RetryBudget()
    herd.tokens = tokens
    guard = Guard(int, policy, alone(retry_budget=herd), idempotent=idempotent)
    lane = Lane(guard)
    random.seed(seed)
    jitter = random.random()
    began, now = NOW, NOW + took
    run = guard.begin((), began)
    run.record(ev.AttemptFailed(now, failure, took, 0.0, may_retry=herd.affords(failure.kind)))
    decision = decide(run.incident, failure, policy, now, jitter)

    lane.schedule(before._replace(kind=failure.kind, retryable=failure.retryable), began, began)  # may be remembered
    for _ in range(2):
        herd.tokens = tokens
        lane.breaker.calls.clear()
        random.seed(seed)
        scheduled = lane.schedule(failure, began, now)
        if scheduled is None:
            assert herd.tokens == tokens
            assert not lane.breaker.calls
            continue
        plan, wait = scheduled
        assert plan.repeat._replace(wait=wait) == decision
        assert herd.tokens == tokens - herd.cost(failure.kind)
        assert len(lane.breaker.calls) == (vote(failure) is Vote.BAD)


@settings(max_examples=120)
@given(policy=policies(), failure=failures(), idempotent=st.booleans())
def test_the_short_way_is_taken(policy: Policy, failure: Failure, idempotent: bool) -> None:
    """A first failure that is repeated, without a server's hint or visible effects, is repeated on the short way."""
    guard = Guard(int, policy, alone(), idempotent=idempotent)
    run = guard.begin((), NOW)
    run.record(ev.AttemptFailed(NOW, failure, 0.0, 0.0, may_retry=True))
    repeated = isinstance(decide(run.incident, failure, policy, NOW, 1.0), ev.Repeat)
    evidence = failure.evidence
    simple = failure.retry_after is None and not evidence.output_started and not evidence.side_effects
    assert (Lane(guard).schedule(failure, NOW, NOW) is not None) == (repeated and simple)


# Time.


def rung_with(seconds: float, **backoff: Any) -> Policy:
    """One repeat, with so many seconds for its wait and its attempt."""
    rungs = [{"action": "retry", "tries": 1, "seconds": seconds}, {"action": "surface"}]
    ladder: Any = {"name": "short", "rungs": rungs}
    return rung.policy(ladder, backoff={"base": 0, "jitter": False, **backoff})


@pytest.mark.parametrize("way", [{}, {"listeners": [lambda _event, _incident: None]}], ids=["short", "long"])
def test_a_rungs_time_counts_from_its_wait(mode: str, way: dict[str, Any]) -> None:
    """A rung's seconds cover the wait and the repeated attempt, on both ways."""
    made: list[float] = []

    def function() -> None:
        made.append(time.monotonic())
        if len(made) == 2:
            raise ConnectionError
        if len(made) == 3:
            time.sleep(9)

    async def coroutine() -> None:
        made.append(time.monotonic())
        if len(made) == 2:
            raise ConnectionError
        if len(made) == 3:
            await asyncio.sleep(9)

    wrap = rung.guarded(rung_with(0.25, base=0.15), **alone(**way))
    call: Any = wrap(function) if mode == "sync" else wrap(coroutine)
    run(call)
    with pytest.raises(TimeUp) as caught:
        run(call)
    assert len(made) == 3
    assert 0 < caught.value.seconds <= 0.1


def test_an_overdue_call() -> None:
    """A call the watchdog ends on the short way is our own timeout, and is repeated."""
    attempt = Failing(lambda: Overdue(len(WATCHDOG.due) - 1))  # as its signal handler raises it
    call = attempt.guarded("sync", STEADY.but(attempt_seconds=7.5), **alone())
    assert run(call) == "good"
    assert attempt.short == [True, True]
    (brief,) = call.__rung__.briefs()
    assert (brief.failure.kind, brief.failure.evidence.phase) == (Kind.TIMEOUT, Phase.LIMIT)
    assert brief.failure.message == "the attempt was ended after 7.5 s"


def test_an_overdue_repeat() -> None:
    """A repeated attempt the watchdog ends on the short way is our own timeout, and its ladder goes on."""
    attempt = Failing(ConnectionError, lambda: time.sleep(9) or AssertionError())  # type: ignore[func-returns-value]
    call = attempt.guarded("sync", rung_with(0.1), **alone())
    with pytest.raises(TimeUp) as caught:
        run(call)
    assert attempt.short == [True, True]
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
    with pytest.raises(TimeUp) as caught:
        limited(call, (), 0.1)
    assert caught.value.seconds == 0.1
    assert attempt.made == failures + 1
    assert WATCHDOG.due == []


def test_a_wait_that_would_outlast_the_call(mode: str) -> None:
    """A repeat that would begin after the call's total time is not waited for."""
    attempt = Failing(ConnectionError)
    policy = rung.policy("call", backoff={"base": 30, "jitter": False}, seconds=20)
    with pytest.raises(ConnectionError) as caught:
        run(attempt.guarded(mode, policy, **alone()))
    assert attempt.made == 1
    assert any("outlast" in why for _, why in skips(caught.value))


def test_no_time_left_for_a_repeat() -> None:
    """A call that has used up its total time when it fails is not repeated on the short way, and nothing is charged."""
    herd = rung.RetryBudget()
    lane = Lane(Guard(int, STEADY, alone(retry_budget=herd), idempotent=False))
    failure = Failure(kind=Kind.NETWORK, retryable=True, rule="test")
    assert lane.schedule(failure, NOW, NOW + lane.total) is None
    assert herd.tokens == herd.capacity
    scheduled = lane.schedule(failure, NOW, NOW + lane.total - 1)
    assert scheduled is not None
    assert scheduled[1] == 0.001


def skips(error: BaseException) -> list[tuple[int, str]]:
    events = error.__dict__["__rung_outcome__"].events
    return [skip for event in events if isinstance(event, ev.Decided) for skip in event.decision.skipped]


# The breaker.


def test_the_failure_that_opens_the_circuit(mode: str) -> None:
    """When a call's own failure opens the circuit its repeat is refused, and both are in the outcome."""
    breakers = rung.Breakers(rung.BreakerSettings(rate=0.5, minimum=2))
    attempt = Failing(ConnectionError, ConnectionError)
    call = attempt.guarded(mode, STEADY, **alone(breakers=breakers))
    with pytest.raises(Refused) as caught:
        run(call)
    assert attempt.made == 1
    outcome = caught.value.__dict__["__rung_outcome__"]
    failed = [event.failure.kind for event in outcome.events if isinstance(event, ev.AttemptFailed)]
    assert failed == [Kind.NETWORK, Kind.SERVICE_DOWN]
    assert outcome.attempts == 1


def test_both_ways_tell_the_breaker_the_same(mode: str) -> None:
    """A failure and a success count for the breaker once each, on both ways."""
    counts = []
    for ports in ({}, {"listeners": [lambda _event, _incident: None]}):
        breakers = rung.Breakers(rung.BreakerSettings(rate=1.0, minimum=50))
        attempt = Failing(ConnectionError, ERRORS["not JSON"], ConnectionError)
        call = attempt.guarded(mode, STEADY, **alone(breakers=breakers, **ports))
        assert run(call) == "good"
        counts.append([at < 0 for at in breakers.get("the same").calls])
    assert counts[0] == counts[1] == [False, True, True, False]


class Opening(Breaker):
    """Opens, as another thread would, just after it was asked whether it is closed."""

    armed = False
    state = Circuit.CLOSED

    @property
    def circuit(self) -> Circuit:
        state = self.state
        if self.armed:
            self.armed = False
            self._open(EPOCH + time.monotonic())
        return state

    @circuit.setter
    def circuit(self, state: Circuit) -> None:
        self.state = state


def test_a_circuit_that_opens_while_a_call_begins() -> None:
    """A circuit that opens in another thread, while a call asks for it, is open for the calls after that one."""
    breakers = rung.Breakers()
    breakers._by_key["the same"] = breaker = Opening()  # noqa: SLF001  # a breaker of our own
    call = rung.guarded(STEADY, **alone(breakers=breakers))(time.monotonic)
    breaker.armed = True
    for _ in range(3):
        with suppress(Refused):
            call()
    assert breaker.home is None
    with pytest.raises(Refused):
        call()


def test_a_call_in_a_worker_does_not_disturb() -> None:
    """Calls in the main thread stay on the short way, whatever other threads call the same function."""
    attempt = Failing()
    call = attempt.guarded("sync", STEADY, **alone())
    for _ in range(2):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        call()
    assert attempt.short == [False, True] * 2
