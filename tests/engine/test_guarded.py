"""Guarded functions in every shape: what is kept, what is repeated, what is raised."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core import events as ev
from rung.engine import flat, interrupt, timer
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

QUICK = rung.policy("call", backoff={"base": 0})


def ports(**more: Any) -> dict[str, Any]:
    return {"breakers": rung.Breakers(), "retry_budget": rung.RetryBudget(), **more}


class Flaky:
    """Fails so often, then returns."""

    def __init__(self, times: int, error: type[Exception] = ConnectionResetError) -> None:
        self.times = times
        self.error = error
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error(f"failure {self.calls}")
        return "done"


def both(flaky: Flaky, **more: Any) -> list[Any]:
    """The same call, guarded as a function and as a coroutine function, each to be called plainly."""
    policy = more.pop("policy", QUICK)

    @rung.guarded(policy, **ports(**more))
    def sync() -> str:
        return flaky()

    @rung.guarded(policy, **ports(**more))
    async def awaited() -> str:
        return flaky()

    return [sync, lambda: asyncio.run(awaited())]


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_blips_are_repeated(mode: int, times: int) -> None:
    """Up to three blips are repeated, whether the short way suffices or not."""
    flaky = Flaky(times)
    call = both(flaky)[mode]
    assert call() == "done"
    assert flaky.calls == times + 1
    flaky.calls = 0
    assert call() == "done"


@pytest.mark.parametrize("mode", [0, 1])
def test_exhaustion_raises_the_last_error_with_the_path(mode: int) -> None:
    """When it is exhausted the last error itself is raised, with every attempt and decision as notes."""
    flaky = Flaky(99)
    call = both(flaky)[mode]
    for _ in range(2):
        with pytest.raises(ConnectionResetError) as error:
            call()
    assert flaky.calls == 8
    assert str(error.value) == "failure 8"
    notes = "\n".join(error.value.__notes__)
    assert notes.count("network (rule no-route)") == 4
    assert "repeat" in notes
    assert error.value.__dict__["__rung_outcome__"].attempts == 4


@pytest.mark.parametrize("mode", [0, 1])
def test_what_cannot_be_helped_is_raised_at_once(mode: int) -> None:
    """An error that repeating cannot help is raised after one attempt."""
    flaky = Flaky(99, KeyError)
    call = both(flaky)[mode]
    for _ in range(2):
        with pytest.raises(KeyError):
            call()
    assert flaky.calls == 2


@pytest.mark.parametrize("mode", [0, 1])
def test_waits_are_really_waited(mode: int) -> None:
    """The backoff is real time on the short way too."""
    policy = rung.policy("call", backoff={"base": 0.05, "jitter": False})
    began = time.monotonic()
    assert both(Flaky(1), policy=policy)[mode]() == "done"
    both_calls = both(Flaky(0), policy=policy)[mode]
    both_calls()
    assert time.monotonic() - began >= 0.05


def test_signatures_are_kept() -> None:
    """Name, doc, signature and nature of a function survive guarding."""

    @rung.guarded
    def plain(a: int, *, b: str = "x") -> str:
        """Say."""
        return f"{a}{b}"

    @rung.guarded("call")
    async def awaited() -> None: ...

    @rung.guarded(QUICK)
    def items() -> Iterator[int]:
        yield 1

    @rung.guarded()
    async def aitems() -> AsyncIterator[int]:
        yield 1

    assert (plain.__name__, plain.__doc__, str(inspect.signature(plain))) == (
        "plain",
        "Say.",
        "(a: 'int', *, b: 'str' = 'x') -> 'str'",
    )
    assert plain(1, b="y") == "1y"
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.isgeneratorfunction(items)
    assert inspect.isasyncgenfunction(aitems)


def test_methods() -> None:
    """Methods can be guarded as functions can."""

    class Client:
        calls = 0

        @rung.guarded(QUICK, **ports())
        def get(self, name: str) -> str:
            self.calls += 1
            if self.calls == 1:
                raise TimeoutError("slow")
            return name

    assert Client().get("x") == "x"


def test_a_request_gets_the_whole_ladder() -> None:
    """A function that takes a request may be handed over to another model; any other is only repeated."""
    script = Script(HttpError(529, "Overloaded"))
    policy = rung.policy("call", models=["small", "large"], retries=0)

    @rung.guarded(policy, **ports())
    def ask(request: rung.Request, suffix: str) -> str:
        if request.model == "large":
            return f"large{suffix}"
        return str(script(request))

    assert ask(rung.Request(prompt="x", model="small"), "!") == "large!"

    @rung.guarded(policy, **ports())
    async def aask(request: rung.Request) -> str:
        return "large" if request.model == "large" else str(script(request))

    assert asyncio.run(aask(rung.Request(prompt="x", model="small"))) == "large"


def test_misuse_is_named() -> None:
    """What is no function, and what is no port, is said where it is written."""
    with pytest.raises(rung.ConfigError, match="guarded = 7"):
        rung.guarded(QUICK)(7)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="unknown argument 'tries'"):
        rung.guarded(QUICK, tries=3)(lambda: 1)
    with pytest.raises(rung.ConfigError, match="ladder = 'no'"):
        rung.guarded("no")


@pytest.mark.parametrize("mode", [0, 1])
def test_an_open_circuit_refuses(mode: int) -> None:
    """Calls are refused while the circuit is open, and told when to come back; a probe closes it."""
    flaky = Flaky(3)
    breakers = rung.Breakers(rung.BreakerSettings(minimum=3, rate=1.0, pause=0.05))
    call = both(flaky, breakers=breakers, key="api", policy=rung.policy("call", retries=0))[mode]
    for _ in range(3):
        with pytest.raises(ConnectionResetError):
            call()
    with pytest.raises(rung.RungError, match="circuit 'api' is open"):
        call()
    assert flaky.calls == 3
    time.sleep(0.06)
    assert call() == "done"
    assert breakers.get("api").circuit == "closed"


@pytest.mark.parametrize("mode", [0, 1])
def test_a_circuit_that_opens_under_a_call_refuses_its_repeat(mode: int) -> None:
    """When a call's own failure opens the circuit, its repeat is refused as any other call is."""
    flaky = Flaky(9)
    breakers = rung.Breakers(rung.BreakerSettings(minimum=1, rate=1.0, pause=60))
    call = both(flaky, breakers=breakers, key="api")[mode]
    with pytest.raises(rung.RungError, match="circuit 'api' is open"):
        call()
    assert flaky.calls == 1


