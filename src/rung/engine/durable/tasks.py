"""Durable tasks: functions registered by name, with JSON arguments, that any process can resume.

Inside a task, `step` runs a function once, `sleep` waits until a recorded time, and `wait` waits for a message. Code
between steps re-executes after a crash; put side effects inside steps. In a coroutine function all three are awaited,
and so is `start`.

If the store is unavailable (a full disk, a lock), recording a step is retried. If the retries are exhausted,
`StoreUnavailable` is raised and the run stays open: resumed later, it repeats the one step that was not recorded.
"""

from __future__ import annotations

import time
import warnings
from contextvars import ContextVar
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.domain.errors import AttemptError, ConfigError, RunEnded, RungError, StoreUnavailable
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import Evidence
from rung.engine.durable.store_retry import awrite_with_retry, write_with_retry
from rung.engine.durable.task_recovery import attempt_in
from rung.engine.durable.workflow import acall

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.request import Request
    from rung.engine.durable.port import TaskContext
    from rung.engine.ports import DurableJournal, RunLease

F = TypeVar("F", bound="Callable[..., Any]")

TASKS: Final[dict[str, Callable[..., Any]]] = {}
POLL_SECONDS: Final = 0.05  # interval between polls for a message
MAX_SLEEP_SLICE_SECONDS: Final = 30.0  # of a long sleep, so that a suspended machine wakes on time
_MISSING: Final = object()
_FAILED: Final = ".failed"  # of the key under which the error of a step is recorded


class InsideStep:
    """Stands for the task while one of its steps runs: an engine does not record steps within a step."""

    id = ""

    def step(self, key: str, *_: Any) -> Any:
        """Refuse."""
        raise RungError(f"{key!r} is called inside a step or an attempt: call it from the task, where it is recorded")

    sleep = wait = attempt = step


INSIDE_STEP: Final = InsideStep()
CURRENT_TASK: ContextVar[TaskContext | None] = ContextVar("rung_work", default=None)


