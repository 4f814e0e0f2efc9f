"""Recovery inside a durable task: `recover_in_task`. Each attempt is a step of the task's engine, whichever it is."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any

from rung.core.domain.event_codec import record_to_json
from rung.engine.arguments import check_attempt
from rung.engine.durable.workflow import attempt_result, recover
from rung.engine.recover import DEFAULT_LADDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.events import Ask
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.durable.port import TaskContext
    from rung.engine.ports.recovery import Listener, ResultValidator, RungHandler


async def recover_in_task(
    key: str,
    attempt: Callable[[Request], Any],
    request: Request | str,
    *,
    policy: Policy | str = DEFAULT_LADDER,
    attended: bool = False,
    check: ResultValidator | None = None,
    rung_handlers: Mapping[str, RungHandler] | None = None,
    listeners: Sequence[Listener] = (),
) -> Outcome[Any]:
    """Attempt a request and recover, as steps `KEY.attempt.1`, … of the running task, which is a coroutine function.

    `check`, `rung_handlers` and `listeners` run again when a run is resumed: they must be deterministic. The recovery is
    not logged, because a replay would log everything again.

    Args:
        key: Name of the recovery within the task.
        attempt: Function that makes one attempt. Its value must be JSON serializable.
        request: What to attempt: a `rung.Request`, or a prompt.
        policy: `rung.Policy`, or the name of a ladder. Default: `task`.
        attended: Whether somebody answers questions: one is published as the step `KEY.ask.1`, and the answer is a message to
            the topic of the same name. Default: False.
        check: Function that validates each result. Default: every result is good.
        rung_handlers: Functions that make a rung's new request, by action. Default: Rung's own prompts.
        listeners: Functions that are called with each event. Default: none.
    """
    from rung.engine.durable.tasks import current_task

    check_attempt(attempt, blocking=False)
    task = current_task()
    workflow = TaskWorkflow(task, key, attempt, await task.step(f"{key}.began", time.time, ()))
    return await recover(
        workflow,
        request,
        policy=policy,
        attended=attended,
        check=check,
        rung_handlers=rung_handlers,
        listeners=listeners,
    )


async def attempt_step(function: Callable[..., Any], request: Request, seconds: float | None) -> dict[str, Any]:
    """Make an attempt as a step: what `attempt_result` returns, and the time at which it ended."""
    from rung.engine.durable.task_steps import CURRENT_TASK, INSIDE_STEP

    token = CURRENT_TASK.set(INSIDE_STEP)
    try:
        result = await attempt_result(function, request, seconds=seconds)
    finally:
        CURRENT_TASK.reset(token)
    return {**result, "at": time.time()}


async def attempt_in(
    task: TaskContext, execution: str, key: str, function: Callable[..., Any], request: Request, seconds: float | None
) -> Any:
    """Make an attempt as a step of a task whose code runs again after a crash, each time as another execution.

    An attempt that is not idempotent records its beginning: if another execution began it, its process died.
    """
    if not request.idempotent and await task.step(f"{key}.begun", identity, (execution,)) != execution:
        return await task.step(key, died_step, ())
    return await task.step(key, attempt_step, (function, request, seconds))


def died_step() -> dict[str, Any]:
    """Record that the process of an attempt died: its result is unknown."""
    return {"died": True, "at": time.time()}


class TaskWorkflow:
    """Task as the workflow of a recovery. Its clock shows the recorded times alone, so that a replay sees the same."""

    def __init__(self, task: TaskContext, key: str, attempt: Callable[[Request], Any], began: float) -> None:
        self.id = f"{task.id}/{key}"
        self._task, self._key, self._attempt = task, key, attempt
        self._now = began
        self._random = Random(self.id)  # noqa: S311  # jitter

    def now(self) -> float:
        """Return the end of the last step or wait, in UTC seconds."""
        return self._now

    def random(self) -> float:
        """Return a number from 0 to 1 that follows from the id of the run."""
        return self._random.random()

    async def attempt(self, key: str, request: Request, seconds: float | None) -> Mapping[str, Any]:
        """Make an attempt as a step of the task."""
        result = await self._task.attempt(f"{self._key}.{key}", self._attempt, request, seconds)
        self._now = max(self._now, result["at"])
        return dict(result)

    async def sleep(self, key: str, seconds: float) -> None:
        """Wait by the task's engine."""
        await self._task.sleep(f"{self._key}.{key}", seconds)
        self._now += seconds

    async def ask(self, key: str, question: Ask, seconds: float | None) -> str | None:
        """Publish a question as a step, and wait for its answer."""
        topic = f"{self._key}.{key}"
        published = record_to_json(question)
        await self._task.step(f"{topic}.question", identity, (published,))
        answer = await self._task.wait(topic, seconds)
        answered_at = await self._task.step(f"{topic}.at", time.time, ())
        self._now = max(self._now, answered_at)
        return None if answer is None else str(answer)


def identity(value: Any) -> Any:
    """Return the value: the step that publishes a question."""
    return value
