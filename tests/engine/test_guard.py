"""`rung.guarded`: a function stays what it is, its calls are kept apart, and the last error says the whole path."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import CircuitOpenError
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.engine.loop.run import CURRENT
from rung.testing import FakeClock, HttpError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

FAST = rung.policy("call", patience=0, backoff={"base": 0})
ONCE = FAST.with_tries(Action.RETRY, 0)


def alone(**ports: Any) -> dict[str, Any]:
    """Ports that share nothing with any other test, with a breaker that stays closed."""
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=1_000))
    return {"breakers": breakers, "retry_budget": rung.RetryBudget(), **ports}


def run(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, awaited where that is needed."""
    value = call(*args)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def outcome_of(error: BaseException) -> rung.Outcome[Any]:
    outcome = error.__dict__["__rung_outcome__"]
    assert isinstance(outcome, rung.Outcome)
    return outcome


class Failing:
    """Fails with these errors, one after the other, then returns "good"."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = errors
        self.made = 0

    def __call__(self, *_: object) -> str:
        self.made += 1
        if self.made <= len(self.errors):
            raise self.errors[self.made - 1]
        return "good"

    def guarded(self, mode: str, *policy: Any, **ports: Any) -> Callable[..., Any]:
        """This as a guarded function of the mode, on the short way from its next call on."""
        wrap: Any = rung.guarded(*(policy or (FAST,)), **ports)
        if mode == "sync":

            def attempt(*args: Any) -> str:
                return self(*args)

            guarded: Any = wrap(attempt)
            self.errors, errors = (), self.errors
            guarded()  # a function's first call goes the long way: from now on it is watched
            self.errors, self.made = errors, 0
            return guarded  # type: ignore[no-any-return]

        async def aattempt(*args: Any) -> str:
            return self(*args)

        return wrap(aattempt)  # type: ignore[no-any-return]


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# What can be guarded, and how it looks afterwards.

DECORATORS = {
    "bare": rung.guarded,
    "called": rung.guarded(),
    "ladder": rung.guarded("task", **alone()),
    "policy": rung.guarded(FAST, **alone()),
    "short limit": rung.guarded(FAST.replace(attempt_seconds=1.0), **alone()),
    "no limit": rung.guarded(rung.policy("call", patience=0, backoff={"base": 0}, seconds=None), **alone()),
}


@pytest.mark.parametrize("decorate", DECORATORS.values(), ids=DECORATORS.keys())
def test_what_can_be_guarded(decorate: Any) -> None:
    """Functions, coroutine functions, generators and async generators give what they gave, however decorated."""

    def plain(a: int, *, b: int = 2) -> int:
        return a + b

    async def awaited(a: int, *, b: int = 2) -> int:
        return a + b

    def stream(a: int, *, b: int = 2) -> Iterator[int]:
        yield a
        yield b

    async def astream(a: int, *, b: int = 2) -> AsyncIterator[int]:
        yield a
        yield b

    function, coroutine, generator, agenerator = map(decorate, (plain, awaited, stream, astream))

    async def collect() -> list[int]:
        return [item async for item in agenerator(1, b=3)]

    for _ in range(2):
        assert function(1) == 3
        assert function(a=1, b=5) == 6
        assert asyncio.run(coroutine(1, b=3)) == 4
        assert list(generator(1)) == [1, 2]
        assert asyncio.run(collect()) == [1, 3]


def test_it_looks_the_same() -> None:
    """Name, signature, docstring, annotations and the sort of function are kept."""

    def plain(a: int, *, b: str = "x") -> float:
        """Doc."""
        raise NotImplementedError

    async def awaited(a: int) -> float:
        raise NotImplementedError

    def stream(a: int) -> Iterator[int]:
        yield a

    async def astream(a: int) -> AsyncIterator[int]:
        yield a

    for function in (plain, awaited, stream, astream):
        guarded: Any = rung.guarded("call", **alone())(function)
        assert inspect.signature(guarded) == inspect.signature(function)
        assert guarded.__name__ == function.__name__
        assert guarded.__qualname__ == function.__qualname__
        assert guarded.__module__ == function.__module__
        assert guarded.__doc__ == function.__doc__
        assert guarded.__annotations__ == function.__annotations__
        assert guarded.__wrapped__ is function
        for sort in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            assert sort(guarded) == sort(function)


class Agent:
    """Methods of every sort."""

    name = "agent"

    @rung.guarded
    def method(self, a: int) -> tuple[str, int]:
        return self.name, a

    @rung.guarded(FAST, **alone())
    async def amethod(self, a: int) -> tuple[str, int]:
        return self.name, a

    @rung.guarded
    def stream(self, a: int) -> Iterator[tuple[str, int]]:
        yield self.name, a

    @staticmethod
    @rung.guarded
    def inside_static(a: int) -> int:
        return a

    @classmethod
    @rung.guarded
    def inside_class(cls, a: int) -> tuple[str, int]:
        return cls.name, a

    @rung.guarded
    @staticmethod
    def outside_static(a: int) -> int:
        return a

    @rung.guarded("task")
    @classmethod
    def outside_class(cls, a: int) -> tuple[str, int]:
        return cls.name, a

    @rung.guarded
    @staticmethod
    async def aoutside_static(a: int) -> int:
        return a


def test_methods() -> None:
    """Methods, static methods and class methods can be guarded, in either order of the decorators."""
    agent = Agent()
    for _ in range(2):
        assert agent.method(1) == ("agent", 1)
        assert asyncio.run(agent.amethod(1)) == ("agent", 1)
        assert list(agent.stream(1)) == [("agent", 1)]
        for owner in (agent, Agent):
            assert owner.inside_static(1) == 1
            assert owner.inside_class(1) == ("agent", 1)
            assert owner.outside_static(1) == 1
            assert owner.outside_class(1) == ("agent", 1)
            assert asyncio.run(owner.aoutside_static(1)) == 1


def test_bound_and_built_in() -> None:
    """A bound method and a built-in function can be guarded as well."""
    assert rung.guarded([3, 1].index)(1) == 1
    assert rung.guarded(FAST, **alone())(len)([1]) == 1


@pytest.mark.parametrize("nonsense", [42, None, partial(print), Agent, object()])
def test_what_cannot_be_guarded(nonsense: Any) -> None:
    """What is no function is refused at once, whether it comes first or after a policy."""
    guarded: Any = rung.guarded
    for refuse in (partial(guarded, nonsense), partial(guarded("call"), nonsense)):
        with pytest.raises(rung.errors.ConfigError) as caught:
            refuse()
        assert caught.value.key == "guarded"
        assert "a function" in str(caught.value)


def test_unknown_names() -> None:
    """A keyword that is none, and a ladder that is none, are named in the error."""
    guarded: Any = rung.guarded
    for refuse in (partial(guarded("call", lisener=1), len), partial(guarded, len, lisener=1)):
        with pytest.raises(TypeError, match=r"'lisener'.*listeners"):
            refuse()
    with pytest.raises(rung.errors.ConfigError, match="no-such-ladder"):
        rung.guarded("no-such-ladder")


def test_ports_beside_a_function() -> None:
    """Ports given together with the function count as those given before it."""
    events: list[ev.Event] = []
    attempt = Failing(ConnectionError())

    def function() -> str:
        return attempt()

    guarded: Any = rung.guarded
    call = guarded(function, listeners=[lambda event, _: events.append(event)], jitter=lambda: 0.0, **alone())
    assert call() == "good"
    assert [type(event) for event in events] == [ev.Opened, ev.AttemptFailed, ev.Decided, ev.AttemptSucceeded]


def test_chance_is_asked() -> None:
    """The jitter a caller gives is the one used."""
    asked: list[float] = []

    def jitter() -> float:
        asked.append(0.0)
        return 0.0

    call = Failing(ConnectionError()).guarded(
        "sync", rung.policy("call", backoff={"base": 30}), jitter=jitter, **alone()
    )
    assert call() == "good"
    assert len(asked) == 1


def test_an_empty_journal_is_a_journal() -> None:
    """A journal that is empty, and so is false, is written all the same."""

    class ListJournal(list[ev.Event]):
        def append(self, _incident: str, _first: int, events: Sequence[ev.Event]) -> None:  # type: ignore[override]
            self.extend(events)

    journal = ListJournal()
    call = rung.guarded(FAST, journal=journal, **alone())(Failing(ConnectionError()).__call__)
    assert call() == "good"
    assert [type(event) for event in journal] == [ev.Opened, ev.AttemptFailed, ev.Decided, ev.AttemptSucceeded]


# What is raised.


def test_the_last_error(mode: str) -> None:
    """When the ladder is spent, the last error itself is raised, with the whole path as notes."""
    errors = [ConnectionError("one"), HttpError(500, "two"), TimeoutError("three"), ConnectionResetError("four")]
    attempt = Failing(*errors)
    call = attempt.guarded(mode, **alone())
    with pytest.raises(ConnectionResetError) as caught:
        run(call)
    assert caught.value is errors[-1]
    assert attempt.made == 4
    notes = "\n".join(caught.value.__notes__)
    assert "failed after 4 attempts" in notes
    for kind, text in (("network", "one"), ("server_error", "two"), ("timeout", "three"), ("network", "four")):
        assert f"{kind} (rule " in notes
        assert f": {text}" in notes
    assert notes.count("→ repeat") == 3
    assert notes.count("→ finish") == 1


def test_not_retryable(mode: str) -> None:
    """An error that repeating cannot mend is raised after one attempt, with what a person should do."""
    attempt = Failing(HttpError(401, "bad key"), HttpError(401, "bad key"))
    with pytest.raises(HttpError) as caught:
        run(attempt.guarded(mode, **alone()))
    assert attempt.made == 1
    assert "Check the key" in caught.value.__notes__[-1]
    assert outcome_of(caught.value).attempts == 1


def test_what_is_no_error_passes(mode: str) -> None:
    """What is not an Exception passes at once and as it is."""

    class Leave(BaseException):
        pass

    leave = Leave()
    attempt = Failing(leave, ConnectionError())
    with pytest.raises(Leave) as caught:
        run(attempt.guarded(mode, **alone()))
    assert caught.value is leave
    assert attempt.made == 1


def test_what_is_no_error_passes_a_repeated_attempt(mode: str) -> None:
    """The same in the repeated attempt of a call."""

    class Leave(BaseException):
        pass

    attempt = Failing(ConnectionError(), Leave())
    with pytest.raises(Leave):
        run(attempt.guarded(mode, **alone()))
    assert attempt.made == 2


def test_the_last_failure_was_no_error() -> None:
    """Where a check rejects the last result, that is what is raised, not the error of an attempt before."""
    attempt = Failing(ConnectionError("long gone"))
    refused = rung.Evidence(text="no good", finding=Kind.REFUSAL)
    call = rung.guarded(FAST, check=lambda _: refused, **alone())(attempt.__call__)
    with pytest.raises(rung.AttemptError, match="no good") as caught:
        call()
    assert attempt.made == 2
    assert outcome_of(caught.value).status is rung.Status.FAILED


def test_an_error_that_is_raised_again_has_the_stack_of_each_attempt() -> None:
    """The stack of a first failure, which is read after the retry, shows the first attempt alone."""
    error = ConnectionResetError("reset")

    @rung.guarded(FAST.with_tries(Action.RETRY, 1), **alone())
    def work(*, fails: bool) -> None:
        if fails:
            raise error

    work(fails=False)  # the first call of a thread is the engine's
    with pytest.raises(ConnectionResetError) as caught:
        work(fails=True)
    failed = [event.failure for event in outcome_of(caught.value).events if isinstance(event, ev.AttemptFailed)]
    assert [failure.evidence.stack.count(", in work") for failure in failed] == [1, 2]


def test_names_of_files() -> None:
    """Two missing files are told apart, though their errors have the same class and arguments."""

    @rung.guarded(FAST, **alone())
    def read(path: str) -> None:
        Path(path).read_text(encoding="utf-8")

    for path in ("/no/such/one", "/no/such/other"):
        with pytest.raises(FileNotFoundError) as caught:
            read(path)
        failure = outcome_of(caught.value).failure
        assert failure is not None
        assert path in failure.message


def test_arguments_that_cannot_be_hashed(mode: str) -> None:
    """An error whose arguments cannot be hashed is named as any other."""
    attempt = Failing(ConnectionError(["a list"]), ConnectionError({"a": "dict"}))
    assert run(attempt.guarded(mode, **alone())) == "good"
    assert attempt.made == 3


def test_more_errors_than_are_remembered(mode: str) -> None:
    """An error never seen before is named, however many there have been."""
    call = (attempt := Failing()).guarded(mode, FAST, **alone(retry_budget=None))
    for number in range(1_100):
        attempt.errors, attempt.made = (ConnectionError(number),), 0
        assert run(call) == "good" if mode == "sync" or number < 3 else True


# What a call may be turned into.


def test_a_request_gets_the_whole_ladder(mode: str) -> None:
    """A call whose first argument is a request is handed over to another model, its other arguments kept."""
    seen: list[tuple[str, str, str]] = []

    def attempt(request: rung.Request, tool: str, *, mood: str) -> str:
        seen.append((request.model, tool, mood))
        if request.model == "small":
            raise HttpError(404, "model: small not found")
        return "good"

    async def aattempt(request: rung.Request, tool: str, *, mood: str) -> str:
        return attempt(request, tool, mood=mood)

    policy = rung.policy("call", patience=0, backoff={"base": 0}, models=["small", "large"])
    call: Any = rung.guarded(policy, **alone())(attempt if mode == "sync" else aattempt)
    for _ in range(2):
        value = call(rung.Request(prompt="x", model="small"), "hammer", mood="calm")
        assert (asyncio.run(value) if mode == "async" else value) == "good"
    assert seen == [("small", "hammer", "calm"), ("large", "hammer", "calm")] * 2


def test_another_call_is_only_repeated(mode: str) -> None:
    """A call without a request cannot be changed: what is not mended by repeating is raised, and why is said."""
    policy = rung.policy("call", patience=0, backoff={"base": 0}, models=["small", "large"])
    attempt = Failing(ConnectionError(), HttpError(404, "model: small not found"))
    with pytest.raises(HttpError) as caught:
        run(attempt.guarded(mode, policy, **alone()), "small")
    assert attempt.made == 2
    decided = [event.decision for event in outcome_of(caught.value).events if isinstance(event, ev.Decided)]
    assert [type(decision) for decision in decided] == [ev.Repeat, ev.Finish]
    assert "the call cannot be changed" in decided[-1].skipped[-1][1]


# The breaker and the retry budget.


def test_the_breaker_refuses(mode: str) -> None:
    """After too many failures a call is refused without an attempt, and the error says for how long."""
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=0.5, minimum=4, pause=20.0))
    attempt = Failing(*[ConnectionError() for _ in range(9)])
    call = attempt.guarded(mode, ONCE, **alone(breakers=breakers, key="the service"))
    made = 0
    with pytest.raises(CircuitOpenError) as caught:  # noqa: PT012  # which call it is depends on when it was first watched
        for _ in range(9):
            made = attempt.made
            with suppress(ConnectionError):
                run(call)
    assert attempt.made == made
    assert 0 < caught.value.retry_after <= 20.0
    assert str(caught.value).startswith("circuit 'the service' is open for another ")
    outcome = outcome_of(caught.value)
    assert outcome.failure is not None
    assert outcome.failure.kind is Kind.SERVICE_DOWN
    assert outcome.failure.retry_after == caught.value.retry_after
    assert outcome.attempts == 0


def test_the_breaker_probes() -> None:
    """When its pause is over one call is let through, and a good one closes the circuit."""
    clock = FakeClock()
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=0.5, minimum=2, pause=20.0))
    attempt = Failing(ConnectionError(), ConnectionError())
    call = rung.guarded(ONCE, **alone(breakers=breakers, clock=clock))(attempt.__call__)
    for error in (ConnectionError, ConnectionError, CircuitOpenError):
        with pytest.raises(error):
            call()
    clock.advance(20.0)
    assert call() == "good"
    ((_, breaker),) = breakers.items()
    assert breaker.circuit is breaker.circuit.CLOSED


def test_a_slow_call_is_a_bad_one(mode: str) -> None:
    """Where the breaker is told what is slow, a call on the short way that took longer counts as failed."""
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=0.5, minimum=3, slow=1e-9))
    call = Failing().guarded(mode, **alone(breakers=breakers))
    refused = 0
    for _ in range(4):
        try:
            run(call)
        except CircuitOpenError:
            refused += 1
    assert refused


def test_one_breaker_for_each_key() -> None:
    """A function has a breaker of its own, unless it is given a key to share one."""
    breakers = rung.BreakerRegistry()
    assert breakers.get("a") is breakers.get("a")
    assert breakers.get("a") is not breakers.get("b")
    rung.guarded(FAST, breakers=breakers)(len)
    assert [key for key, _ in breakers.items()] == ["a", "b", "builtins.len"]


def test_the_retry_budget_stops_a_herd(mode: str) -> None:
    """When the shared retry budget is spent, calls are not repeated any more, and that is said."""
    budget = rung.RetryBudget(2 * rung.RetryBudget.COST, per_call=1, per_second=0)
    attempt = Failing(*[ConnectionError() for _ in range(99)])
    call = attempt.guarded(mode, FAST, **alone(retry_budget=budget))
    errors = []
    for _ in range(10):
        with pytest.raises(ConnectionError) as caught:
            run(call)
        errors.append(caught.value)
    assert attempt.made == 10 + 3  # each call brings a token, and the first ones a full bucket does not hold
    decided = [event.decision for event in outcome_of(errors[-1]).events if isinstance(event, ev.Decided)]
    assert decided[-1].skipped[0][1].startswith("the shared retry budget is spent")
    assert any("the shared retry budget is spent" in note for note in errors[-1].__notes__)


@pytest.mark.parametrize("seconds", [600, None])
def test_calls_fill_the_retry_budget(mode: str, seconds: int | None) -> None:
    """Each call on the short way brings its tokens when it begins, until the budget is full."""
    budget = rung.RetryBudget(20, per_second=0)
    policy = rung.policy("call", patience=0, backoff={"base": 0}, seconds=seconds)
    call = (attempt := Failing()).guarded(mode, policy, **alone(retry_budget=budget))
    attempt.errors, attempt.made = (ConnectionError(),), 0
    run(call)
    assert budget.tokens == budget.capacity - budget.COST
    run(call)
    assert budget.tokens == budget.capacity - budget.COST + budget.per_call
    for _ in range(budget.COST):
        run(call)
    assert budget.tokens == budget.capacity
    assert not budget.is_below_capacity


# Many at once.


def test_threads() -> None:
    """Calls of fifty threads are kept apart: each makes exactly its own number of attempts."""
    made: dict[int, int] = {}

    @rung.guarded(FAST, **alone(retry_budget=None))
    def attempt(number: int) -> int:
        made[number] = made.get(number, 0) + 1
        if made[number] <= number % 4:
            raise ConnectionError
        return number

    ready = threading.Barrier(50)

    def call(number: int) -> int:
        ready.wait()
        return attempt(number)

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(call, range(50))) == list(range(50))
    assert made == {number: 1 + number % 4 for number in range(50)}


def test_threads_without_a_limit() -> None:
    """The same where no limit is set, so that calls in any thread go the short way."""
    made: dict[int, int] = {}

    @rung.guarded(rung.policy("call", patience=0, backoff={"base": 0}, seconds=None), **alone(retry_budget=None))
    def attempt(number: int) -> int:
        assert (CURRENT.get() is None) == (made.get(number, 0) < 2)
        made[number] = made.get(number, 0) + 1
        if made[number] <= number % 4:
            raise ConnectionError
        return number

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(attempt, range(200))) == list(range(200))
    assert made == {number: 1 + number % 4 for number in range(200)}


def test_tasks() -> None:
    """Calls of two hundred tasks are kept apart: each makes exactly its own number of attempts."""
    made: dict[int, int] = {}

    @rung.guarded(FAST, **alone(retry_budget=None))
    async def attempt(number: int) -> int:
        made[number] = made.get(number, 0) + 1
        await asyncio.sleep(0)
        if made[number] <= number % 4:
            raise ConnectionError
        return number

    async def main() -> list[int]:
        return await asyncio.gather(*(attempt(number) for number in range(200)))

    assert asyncio.run(main()) == list(range(200))
    assert made == {number: 1 + number % 4 for number in range(200)}


# What an attempt reports from inside.


class Touching(Failing):
    """Has done something that can be seen before it fails; its first attempt is on the fast path."""

    def __init__(self, *errors: BaseException, at: int = 1) -> None:
        super().__init__(*errors)
        self.at = at

    def __call__(self, *_: object) -> str:
        if self.errors and self.made + 1 == self.at:
            assert (CURRENT.get() is None) == (self.at <= 2)
            rung.mark_side_effect()
        return super().__call__()


def test_touched_in_the_first_attempt(mode: str) -> None:
    """A call whose first attempt was touched is not replayed, on the short way either."""
    attempt = Touching(ConnectionError(), ConnectionError())
    with pytest.raises(ConnectionError) as caught:
        run(attempt.guarded(mode, **alone()))
    assert attempt.made == 1
    failure = outcome_of(caught.value).failure
    assert failure is not None
    assert failure.evidence.side_effects


@pytest.mark.parametrize("at", [2, 3])
def test_touched_in_the_repeated_attempt(mode: str, at: int) -> None:
    """A side effect of a first or second retry ends the retries."""
    attempt = Touching(ConnectionError(), ConnectionError(), ConnectionError(), at=at)
    with pytest.raises(ConnectionError):
        run(attempt.guarded(mode, **alone()))
    assert attempt.made == at


def test_touched_and_idempotent(mode: str) -> None:
    """A call that is marked as idempotent is replayed although it was touched."""
    attempt = Touching(ConnectionError(), ConnectionError())
    assert run(attempt.guarded(mode, FAST, idempotent=True, **alone())) == "good"
    assert attempt.made == 3


def test_touched_once_is_not_touched_for_ever() -> None:
    """What an earlier call did is not held against a later one that reports something else."""
    steps: list[str] = []

    @rung.guarded(FAST, **alone())
    def attempt(*, touch: bool) -> str:
        if touch:
            rung.mark_side_effect()
            return "touched"
        rung.report_step(f"step {len(steps)}")
        steps.append("made")
        if len(steps) == 1:
            raise ConnectionError
        return "good"

    attempt(touch=True)
    attempt(touch=True)
    assert attempt(touch=False) == "good"
    assert len(steps) == 2


LISTEN: dict[str, Any] = {"listeners": [lambda _event, _incident: None]}


@pytest.mark.parametrize("inner_ports", [{}, LISTEN], ids=["inner short", "inner long"])
@pytest.mark.parametrize("outer_ports", [{}, LISTEN], ids=["outer short", "outer long"])
def test_touched_by_an_inner_call(mode: str, inner_ports: dict[str, Any], outer_ports: dict[str, Any]) -> None:
    """What an inner call did can be seen of the outer one as well, though the inner one has recovered."""
    made: list[str] = []
    armed = False

    def inner() -> None:
        if armed and "inner" not in made:
            made.append("inner")
            rung.mark_side_effect()
            raise ConnectionError

    def outer() -> None:
        inner_call()
        if armed:
            made.append("outer")
            raise ConnectionError("after the inner one has recovered")

    async def ainner() -> None:
        inner()

    async def aouter() -> None:
        await inner_call()
        if armed:
            made.append("outer")
            raise ConnectionError("after the inner one has recovered")

    wrap_inner = rung.guarded(FAST, idempotent=True, **alone(**inner_ports))
    wrap_outer = rung.guarded(FAST, **alone(**outer_ports))
    inner_call: Any = wrap_inner(inner if mode == "sync" else ainner)
    outer_call: Any = wrap_outer(outer if mode == "sync" else aouter)
    run(outer_call)
    run(outer_call)
    armed = True
    with pytest.raises(ConnectionError, match="after the inner"):
        run(outer_call)
    assert made == ["inner", "outer"]
    with pytest.raises(ConnectionError, match="after the inner"):
        run(outer_call)  # nothing was touched this time: all four attempts are made
    assert made == ["inner", "outer", *["outer"] * 4]


@pytest.mark.parametrize("silent", [0, 1])
def test_steps_on_the_fast_path(mode: str, silent: int) -> None:
    """Steps reported on the fast path, or in the engine, are in the outcome in the end."""

    class Stepping(Failing):
        def __call__(self, *_: object) -> str:
            if self.errors and self.made >= silent:
                assert (CURRENT.get() is None) == (self.made <= silent)
                rung.report_step(f"step {self.made + 1}")
            return super().__call__()

    attempt = Stepping(*[ConnectionError() for _ in range(9)])
    with pytest.raises(ConnectionError) as caught:
        run(attempt.guarded(mode, **alone()))
    outcome = outcome_of(caught.value)
    assert outcome.attempts == attempt.made == 4
    assert outcome.steps == ("step 1", "step 2", "step 3", "step 4")[silent:]
    assert outcome.failed_at == "attempt 4, after: step 4"
    steps = [type(event) for event in outcome.events if isinstance(event, ev.StepCompleted | ev.AttemptFailed)]
    assert steps == [ev.AttemptFailed] * silent + [ev.StepCompleted, ev.AttemptFailed] * (4 - silent)


def test_money_on_the_long_way() -> None:
    """What attempts cost adds up in the outcome."""

    @rung.guarded(FAST, **alone(listeners=[lambda _event, _incident: None]))
    def attempt() -> None:
        rung.report_cost(0.25)
        rung.report_cost(0.25)
        raise ConnectionError

    with pytest.raises(ConnectionError) as caught:
        attempt()
    assert outcome_of(caught.value).dollars == 2.0


# Memory.


@pytest.mark.uncovered
@pytest.mark.parametrize(("message", "count"), [("same", 20_000), ("fresh", 6_000)])
def test_memory_does_not_grow(mode: str, message: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of calls that fail and then succeed leave nothing behind."""
    monkeypatch.setattr(logging.getLogger("rung"), "propagate", False)  # pytest keeps all records
    made = 0

    def attempt() -> str:
        nonlocal made
        made += 1
        if made % 2:
            raise ConnectionError(made if message == "fresh" else "x")
        return "good"

    async def aattempt() -> str:
        return attempt()

    call: Any = rung.guarded(FAST, **alone(retry_budget=None))(attempt if mode == "sync" else aattempt)

    async def acalls(count: int) -> None:
        for _ in range(count):
            await call()

    def calls(count: int) -> int:
        if mode == "sync":
            for _ in range(count):
                call()
        else:
            asyncio.run(acalls(count))
        gc.collect()
        return sys.getallocatedblocks()

    before = calls(1_500)  # by then everything that is bounded has been full
    kept = calls(count) - before
    assert kept < (1_000 if message == "same" else 30_000)


