"""Steps, sleeps and waits of a running durable task. Each result is recorded, so that a resumed task repeats none of them."""

from __future__ import annotations

import time
from contextvars import ContextVar
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.domain.errors import AttemptError, RungError, StoreUnavailable
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import Evidence
from rung.engine.durable.store_retry import awrite_with_retry, write_with_retry
from rung.engine.durable.task_recovery import attempt_in
from rung.engine.durable.workflow import acall

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.request import Request
    from rung.engine.durable.port import TaskContext
    from rung.engine.ports.durable_runs import RunLease

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
