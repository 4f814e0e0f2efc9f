"""Durable engine `temporal`: runs are Temporal workflows, steps are activities.

An activity finds its function by name among the modules that define tasks, so a step takes a function of such a module, not
a lambda. A failed step is a value: Temporal repeats an activity only if its worker died, at most three times.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    CancelledError,
    TimeoutError,  # noqa: A004  # Temporal's own
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from rung.core.domain.errors import ConfigError, RunEnded, RunNotFound
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.request import Request
from rung.core.policy.executor_health import MAX_TAKEOVERS
from rung.engine.durable.port import RunInfo, RunState
from rung.engine.durable.registered_task import check_tasks, run_registered, step_result, value_of
from rung.engine.durable.task_recovery import attempt_step, died_step, identity
from rung.engine.durable.tasks import TASKS, result_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from temporalio.client import WorkflowExecution

WORKFLOW: Final = "rung.run"
STEP: Final = "rung.step"
ATTEMPT: Final = "rung.attempt"
MESSAGE: Final = "rung.message"
NAMESPACE: Final = "default"
LEASE_SECONDS: Final = 30.0  # after which an activity without a heartbeat counts as dead
MAX_DEATHS: Final = 1 + MAX_TAKEOVERS  # of workers in one step: the first, and those that took it over
_NO_LIMIT: Final = timedelta(days=3_650)
_TASK_TIMEOUT: Final = timedelta(seconds=5)  # of the code between two steps, after which another worker runs it
_worker_lease = LEASE_SECONDS  # timeouts may differ between workers: a replay does not compare them
_STATES: Final = {
    WorkflowExecutionStatus.RUNNING: RunState.RUNNING,
    WorkflowExecutionStatus.CANCELED: RunState.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: RunState.CANCELLED,
}


class WorkersDied(BaseException):
    """All workers that ran a step died. Not an Exception: the task must not continue without its step."""


class TemporalTask:
    """Running task as a Temporal workflow."""

    def __init__(self, messages: dict[str, Any]) -> None:
        self.id = workflow.info().workflow_id
        self._messages = messages
        self._ended: dict[str, Any] = {}

    async def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Run a step as an activity."""
        if key not in self._ended:
            self._ended[key] = await self._execute(STEP, key, [function_name(function), list(arguments)])
        return value_of(self._ended[key])

    async def sleep(self, key: str, seconds: float) -> None:
        """Wait by a timer of the server."""
        await workflow.sleep(seconds, summary=key)

    async def wait(self, topic: str, timeout: float | None) -> Any:  # noqa: ASYNC109  # the timeout outlives the process
        """Return the message sent to a topic of this run, or None if the wait times out."""
        key = f"wait.{topic}"
        if key not in self._ended:
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(lambda: topic in self._messages, timeout=timeout)
            self._ended[key] = self._messages.get(topic)
        return self._ended[key]

    async def attempt(self, key: str, function: Callable[..., Any], request: Request, seconds: float | None) -> Any:
        """Make an attempt as an activity."""
        return await self._execute(ATTEMPT, key, [function_name(function), record_to_json(request), seconds])

    async def _execute(self, name: str, key: str, arguments: list[Any]) -> Any:
        try:
            return await workflow.execute_activity(
                name,
                args=arguments,
                summary=key,
                start_to_close_timeout=_NO_LIMIT,
                heartbeat_timeout=timedelta(seconds=_worker_lease),
                retry_policy=RetryPolicy(maximum_attempts=MAX_DEATHS, initial_interval=timedelta(milliseconds=100)),
                cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            if isinstance(error.cause, TimeoutError):
                raise WorkersDied(f"step {key!r}: {MAX_DEATHS} workers died") from error
            raise


@workflow.defn(name=WORKFLOW, sandboxed=False)
class RunWorkflow:
    """Runs a task. Its end is a value, whatever it is."""

    def __init__(self) -> None:
        self._messages: dict[str, Any] = {}

    @workflow.run
    async def run(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a task to its end."""
        try:
            return await run_registered(TemporalTask(self._messages), task, arguments)
        except WorkersDied as error:
            return {"status": "partial", "reason": f"the run was taken over three times without progress: {error}"}

    @workflow.signal(name=MESSAGE)
    def receive(self, topic: str, body: Any) -> None:
        """Keep the last message of a topic."""
        self._messages[topic] = body


@activity.defn(name=STEP)
async def run_step(name: str, arguments: list[Any]) -> dict[str, Any]:
    """Run the function of a step."""
    async with _Heartbeat():
        return await step_result(find_function(name), tuple(arguments))


@activity.defn(name=ATTEMPT)
async def run_attempt(name: str, request: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    """Make an attempt. One that is not idempotent is not made again after the death of its worker."""
    given = record_from_json(Request, request)
    if activity.info().attempt > 1 and not given.idempotent:
        return died_step()
    async with _Heartbeat():
        return await attempt_step(find_function(name), given, seconds)


class _Heartbeat:
    """Heartbeats of the running activity, so that the death of its process is noticed."""

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    @staticmethod
    async def _beat() -> None:
        timeout = activity.info().heartbeat_timeout
        assert timeout is not None  # noqa: S101  # every activity here has one
        while True:
            activity.heartbeat()
            await asyncio.sleep(timeout.total_seconds() / 3)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function of a module that defines tasks."""
    function = inspect.unwrap(function)
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    if _lookup(name) is not function:
        allowed = "a function at the top level of a module that defines a task: engine temporal calls it by its name"
        raise ConfigError("function", getattr(function, "__qualname__", repr(function)), allowed)
    return name


def find_function(name: str) -> Callable[..., Any]:
    """Return the function of this name. Modules are never imported by a name from the server."""
    found = _lookup(name)
    if found is None:
        raise ConfigError("function", name, "a function of a module that this worker imports and that defines a task")
    return found


_OWN: Final = frozenset({"time:time", f"{identity.__module__}:{identity.__qualname__}"})  # steps of `recover_in_task`


def _lookup(name: str) -> Callable[..., Any] | None:
    module, _, attribute = name.partition(":")
    if name not in _OWN and module not in {task.__module__ for task in TASKS.values()}:
        return None
    found = getattr(sys.modules.get(module), attribute, None)
    if not callable(found):
        return None
    function = inspect.unwrap(found)
    return function if function.__module__ == module else None


class TemporalEngine:
    """Durable engine on a Temporal server. A task has a task queue of its own: only workers that have it take its runs."""

    name = "temporal"

    def __init__(self, address: str, *, namespace: str = NAMESPACE, lease: float = LEASE_SECONDS) -> None:
        self._address, self._namespace, self._lease = address, namespace, lease
        self._client: Client | None = None

    async def client(self) -> Client:
        """Return the client of this process, connected at its first use."""
        if self._client is None:
            self._client = await Client.connect(self._address, namespace=self._namespace)
        return self._client

    async def submit(self, run: str, task: str, arguments: Mapping[str, Any]) -> bool:
        """Start a workflow."""
        try:
            await (await self.client()).start_workflow(
                WORKFLOW,
                args=[task, dict(arguments)],
                id=run,
                task_queue=queue_of(task),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                task_timeout=_TASK_TIMEOUT,
                static_summary=task,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def result(self, run: str, seconds: float | None = None) -> Any:
        """Wait for the end of a run and return its value."""
        handle = (await self.client()).get_workflow_handle(run, result_type=dict)
        try:
            async with asyncio.timeout(seconds):
                return result_of(run, await handle.result())
        except WorkflowFailureError as failure:
            status = RunState.CANCELLED if isinstance(failure.cause, CancelledError) else RunState.FAILED
            raise RunEnded(run, status.value, str(failure.cause)) from failure
        except RPCError as problem:
            raise _translated(run, problem) from problem

    async def cancel(self, run: str) -> bool:
        """Cancel a workflow: its running activity is cancelled at its next heartbeat."""
        handle = (await self.client()).get_workflow_handle(run)
        try:
            if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
                return False
            await handle.cancel()
        except RPCError as problem:
            raise _translated(run, problem) from problem
        return True

    async def list_runs(
        self, *, states: Collection[RunState] = (), task: str = "", limit: int = 100
    ) -> Sequence[RunInfo]:
        """Return runs, the newest first. The list of a Temporal server may be some seconds old."""
        query = f"WorkflowType = '{WORKFLOW}'" + (f" AND TaskQueue = '{_quoted(queue_of(task))}'" if task else "")
        found: list[RunInfo] = []
        async for execution in (await self.client()).list_workflows(query):
            info = await self._info(execution)
            if not states or info.state in states:
                found.append(info)
            if len(found) >= limit:
                break
        return found

    async def _info(self, execution: WorkflowExecution) -> RunInfo:
        state = _STATES.get(execution.status or WorkflowExecutionStatus.RUNNING, RunState.FAILED)
        if execution.status is WorkflowExecutionStatus.COMPLETED:
            handle = (await self.client()).get_workflow_handle(execution.id, result_type=dict)
            state = RunState((await handle.result())["status"])
        task = execution.task_queue.removeprefix("rung.")
        return RunInfo(execution.id, task, state, "", execution.start_time.timestamp())

    async def send(self, run: str, topic: str, body: Any) -> None:
        """Send a message to a topic of a run."""
        try:
            await (await self.client()).get_workflow_handle(run).signal(MESSAGE, args=[topic, body])
        except RPCError as problem:
            raise _translated(run, problem) from problem

    async def work(self, stop: asyncio.Event, *, concurrency: int = 8) -> None:
        """Run the workflows of the tasks that are registered here. `concurrency` is the number of steps for each task."""
        global _worker_lease  # noqa: PLW0603  # of this process: a workflow has no other way to know its worker's settings
        check_tasks()
        _worker_lease = self._lease
        client = await self.client()
        workers = [
            Worker(
                client,
                task_queue=queue_of(task),
                workflows=[RunWorkflow],
                activities=[run_step, run_attempt],
                workflow_runner=UnsandboxedWorkflowRunner(),
                max_concurrent_activities=concurrency,
                # The server hands steps to the open polls of a hung worker, too: each is lost until its heartbeat is missed.
                max_concurrent_activity_task_polls=1,
                max_concurrent_workflow_task_polls=2,
                graceful_shutdown_timeout=_NO_LIMIT,
                sticky_queue_schedule_to_start_timeout=timedelta(seconds=min(self._lease, 10.0)),
                max_heartbeat_throttle_interval=timedelta(seconds=self._lease / 3),
                default_heartbeat_throttle_interval=timedelta(seconds=self._lease / 3),
            )
            for task in sorted(TASKS)
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            await asyncio.wait([asyncio.create_task(stop.wait()), *running], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await asyncio.gather(*(worker.shutdown() for worker in workers))
            await asyncio.gather(*running)

    async def close(self) -> None:
        """Do nothing: the client has no connection that must be closed."""


def queue_of(task: str) -> str:
    """Return the task queue of a task."""
    return f"rung.{task}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _translated(run: str, problem: RPCError) -> Exception:
    return RunNotFound(run) if problem.status is RPCStatusCode.NOT_FOUND else problem