ALIVE: weakref.WeakSet[Tracked] = weakref.WeakSet()


class Tracked(ConnectionError):
    """An error of which we know whether it is still there."""

    def __init__(self) -> None:
        super().__init__("tracked")
        ALIVE.add(self)


class Sources:
    """A function of each sort that fails so often, then gives "good"."""

    left = 0

    def plain(self) -> str:
        if self.left:
            self.left -= 1
            raise Tracked
        return "good"

    async def awaited(self) -> str:
        return self.plain()

    def stream(self) -> Iterator[str]:
        yield "first"
        yield self.plain()

    async def astream(self) -> AsyncIterator[str]:
        yield "first"
        yield self.plain()


async def collected(items: AsyncIterator[str]) -> list[str]:
    return [item async for item in items]


def in_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


WHERE: dict[str, tuple[str, Callable[[Callable[[], Any]], Any]]] = {
    "main": ("plain", lambda call: call()),
    "worker": ("plain", lambda call: call()),
    "no limit": ("plain", lambda call: call()),
    "async": ("awaited", lambda call: call()),
    "stream": ("stream", lambda call: list(call())),
    "async stream": ("astream", lambda call: collected(call())),
}
WAYS: dict[str, dict[str, Any]] = {"short": {}, "long": {"listeners": [lambda _event, _incident: None]}}


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", WHERE)
def test_errors_are_not_kept(where: str, way: str, failures: int) -> None:
    """When a call has ended, in success or by its last error, no error is kept alive, by a cycle or otherwise."""
    sources, outcomes = Sources(), []
    name, take = WHERE[where]
    policy = rung.policy("call", patience=0, backoff={"base": 0}, seconds=None) if where == "no limit" else FAST
    guarded: Any = rung.guarded(policy, idempotent=True, **alone(**WAYS[way]))(getattr(sources, name))

    def call() -> None:
        try:
            take(guarded)
        except Tracked as error:
            outcomes.append(outcome_of(error))

    async def acall() -> None:
        try:
            await take(guarded)
        except Tracked as error:
            outcomes.append(outcome_of(error))

    def make_it() -> None:
        if where.startswith("async"):
            asyncio.run(acall())
        elif where == "worker":
            in_thread(call)
        else:
            call()

    make_it()
    gc.collect()
    gc.disable()
    try:
        sources.left = failures
        make_it()
        assert len(outcomes) == (failures > 3)
        assert list(ALIVE) == []
    finally:
        gc.enable()


def test_an_error_that_is_raised_again_is_not_kept(mode: str) -> None:
    """An error that both attempts raise is freed with the call, without the garbage collector."""
    attempt = Failing(*[Tracked()] * 2)
    call = attempt.guarded(mode, FAST.with_tries(Action.RETRY, 1), **alone())

    async def acall() -> None:
        with suppress(Tracked):
            await call()

    gc.collect()
    gc.disable()
    try:
        with suppress(Tracked):
            run(call if mode == "sync" else acall)
        assert (attempt.made, len(ALIVE)) == (2, 1)
        attempt.errors = ()
        assert list(ALIVE) == []
    finally:
        gc.enable()
