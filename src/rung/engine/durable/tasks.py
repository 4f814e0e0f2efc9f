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
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import ConfigError, RunEnded, RungError, StoreUnavailable
from rung.engine.durable.store_retry import write_with_retry
from rung.engine.durable.task_steps import CURRENT_TASK, AsyncDurableTask, DurableTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.durable.port import TaskContext
    from rung.engine.ports.durable_runs import DurableJournal, RunLease

F = TypeVar("F", bound="Callable[..., Any]")

TASKS: Final[dict[str, Callable[..., Any]]] = {}


def task(name: str) -> Callable[[F], F]:
    """Register a function by name, so that any process that has imported it can resume its runs.

    Args:
        name: Name of the task.

    Example:
        >>> import rung
        >>> @rung.durable.task("docs-report")
        ... def report(day: str) -> dict[str, str]:
        ...     return {"day": day}
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

    Args:
        key: Name of the step within the run.
        function: Function to run.
        *arguments: Its arguments.
    """
    return current_task().step(key, function, arguments)


def sleep(key: str, seconds: float) -> Any:
    """Wait for `seconds`. A resumed run waits only until the time that was recorded first.

    Args:
        key: Name of the wait within the run.
        seconds: Seconds to wait.
    """
    return current_task().sleep(key, seconds)


def wait(topic: str, timeout: float | None = None) -> Any:
    """Wait for a message (`journal.runs.send("RUN/TOPIC", …)`). Return None if the wait times out.

    Args:
        topic: Name of the topic within the run.
        timeout: Longest wait in seconds. Default: None, any time.
    """
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

    Args:
        journal: Journal with durable runs.
        run: Name of the run.
        name: Name of the task.
        **arguments: Arguments of the task, JSON serializable.
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

    Args:
        journal: Journal with durable runs.
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
