"""Tasks and steps as values, for engines that replay workflows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rung
from rung.core.domain.errors import AttemptError, ConfigError, RungError
from rung.engine.durable import tasks
from rung.engine.durable.registered_task import check_tasks, run_registered, step_result, value_of
from rung.engine.durable.task_steps import CURRENT_TASK


class PlainContext:
    """Engine that records nothing."""

    id = "run"

    async def step(self, key: str, function: Any, arguments: tuple[Any, ...]) -> Any:
        return value_of(await step_result(function, arguments))

    sleep = wait = attempt = step


@rung.durable.task("registered-double")
async def double(number: int) -> int:
    """Double a number in a step."""
    return int(await rung.durable.step("double", lambda: 2 * number))


@rung.durable.task("registered-fails")
async def fails() -> None:
    """Fail in a step."""
    await rung.durable.step("fail", _fail)


def _fail() -> None:
    raise ValueError("no such thing")


def run(task: str, **arguments: Any) -> dict[str, Any]:
    context: Any = PlainContext()
    return asyncio.run(run_registered(context, task, arguments))


def test_the_end_of_a_task_is_a_value() -> None:
    """Success, failure and a task that this worker does not have are results of the run."""
    assert run("registered-double", number=4) == {"status": "succeeded", "value": 8}
    failed = run("registered-fails")
    assert (failed["status"], failed["reason"]) == ("failed", "no such thing")
    unknown = run("registered-nowhere")
    assert unknown["status"] == "failed"
    assert "no task 'registered-nowhere'" in unknown["reason"]


def test_the_error_of_a_step_is_a_value() -> None:
    """A failed step is recorded as its evidence, and raised from it."""
    result = asyncio.run(step_result(_fail, ()))
    assert result["error"]["text"] == "no such thing"
    with pytest.raises(AttemptError, match="no such thing"):
        value_of(result)
    assert value_of(asyncio.run(step_result(str, (7,)))) == "7"


def test_a_step_within_a_step_is_refused() -> None:
    """No engine records a step within a step: it is an error, for timers and messages as well."""

    def nested() -> None:
        for call in (rung.durable.step, rung.durable.sleep):
            with pytest.raises(RungError, match="inside a step"):
                call("inner", 1.0)  # type: ignore[arg-type]  # never called
        with pytest.raises(RungError, match="inside a step"):
            rung.durable.wait("topic")

    assert value_of(asyncio.run(step_result(nested, ()))) is None
    assert CURRENT_TASK.get() is None


def test_plain_tasks_are_refused() -> None:
    """A workflow engine awaits its steps: a plain task is an error before the worker starts."""
    before = dict(tasks.TASKS)
    tasks.TASKS.clear()
    try:
        tasks.TASKS["fine"] = double
        check_tasks()
        tasks.TASKS["plain"] = _fail
        with pytest.raises(ConfigError, match="coroutine function"):
            check_tasks()
    finally:
        tasks.TASKS.clear()
        tasks.TASKS.update(before)
