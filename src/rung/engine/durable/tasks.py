"""Functions that any process can take up again: registered by name, with JSON arguments, made of steps.

Inside one, `step` does something once, `sleep` waits until a moment that is written down, and `wait` waits
for a word from outside. What is between the steps runs again after a crash: it must not do anything by itself.
In a coroutine function all three are awaited, as its `start` is.

A store in trouble (a full disk, a lock) is waited for while a step is to be kept. If that is in vain, `Busy` is
raised, and the run stays open: taken up later, it repeats the one step that was done and not kept.
"""

from __future__ import annotations

import time
import warnings
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import ConfigError, RungError, StoreUnavailable
from rung.engine.durable.store_retry import apatiently, patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.ports import DurableJournal, RunLease

F = TypeVar("F", bound="Callable[..., Any]")

TASKS: Final[dict[str, Callable[..., Any]]] = {}
POLL: Final = 0.05  # between looks for a word from outside
SLICE: Final = 30.0  # of a long sleep, so that a machine that slept is noticed
_MISSING: Final = object()


class DurableTask:
    """A task at work: the run it is, and what of it is done."""

    def __init__(
        self,
        claim: RunLease,
        hear: Callable[[str], Any],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.claim = claim
        self.done = claim.steps()
        self._hear = hear
        self._now = now
        self._sleep = sleep or self._real_sleep()

    def _real_sleep(self) -> Callable[[float], Any]:
        return time.sleep

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The result of a step: done now, or known from before."""
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        result = function(*arguments)
        patiently(partial(self.claim.record, key, result), self._sleep)
        self.done[key] = result
        return result

    def sleep(self, key: str, seconds: float) -> Any:
        """Wait until the moment that was written down when this was first reached."""
        until = self.step(key, self._in(seconds), ())
        while (left := until - self._now()) > 0:
            self._sleep(min(left, SLICE))

    def wait(self, topic: str, timeout: float | None) -> Any:
        """What somebody says about a topic of this run; None when nobody does in time."""
        key = f"wait.{topic}"
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        until = None if timeout is None else self.step(f"{key}.until", self._in(timeout), ())
        while True:
            told = self._hear(f"{self.claim.run}/{topic}")
            if told is not None or self._past(until):
                return self.step(key, lambda told=told: told, ())
            self._sleep(POLL)

    def _in(self, seconds: float) -> Callable[[], float]:
        return lambda: self._now() + seconds

    def _past(self, until: float | None) -> bool:
        return until is not None and self._now() >= until


class AsyncDurableTask(DurableTask):
    """The same for a coroutine function: all of it is awaited, and none of it holds up the loop."""

    def _real_sleep(self) -> Callable[[float], Any]:
        from asyncio import sleep

        return sleep

    async def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """A plain function is called in a thread."""
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        from asyncio import to_thread
        from inspect import iscoroutinefunction

        result = function(*arguments) if iscoroutinefunction(function) else await to_thread(function, *arguments)
        result = await result if hasattr(result, "__await__") else result
        await apatiently(partial(self.claim.record, key, result), self._sleep)
        self.done[key] = result
        return result

    async def sleep(self, key: str, seconds: float) -> Any:
        """As above."""
        until = await self.step(key, self._in(seconds), ())
        while (left := until - self._now()) > 0:
            await self._sleep(min(left, SLICE))

    async def wait(self, topic: str, timeout: float | None) -> Any:  # noqa: ASYNC109  # it outlives the process
        """As above."""
        from asyncio import to_thread

        key = f"wait.{topic}"
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        until = None if timeout is None else await self.step(f"{key}.until", self._in(timeout), ())
        while True:
            told = await to_thread(self._hear, f"{self.claim.run}/{topic}")
            if told is not None or self._past(until):
                return await self.step(key, lambda told=told: told, ())
            await self._sleep(POLL)


WORK: ContextVar[DurableTask | None] = ContextVar("rung_work", default=None)


def task(name: str) -> Callable[[F], F]:
    """Register a function by name, so that any process that has imported it can take up its runs.

    >>> @rung.durable.task("report")
    ... def report(day: str) -> dict: ...
    """
    if not isinstance(name, str) or not name:
        raise ConfigError("name", name, 'a text: @rung.durable.task("name")')

    def register(function: F) -> F:
        if TASKS.get(name) not in {None, function}:
            raise ConfigError("name", name, "a name that no other task has")
        TASKS[name] = function
        return function

    return register


def step(key: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Do this once in the run, whatever happens to its process: what it returned (JSON) is kept.

    Awaited in a task that is a coroutine function, as `sleep` and `wait` are.
    """
    return _here().step(key, function, arguments)


def sleep(key: str, seconds: float) -> Any:
    """Wait; taken up again later, only until the moment that was meant."""
    return _here().sleep(key, seconds)


def wait(topic: str, timeout: float | None = None) -> Any:
    """Wait for a word from outside (`journal.runs.send("RUN/TOPIC", …)`); None when the time is up."""
    return _here().wait(topic, timeout)


def _here() -> DurableTask:
    work = WORK.get()
    if work is None:
        raise RungError("this can be called only inside a task that runs: see rung.durable.task and rung.durable.start")
    return work


def start(journal: DurableJournal, run: str, name: str, **arguments: Any) -> Any:
    """Run a task to its end in this process, from its beginning or from where it was cut off; its result.

    Where the task is a coroutine function, this is to be awaited.
    """
    function = TASKS.get(name)
    if function is None:
        raise ConfigError("name", name, f"a registered task: {', '.join(sorted(TASKS)) or 'there is none'}")
    carry = _acarry if _is_async(name) else _carry
    return carry(journal, run, name, arguments)


def take_up(journal: DurableJournal, run: str, name: str, **arguments: Any) -> Any:
    """The same, blocking, for tasks of both sorts."""
    if not _is_async(name):
        return start(journal, run, name, **arguments)
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start(journal, run, name, **arguments))
    raise RungError(
        f"task {name!r} is awaited, and this would block its loop: await asyncio.to_thread(rung.durable.resume, …)"
    )