@pytest.mark.parametrize("mode", [0, 1])
def test_slow_calls_count(mode: int) -> None:
    """With `slow` set, calls that succeed too slowly open the circuit."""
    breakers = rung.Breakers(rung.BreakerSettings(minimum=2, rate=1.0, slow=0.001))

    class Slow(Flaky):
        def __call__(self) -> str:
            time.sleep(0.003)
            return super().__call__()

    call = both(Slow(0), breakers=breakers, key="api")[mode]
    call()
    call()
    with pytest.raises(rung.RungError, match="is open"):
        call()


@pytest.mark.parametrize("mode", [0, 1])
def test_an_empty_retry_budget_stops_repeats(mode: int) -> None:
    """With the shared budget spent nothing is repeated; clean successes fill it again."""
    budget = rung.RetryBudget(14)
    flaky = Flaky(1)
    call = both(flaky, retry_budget=budget)[mode]
    assert call() == "done"
    assert budget.tokens == 1
    flaky.calls = 0
    with pytest.raises(ConnectionResetError):
        call()
    for _ in range(13):
        call()
    assert budget.tokens == 14


@pytest.mark.parametrize("mode", [0, 1])
def test_no_limit_no_budget(mode: int) -> None:
    """Without a time limit and a shared budget the short way has nothing to watch, in any thread."""
    policy = rung.policy("call", backoff={"base": 0}, seconds=None)
    flaky = Flaky(1)
    call = both(flaky, policy=policy, retry_budget=None)[mode]
    assert call() == "done"
    assert call() == "done"
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    assert results == ["done"]


def test_unlimited_credits_and_refuses() -> None:
    """The unlimited way pays its successes back, and takes the long way when the circuit is open."""
    budget = rung.RetryBudget(500)
    budget.charge(rung.Kind.NETWORK)
    breakers = rung.Breakers(rung.BreakerSettings(minimum=1, rate=1.0))
    flaky = Flaky(1)
    policy = rung.policy("call", retries=0, seconds=None)
    call = both(flaky, policy=policy, retry_budget=budget, breakers=breakers, key="k")[0]
    with pytest.raises(ConnectionResetError):
        call()
    with pytest.raises(rung.RungError):
        call()
    breakers.get("k").restore(rung.Breakers().get("x").snapshot(0.0), 0.0)
    assert call() == "done"
    assert budget.tokens == 500 - 14 + 1


