"""Registered task on an engine that replays workflows: its end and the results of its steps are JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import Evidence
from rung.engine.durable.task_steps import CURRENT_TASK, INSIDE_STEP
from rung.engine.durable.tasks import TASKS, failed_result, is_async
from rung.engine.durable.workflow import acall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.engine.durable.port import TaskContext


def check_tasks() -> None:
    """Refuse to work with a task that is not a coroutine function."""
    for task in sorted(TASKS):
        if not is_async(task):
            raise ConfigError("task", task, "a coroutine function: a workflow engine awaits its steps")


async def run_registered(context: TaskContext, task: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task that is a coroutine function. Return how it ended, as the result of the run."""
    function = TASKS.get(task)
    if function is None:
        return {"status": "failed", "kind": "configuration", "reason": f"no task {task!r} is registered in this worker"}
    CURRENT_TASK.set(context)  # not reset: an engine runs each workflow in a context of its own
    try:
        return {"status": "succeeded", "value": await function(**arguments)}
    except Exception as error:  # the error of a task is how its run ends
        return failed_result(error)


async def step_result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Run a step. Return its value, or its error as a value: engines record both alike."""
    token = CURRENT_TASK.set(INSIDE_STEP)
    try:
        return {"value": await acall(function, *arguments)}
    except Exception as error:
        return {"error": record_to_json(without_secrets(evidence_of(error)))}
    finally:
        CURRENT_TASK.reset(token)


def value_of(result: Mapping[str, Any]) -> Any:
    """Return the value of a step, or raise its error."""
    if "error" in result:
        raise AttemptError.of(record_from_json(Evidence, result["error"]))
    return result["value"]