def resume(journal: DurableJournal) -> dict[str, Any]:
    """Take up every run that nobody has and whose task is known here; what each came to, or what it raised.

    It blocks: with an event loop at work, `await asyncio.to_thread(rung.durable.resume, journal)`.
    """
    ended: dict[str, Any] = {}
    for run in journal.runs.open_runs():
        if not run.owned and run.task in TASKS:
            try:
                ended[run.id] = take_up(journal, run.id, run.task, **run.arguments)
            except Exception as error:  # one run's trouble is not the next one's
                ended[run.id] = error
    return ended


def _is_async(name: str) -> bool:
    from inspect import iscoroutinefunction

    return iscoroutinefunction(TASKS.get(name))


def _carry(journal: DurableJournal, run: str, name: str, arguments: dict[str, Any]) -> Any:
    claim = journal.runs.claim(run, name, arguments)
    if _has_ended(claim):
        return _result(claim.done)
    with claim:
        token = WORK.set(DurableTask(claim, journal.runs.received))
        try:
            value = TASKS[name](**arguments)
        except StoreUnavailable:
            raise  # a step could not be kept: the run stays open, and only that step may be done again
        except Exception as error:
            keep_end(claim, _failure(error))
            raise
        finally:
            WORK.reset(token)
        keep_end(claim, {"status": "succeeded", "value": value})
    return value


async def _acarry(journal: DurableJournal, run: str, name: str, arguments: dict[str, Any]) -> Any:
    """The same, awaiting; the store's own waits are taken off the loop."""
    from asyncio import to_thread

    claim = await to_thread(journal.runs.claim, run, name, arguments)
    if await to_thread(_has_ended, claim):
        return _result(claim.done)
    with claim:
        token = WORK.set(await to_thread(AsyncDurableTask, claim, journal.runs.received))
        try:
            value = await TASKS[name](**arguments)
        except StoreUnavailable:
            raise  # as above
        except Exception as error:
            await to_thread(keep_end, claim, _failure(error))
            raise
        finally:
            WORK.reset(token)
        await to_thread(keep_end, claim, {"status": "succeeded", "value": value})
    return value


def _has_ended(claim: RunLease) -> bool:
    if claim.done is None and claim.exhausted:
        claim.finish({"status": "partial", "reason": "it was taken up three times and got no further"})
    return claim.done is not None


def _failure(error: Exception) -> dict[str, Any]:
    failure = classify(evidence_of(error))
    return {"status": "failed", "kind": failure.kind.value, "reason": failure.message}


def keep_end(claim: RunLease, ended: dict[str, Any], sleep: Callable[[float], None] = time.sleep) -> None:
    """Keep how it ended; if that cannot be, the run stays open, and comes to the same without doing a step."""
    try:
        patiently(partial(claim.finish, ended), sleep)
    except StoreUnavailable as error:
        warnings.warn(f"rung: the end of run {claim.run!r} could not be kept: {error}", RuntimeWarning, stacklevel=2)


def _result(done: dict[str, Any]) -> Any:
    if done.get("status") == "succeeded":
        return done.get("value")
    raise RungError(f"the run ended {done.get('status')}: {done.get('reason')}")