@pytest.mark.parametrize("mode", [0, 1])
def test_touched_is_not_replayed(mode: int) -> None:
    """An attempt that has said its effects can be seen is not repeated, on the first or the second failure."""
    calls = 0

    def act(at: int) -> str:
        nonlocal calls
        calls += 1
        if calls == at:
            rung.touched()
            rung.completed("sent the mail")
        raise ConnectionResetError("x")

    for at in (1, 2):
        calls = 0

        @rung.guarded(QUICK, **ports())
        def sync(at: int = at) -> str:
            return act(at)

        @rung.guarded(QUICK, **ports())
        async def awaited(at: int = at) -> str:
            return act(at)

        with pytest.raises(ConnectionResetError) as error:
            sync() if mode == 0 else asyncio.run(awaited())
        if mode == 0:
            calls = 0
            with pytest.raises(ConnectionResetError) as error:
                sync()
        assert calls == at
        assert error.value.__dict__["__rung_outcome__"].steps == ("sent the mail",)


def test_steps_without_effects_are_taken_along() -> None:
    """Steps reported on the short way are in the outcome, and old ones are not."""
    rung.completed("long ago")

    @rung.guarded(rung.policy("call", retries=0), **ports())
    def work() -> None:
        rung.completed("now")
        raise ConnectionResetError("x")

    for _ in range(2):
        with pytest.raises(ConnectionResetError) as error:
            work()
    assert error.value.__dict__["__rung_outcome__"].steps == ("now",)