class DurableTask:
    """Running task: the lease on its run, and the steps recorded so far."""

    def __init__(
        self,
        claim: RunLease,
        receive: Callable[[str], Any],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.lease = claim
        self.id = claim.run
        self.recorded_steps = claim.steps()
        self._execution = token_hex(8)
        self._receive = receive
        self._now = now
        self._sleep = sleep or self._real_sleep()

    def _real_sleep(self) -> Callable[[float], Any]:
        return time.sleep

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the recorded result of a step, or run the step and record its result or its error."""
        recorded = self._recorded(key)
        if recorded is not _MISSING:
            return recorded
        if self.lease.is_in_doubt:  # stopped for a while: another process may have run this step
            write_with_retry(self.lease.renew, self._sleep)
        token = CURRENT_TASK.set(INSIDE_STEP)
        try:
            result = function(*arguments)
        except StoreUnavailable:
            raise  # of an inner run: this step has not ended
        except Exception as error:
            write_with_retry(partial(self.lease.record, *self._failed_step(key, error)), self._sleep)
            raise
        finally:
            CURRENT_TASK.reset(token)
        write_with_retry(partial(self.lease.record, key, result), self._sleep)
        self.recorded_steps[key] = result
        return result

    def _recorded(self, key: str) -> Any:
        """Return the recorded result of a step, or raise its recorded error."""
        failed = self.recorded_steps.get(f"{key}{_FAILED}")
        if failed is not None:
            raise AttemptError.of(record_from_json(Evidence, failed))
        return self.recorded_steps.get(key, _MISSING)

    def _failed_step(self, key: str, error: Exception) -> tuple[str, Any]:
        """Return the key and the value that record the error of a step. A resumed run gets the same error again."""
        self.recorded_steps[f"{key}{_FAILED}"] = evidence = record_to_json(without_secrets(evidence_of(error)))
        return f"{key}{_FAILED}", evidence

    def attempt(self, key: str, function: Callable[..., Any], request: Request, seconds: float | None) -> Any:  # noqa: ARG002  # signature of the port
        """Refuse: only a task that is a coroutine function can recover."""
        raise RungError(f"task of run {self.id!r}: `recover_in_task` needs a task that is a coroutine function")

    def sleep(self, key: str, seconds: float) -> Any:
        """Wait until the time that was recorded when this call was first reached."""
        until = self.step(key, self._deadline_in(seconds), ())
        while (left := until - self._now()) > 0:
            self._sleep(min(left, MAX_SLEEP_SLICE_SECONDS))

    def wait(self, topic: str, timeout: float | None) -> Any:
        """Return the message sent to a topic of this run, or None if the wait times out."""
        key = f"wait.{topic}"
        recorded = self.recorded_steps.get(key, _MISSING)
        if recorded is not _MISSING:
            return recorded
        until = None if timeout is None else self.step(f"{key}.until", self._deadline_in(timeout), ())
        while True:
            message = self._receive(f"{self.lease.run}/{topic}")
            if message is not None or self._is_past(until):
                return self.step(key, lambda message=message: message, ())
            self._sleep(POLL_SECONDS)

    def _deadline_in(self, seconds: float) -> Callable[[], float]:
        return lambda: self._now() + seconds

    def _is_past(self, until: float | None) -> bool:
        return until is not None and self._now() >= until


class AsyncDurableTask(DurableTask):
    """Running task of a coroutine function. Its methods are awaited and do not block the event loop."""

    def _real_sleep(self) -> Callable[[float], Any]:
        from asyncio import sleep

        return sleep

    async def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the recorded result of a step, or run it and record its result. A plain function runs in a thread."""
        recorded = self._recorded(key)
        if recorded is not _MISSING:
            return recorded
        if self.lease.is_in_doubt:  # stopped for a while: another process may have run this step
            await awrite_with_retry(self.lease.renew, self._sleep)
        token = CURRENT_TASK.set(INSIDE_STEP)
        try:
            result = await acall(function, *arguments)
        except StoreUnavailable:
            raise  # of an inner run: this step has not ended
        except Exception as error:
            await awrite_with_retry(partial(self.lease.record, *self._failed_step(key, error)), self._sleep)
            raise
        finally:
            CURRENT_TASK.reset(token)
        await awrite_with_retry(partial(self.lease.record, key, result), self._sleep)
        self.recorded_steps[key] = result
        return result

    async def attempt(self, key: str, function: Callable[..., Any], request: Request, seconds: float | None) -> Any:
        """Make an attempt as a step."""
        return await attempt_in(self, self._execution, key, function, request, seconds)

    async def sleep(self, key: str, seconds: float) -> Any:
        """Wait until the time that was recorded when this call was first reached."""
        until = await self.step(key, self._deadline_in(seconds), ())
        while (left := until - self._now()) > 0:
            await self._sleep(min(left, MAX_SLEEP_SLICE_SECONDS))

    async def wait(self, topic: str, timeout: float | None) -> Any:  # noqa: ASYNC109  # the timeout outlives the process
        """Return the message sent to a topic of this run, or None if the wait times out."""
        from asyncio import to_thread

        key = f"wait.{topic}"
        recorded = self.recorded_steps.get(key, _MISSING)
        if recorded is not _MISSING:
            return recorded
        until = None if timeout is None else await self.step(f"{key}.until", self._deadline_in(timeout), ())
        while True:
            message = await to_thread(self._receive, f"{self.lease.run}/{topic}")
            if message is not None or self._is_past(until):
                return await self.step(key, lambda message=message: message, ())
            await self._sleep(POLL_SECONDS)


def task(name: str) -> Callable[[F], F]:
    """Register a function by name, so that any process that has imported it can resume its runs.

    >>> @rung.durable.task("report")
    ... def report(day: str) -> dict: ...
    """
    if not isinstance(name, str) or not name:
        raise ConfigError("name", name, 'a non-empty string: @rung.durable.task("name")')

    def register(function: F) -> F:
        if TASKS.get(name) not in {None, function}:
            raise ConfigError("name", name, "a name that no other task has")
        TASKS[name] = function
        return function

    return register


def step(key: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function once in the run and record its result, which must be JSON serializable.

    In a task that is a coroutine function, the call is awaited, like `sleep` and `wait`.
    """
    return current_task().step(key, function, arguments)


def sleep(key: str, seconds: float) -> Any:
    """Wait for `seconds`. A resumed run waits only until the time that was recorded first."""
    return current_task().sleep(key, seconds)


def wait(topic: str, timeout: float | None = None) -> Any:
    """Wait for a message (`journal.runs.send("RUN/TOPIC", …)`). Return None if the wait times out."""
    return current_task().wait(topic, timeout)


def current_task() -> TaskContext:
    """Return the running task; raise outside one."""
    current = CURRENT_TASK.get()
    if current is None:
        raise RungError("called outside a running task: see rung.durable.task and rung.durable.start")
    return current


def start(journal: DurableJournal, run: str, name: str, **arguments: Any) -> Any:
    """Run a task in this process, from its start or from where it was interrupted, and return its result.

    For a task that is a coroutine function, await the returned value.
    """
    function = TASKS.get(name)
    if function is None:
        raise ConfigError("name", name, f"a registered task: {', '.join(sorted(TASKS)) or 'none is registered'}")
    run_task = _arun_task if is_async(name) else _run_task
    return run_task(journal, run, name, arguments)


def start_blocking(journal: DurableJournal, run: str, name: str, **arguments: Any) -> Any:
    """Run a plain or async task, blocking."""
    if not is_async(name):
        return start(journal, run, name, **arguments)
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start(journal, run, name, **arguments))
    raise RungError(
        f"task {name!r} is async, and this would block the event loop: await asyncio.to_thread(rung.durable.resume, …)"
    )


def resume(journal: DurableJournal) -> dict[str, Any]:
    """Resume every run without an owner whose task is registered here. Return its result or its error, by run id.

    The call blocks: in an event loop, use `await asyncio.to_thread(rung.durable.resume, journal)`.
    """
    ended: dict[str, Any] = {}
    for run in journal.runs.open_runs():
        if not run.owned and run.task in TASKS:
            try:
                ended[run.id] = start_blocking(journal, run.id, run.task, **run.arguments)
            except Exception as error:  # the error of one run must not stop the others
                ended[run.id] = error
    return ended


def is_async(name: str) -> bool:
    """Return whether a registered task is a coroutine function."""
    from inspect import iscoroutinefunction

    return iscoroutinefunction(TASKS.get(name))


def _run_task(journal: DurableJournal, run: str, name: str, arguments: dict[str, Any]) -> Any:
    return run_claimed(journal, journal.runs.claim(run, name, arguments), name, arguments)


def run_claimed(journal: DurableJournal, claim: RunLease, name: str, arguments: dict[str, Any]) -> Any:
    """Run a plain task whose run this process has claimed."""
    if _has_ended(claim):
        return result_of(claim.run, claim.done)
    with claim:
        token = CURRENT_TASK.set(DurableTask(claim, journal.runs.received))
        try:
            value = TASKS[name](**arguments)
        except StoreUnavailable:
            raise  # a step could not be recorded: the run stays open, and only that step may run again
        except Exception as error:
            record_end(claim, failed_result(error))
            raise
        finally:
            CURRENT_TASK.reset(token)
        record_end(claim, {"status": "succeeded", "value": value})
    return value


async def _arun_task(journal: DurableJournal, run: str, name: str, arguments: dict[str, Any]) -> Any:
    """Claim and run an async task. Store access happens in threads, so that it does not block the event loop."""
    from asyncio import to_thread

    claim = await to_thread(journal.runs.claim, run, name, arguments)
    return await arun_claimed(journal, claim, name, arguments)


async def arun_claimed(journal: DurableJournal, claim: RunLease, name: str, arguments: dict[str, Any]) -> Any:
    """Run an async task whose run this process has claimed."""
    from asyncio import to_thread

    if await to_thread(_has_ended, claim):
        return result_of(claim.run, claim.done)
    with claim:
        token = CURRENT_TASK.set(await to_thread(AsyncDurableTask, claim, journal.runs.received))
        try:
            value = await TASKS[name](**arguments)
        except StoreUnavailable:
            raise  # a step could not be recorded: the run stays open
        except Exception as error:
            await to_thread(record_end, claim, failed_result(error))
            raise
        finally:
            CURRENT_TASK.reset(token)
        await to_thread(record_end, claim, {"status": "succeeded", "value": value})
    return value


def _has_ended(claim: RunLease) -> bool:
    if claim.done is None and claim.exhausted:
        claim.finish({"status": "partial", "reason": "the run was resumed three times without progress"})
    return claim.done is not None


def failed_result(error: Exception) -> dict[str, Any]:
    """Return the result of a run whose task raised this error."""
    failure = classify(evidence_of(error))
    return {"status": "failed", "kind": failure.kind.value, "reason": failure.message}


def record_end(claim: RunLease, ended: dict[str, Any], sleep: Callable[[float], None] = time.sleep) -> None:
    """Record the result of a run. If the store is unavailable, warn: the run stays open and can be resumed cheaply."""
    try:
        write_with_retry(partial(claim.finish, ended), sleep)
    except StoreUnavailable as error:
        warnings.warn(
            f"rung: the result of run {claim.run!r} could not be recorded: {error}", RuntimeWarning, stacklevel=2
        )


def result_of(run: str, done: dict[str, Any]) -> Any:
    """Return the value of an ended run; raise RunEnded if it did not succeed."""
    if done.get("status") == "succeeded":
        return done.get("value")
    raise RunEnded(run, str(done.get("status")), str(done.get("reason", "")))