def test_calls_are_kept_apart() -> None:
    """Fifty threads and two hundred tasks over one guarded function each make their own attempts."""

    calm = {"retry_budget": None, "breakers": rung.Breakers(rung.BreakerSettings(minimum=10_000))}

    @rung.guarded(QUICK, **ports(**calm))
    def sync(flaky: Flaky) -> str:
        return flaky()

    @rung.guarded(QUICK, **ports(**calm))
    async def awaited(flaky: Flaky) -> str:
        await asyncio.sleep(0)
        return flaky()

    flakies = [Flaky(n % 4) for n in range(50)]
    threads = [threading.Thread(target=sync, args=(flaky,)) for flaky in flakies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [flaky.calls for flaky in flakies] == [n % 4 + 1 for n in range(50)]

    async def main() -> None:
        more = [Flaky(n % 4) for n in range(200)]
        await asyncio.gather(*(awaited(flaky) for flaky in more))
        assert [flaky.calls for flaky in more] == [n % 4 + 1 for n in range(200)]

    asyncio.run(main())


def test_nothing_holds_the_error() -> None:
    """After a recovered call nothing keeps its exception alive, even without the collector."""
    kept: list[weakref.ref[Exception]] = []

    class Blip(ConnectionResetError):
        def __init__(self) -> None:
            kept.append(weakref.ref(self))

    def once() -> str:
        if len(kept) % 2 == 0:
            raise Blip
        kept.append(kept[-1])
        return "done"

    guarded = rung.guarded(QUICK, **ports())(once)
    gc.collect()
    gc.disable()
    try:
        guarded()
        guarded()
        assert [ref() for ref in kept] == [None] * 4
    finally:
        gc.enable()


def test_the_short_way_tells_what_the_long_way_would() -> None:
    """The events made of a brief are those the long way records, but for ids and times."""
    told: list[ev.Event] = []
    for mode in (0, 1):
        flaky = Flaky(1)
        short = both(flaky)[mode]
        if mode == 0:
            short()  # the first call in a thread goes the long way: it starts the watchdog
            flaky.calls = 0
        short()
        lane = (short if mode == 0 else short.__closure__[0].cell_contents).__dict__["__rung__"]
        brief = lane.briefs()[-1]
        told.clear()
        long = both(Flaky(1), listeners=[lambda event, incident: told.append(event)])[mode]
        long()
        made = brief.events(lane.guard)
        assert [type(event) for event in made] == [type(event) for event in told]
        assert made[1].failure == told[1].failure  # type: ignore[union-attr]
        assert made[2].decision == told[2].decision  # type: ignore[union-attr]
        assert made[0].terms == told[0].terms  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", [0, 1])
def test_time_limits_end_a_call(mode: int) -> None:
    """A call that overruns its time is ended, and the next attempt is made."""
    policy = rung.policy("call", attempt_seconds=0.05, retries=1, backoff={"base": 0})
    calls = 0

    @rung.guarded(policy, **ports())
    def sync() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            time.sleep(5)
        return "done"

    @rung.guarded(policy, **ports())
    async def awaited() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.sleep(5)
        return "done"

    began = time.monotonic()
    assert (sync() if mode == 0 else asyncio.run(awaited())) == "done"
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("slow", [1, 2])
def test_an_overdue_short_way_sync(slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the short way an overdue call, and an overdue repeat, are ended by the watchdog too."""
    monkeypatch.setattr(flat, "LOOK_EVERY", 0.01)  # else only limits of five seconds and more go this way
    calls = 0

    @rung.guarded(rung.policy("call", seconds=0.3, backoff={"base": 0}), **ports())
    def work() -> str:
        nonlocal calls
        calls += 1
        if calls == slow:
            time.sleep(20)
        if calls == 1:
            raise ConnectionResetError("x")
        return "done"

    calls = 5
    assert work() == "done"
    calls = 0
    waker = threading.Timer(0.35, interrupt.WATCHDOG.hurry, [0.0])
    waker.start()
    began = time.monotonic()
    with pytest.raises(rung.TimeUp):
        work()
    assert time.monotonic() - began < 10
    waker.join()


@pytest.mark.parametrize("mode", [0, 1])
def test_ctrl_c_passes_through(mode: int) -> None:
    """Ctrl-C in a guarded call passes through, on the first attempt and on a repeat."""
    calls = 0

    def work(at: int) -> str:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        raise ConnectionResetError("x")

    @rung.guarded(QUICK, **ports())
    def sync(at: int) -> str:
        return work(at)

    @rung.guarded(QUICK, **ports())
    async def awaited(at: int) -> str:
        return work(at)

    for at in (1, 1, 2, 3):
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            sync(at) if mode == 0 else asyncio.run(awaited(at))
        assert calls == at


def test_cancellation_passes_through() -> None:
    """A caller's cancellation of a guarded call passes through at once and is not a timeout."""

    @rung.guarded(QUICK, **ports())
    async def awaited(blips: list[int]) -> str:
        if blips:
            blips.pop()
            raise ConnectionResetError("x")
        await asyncio.sleep(30)
        return "done"

    async def main(blips: int) -> None:
        task = asyncio.create_task(awaited([1] * blips))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not timer.RUNNING

    for blips in (0, 1, 2):
        asyncio.run(main(blips))


def test_the_sweeper_ends_what_is_overdue() -> None:
    """What the sweeper finds overdue is cancelled and becomes a timeout; a swallowed one is taken back."""

    def overdue() -> None:
        for work, (_, task) in list(timer.RUNNING.items()):
            timer.RUNNING[work] = (0.0, task)
        timer.sweeper_here()._look()

    calls = 0

    @rung.guarded(rung.policy("call", backoff={"base": 0}, retries=1), **ports())
    async def awaited(kind: str) -> str:
        nonlocal calls
        calls += 1
        if kind == "repeat" and calls == 1:
            raise ConnectionResetError("x")
        if kind == "ends" and calls == 2:
            return "done"
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            if kind == "swallows":
                return "done all the same"
            raise
        return "late"

    async def main(kind: str) -> str:
        nonlocal calls
        calls = 0
        asyncio.get_running_loop().call_later(0.02, overdue)
        value = await awaited(kind)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        return value

    assert asyncio.run(main("ends")) == "done"
    assert asyncio.run(main("swallows")) == "done all the same"
    with pytest.raises(rung.TimeUp):
        asyncio.run(main("repeat"))
    assert not timer.RUNNING
    assert not timer.OVERDUE


def elsewhere(work: Any) -> asyncio.Task[Any]:
    """A task in a loop of its own, in a thread of its own."""
    begun: list[asyncio.Task[Any]] = []
    ready = threading.Event()

    async def main() -> None:
        begun.append(asyncio.create_task(work))
        ready.set()
        await asyncio.gather(*begun, return_exceptions=True)

    threading.Thread(target=lambda: asyncio.run(main())).start()
    ready.wait()
    return begun[0]


def test_two_loops_do_not_disturb_each_other() -> None:
    """A sweeper only touches the tasks of its own loop, and looks again when the next one is due."""

    async def main() -> None:
        sweeper = timer.sweeper_here()
        assert timer.sweeper_here() is sweeper
        foreign = elsewhere(asyncio.sleep(30))
        timer.RUNNING["foreign"] = (0.0, foreign)
        timer.RUNNING["soon"] = (time.monotonic() + 1, asyncio.current_task())
        sweeper._look()
        assert not timer.OVERDUE
        assert not foreign.cancelling()
        timer.RUNNING.clear()
        foreign.get_loop().call_soon_threadsafe(foreign.cancel)

    asyncio.run(main())


def test_async_limits_tell_whose_they_are() -> None:
    """Our timer's end is TimeUp; the attempt's own TimeoutError is its own."""

    async def own() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        asyncio.run(timer.limited(own(), 5))
    with pytest.raises(rung.TimeUp):
        asyncio.run(timer.limited(asyncio.sleep(5), 0.01))
    assert asyncio.run(timer.limited(asyncio.sleep(0, "x"), None)) == "x"


def items(fails: list[int | None], seen: list[Any]) -> Iterator[Any]:
    """Yields 0, 1, 2 and returns "end"; fails at the next given place each time it is begun."""
    fail_at = fails.pop(0) if fails else None
    for number in range(3):
        if number == fail_at:
            raise ConnectionResetError("cut")
        seen.append((yield number))
    return "end"


async def aitems(fails: list[int | None], seen: list[Any]) -> AsyncIterator[Any]:
    """The same, async."""
    fail_at = fails.pop(0) if fails else None
    for number in range(3):
        if number == fail_at:
            raise ConnectionResetError("cut")
        seen.append((yield number))


def collect(mode: int, fails: list[int | None], **options: Any) -> list[Any]:
    got: list[Any] = []
    if mode == 0:
        got.extend(rung.guarded(QUICK, **ports(**options))(items)(fails, []))
    else:

        async def main() -> None:
            async for item in rung.guarded(QUICK, **ports(**options))(aitems)(fails, []):
                got.append(item)

        asyncio.run(main())
    return got


@pytest.mark.parametrize("mode", [0, 1])
def test_generators(mode: int) -> None:
    """A generator that fails before its first item is begun again unseen; later it is not, unless idempotent."""
    assert collect(mode, []) == [0, 1, 2]
    assert collect(mode, [0, 0]) == [0, 1, 2]
    with pytest.raises(ConnectionResetError) as error:
        collect(mode, [2])
    assert any("stream" in note or "network" in note for note in error.value.__notes__)
    assert collect(mode, [2, 1, 2], idempotent=True) == [0, 1, 2]


def test_generators_pass_everything_on() -> None:
    """What is sent, returned and closed passes through a guarded generator."""
    seen: list[Any] = []
    stream = rung.guarded(QUICK, **ports())(items)([], seen)
    assert next(stream) == 0
    assert stream.send("a") == 1  # type: ignore[attr-defined]
    assert next(stream) == 2
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert (end.value.value, seen) == ("end", ["a", None, None])
    closed = rung.guarded(QUICK, **ports())(items)([], [])
    next(closed)
    closed.close()  # type: ignore[attr-defined]

    @rung.guarded(QUICK, **ports())
    def empty() -> Iterator[int]:
        yield from ()
        return "nothing"

    with pytest.raises(StopIteration) as end:
        next(empty())
    assert end.value.value == "nothing"

    async def main() -> None:
        seen: list[Any] = []
        stream: Any = rung.guarded(QUICK, **ports())(aitems)([], seen)
        assert await anext(stream) == 0
        assert await stream.asend("a") == 1
        await stream.aclose()
        assert seen == ["a"]

        @rung.guarded(QUICK, **ports())
        async def nothing() -> AsyncIterator[int]:
            for item in ():
                yield item

        assert [item async for item in nothing()] == []

    asyncio.run(main())


def test_a_check_and_a_clock_take_the_long_way() -> None:
    """Ports that must see every attempt are served, and a check's failure is raised when nothing helps."""

    @rung.guarded(rung.policy("call", retries=0), **ports(clock=FakeClock(), check=lambda value: "bad"))
    def work() -> str:
        return "x"

    with pytest.raises(rung.AttemptError, match="low_quality"):
        work()

    @rung.guarded(QUICK, **ports(clock=FakeClock(), jitter=lambda: 0.5, ask=lambda question, incident: "stop"))
    def asked() -> str:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asked()


def test_unhashable_and_many_errors() -> None:
    """Errors whose arguments cannot be hashed are named each time, and names are not kept without end."""
    from rung.engine import run

    failure = run.name(ConnectionResetError(["list"]))
    assert failure.kind == "network"
    for number in range(run._KNOWN_LIMIT + 2):
        run.name(ConnectionResetError(number))
    assert len(run._KNOWN) <= run._KNOWN_LIMIT
    caused = ConnectionResetError("x")
    caused.__cause__ = KeyError("y")
    assert run.name(caused).kind == "network"
