"""Durable engine `dbos`: runs are DBOS workflows in PostgreSQL.

The application version is fixed, so that a new release takes up the runs of the old one; step keys are its compatibility
data. Executor ids are random, one for each process. DBOS retries nothing: a failed step is a value.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, error

from rung.adapters.engines.dbos.task import FOREVER_SECONDS, INTERRUPTED, DbosTask, JsonSerializer
from rung.core.domain.errors import RunEnded, RunNotFound, StoreError
from rung.engine.durable.port import RunInfo, RunState
from rung.engine.durable.registered_task import check_tasks, run_registered
from rung.engine.durable.tasks import TASKS, result_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dbos import WorkflowStatus

SCHEMA: Final = "rung_dbos"
APPLICATION_VERSION: Final = "rung-1"  # of the steps that this module records, not of Rung
WORKFLOW: Final = "rung.run"
QUEUE_POLL_SECONDS: Final = 0.1
RESULT_POLL_SECONDS: Final = 0.1
CLOSE_SECONDS: Final = 5.0  # for reads that their callers gave up
MAX_IDLE_IN_TRANSACTION_SECONDS: Final = 5.0  # locks of a host that was cut off would keep its runs from others
REQUEUE_SECONDS: Final = 1.0  # before a run is queued again whose result the database did not take
ENDED_AS: Final = "rung_ended_as"  # attributes of a workflow that a watchdog ended
REASON: Final = "rung_reason"
_STATES: Final = {
    "ENQUEUED": RunState.QUEUED,
    "DELAYED": RunState.QUEUED,
    "PENDING": RunState.RUNNING,
    "CANCELLED": RunState.CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": RunState.PARTIAL,
}


@DBOS.workflow(name=WORKFLOW)
async def _run(task: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a task as a workflow. Its end is a value, whatever it is."""
    assert DBOS.workflow_id is not None  # noqa: S101  # inside a workflow
    return await run_registered(DbosTask(DBOS.workflow_id), task, arguments)


class DbosEngine:
    """Durable engine on DBOS. One process has at most one worker, because DBOS has one instance per process."""

    name = "dbos"

    def __init__(self, url: str, *, executor_id: str = "", schema: str = SCHEMA) -> None:
        self._url, self.executor_id, self._schema = url, executor_id, schema
        self._client: DBOSClient | None = None
        self._reading: set[asyncio.Future[Any]] = set()

    async def client(self) -> DBOSClient:
        """Return the client of this process, connected at its first use."""
        if self._client is None:
            self._client = await asyncio.to_thread(
                DBOSClient,
                system_database_url=self._url,
                dbos_system_schema=self._schema,
                serializer=JsonSerializer(),
                lazy=True,
                sys_db_idle_transaction_timeout_sec=MAX_IDLE_IN_TRANSACTION_SECONDS,
            )
        return self._client

    async def submit(self, run: str, task: str, arguments: Mapping[str, Any]) -> bool:
        """Enqueue a workflow on the queue of its task: only workers that have the task take it."""
        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": queue_of(task),
            "workflow_id": run,
            "workflow_id_reuse_policy": "reject",
            "app_version": APPLICATION_VERSION,
            "attributes": {"task": task},
        }
        try:
            await (await self.client()).enqueue_async(options, task, dict(arguments))
        except error.DBOSWorkflowIDInUseError:
            return False
        return True

    async def result(self, run: str, seconds: float | None = None) -> Any:
        """Wait for the end of a run and return its value."""
        async with asyncio.timeout(seconds):
            while True:
                status = await self._status(run)
                if status.status == "SUCCESS":
                    return result_of(run, dict(status.output or {}))
                state = state_of(status)
                if state not in {RunState.QUEUED, RunState.RUNNING}:
                    raise RunEnded(run, state.value, _reason(status))
                await asyncio.sleep(RESULT_POLL_SECONDS)

    async def cancel(self, run: str) -> bool:
        """Cancel a workflow. Its running step is cancelled if it is a coroutine."""
        if state_of(await self._status(run)) not in {RunState.QUEUED, RunState.RUNNING}:
            return False
        await (await self.client()).cancel_workflow_async(run)
        return True

    async def list_runs(
        self, *, states: Collection[RunState] = (), task: str = "", limit: int = 100
    ) -> Sequence[RunInfo]:
        """Return runs, the newest first."""
        client = await self.client()
        ended = [RunState.SUCCEEDED, RunState.FAILED, RunState.PARTIAL]
        stored = {name for name, state in _STATES.items() if state in states}
        stored |= {"SUCCESS", "ERROR", "CANCELLED"} if any(state in states for state in ended) else set()
        found = await client.list_workflows_async(
            name=WORKFLOW,
            status=sorted(stored) or None,
            attributes={"task": task} if task else None,
            limit=limit,
            sort_desc=True,
            load_input=False,
        )
        infos = [
            RunInfo(
                status.workflow_id,
                str((status.attributes or {}).get("task", "")),
                state_of(status),
                status.executor_id or "" if status.status == "PENDING" else "",
                (status.created_at or 0) / 1_000,
            )
            for status in found
        ]
        return [info for info in infos if not states or info.state in states]

    async def send(self, run: str, topic: str, body: Any) -> None:
        """Send a message to a topic of a run."""
        await (await self.client()).send_async(run, body, topic)

    async def work(self, stop: asyncio.Event, *, concurrency: int = 8) -> None:
        """Run the workflows of the tasks that are registered here. `concurrency` is the number of runs for each task."""
        check_tasks()
        queues = [queue_of(task) for task in sorted(TASKS)]
        config: DBOSConfig = {
            "name": "rung",
            "system_database_url": self._url,
            "dbos_system_schema": self._schema,
            "serializer": JsonSerializer(),
            "application_version": APPLICATION_VERSION,
            "executor_id": self.executor_id,
            "run_migrations": False,
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": QUEUE_POLL_SECONDS,
            "sys_db_idle_transaction_timeout_sec": MAX_IDLE_IN_TRANSACTION_SECONDS,
        }
        DBOS(config=config)
        DBOS.listen_queues(queues)
        try:
            await asyncio.to_thread(DBOS.launch)
        except error.DBOSException as problem:
            raise StoreError(f"DBOS cannot start: {problem}; `rung fleet init` prepares the database") from problem
        queueing = asyncio.create_task(self._queue_interrupted())
        try:
            for queue in queues:
                await DBOS.register_queue_async(
                    queue,
                    worker_concurrency=concurrency,
                    polling_interval_sec=QUEUE_POLL_SECONDS,
                    on_conflict="always_update",
                )
            await stop.wait()
        finally:
            queueing.cancel()
            await _destroy()

    async def _queue_interrupted(self) -> None:
        """Queue the runs again that an error of the database interrupted in this process."""
        while True:
            await asyncio.sleep(REQUEUE_SECONDS)
            while not INTERRUPTED.empty():
                run = INTERRUPTED.get()
                try:
                    await self.take_over(run)
                except Exception:  # noqa: BLE001  # the database is still away
                    INTERRUPTED.put(run)
                    break

    # -- takeover: what a watchdog needs ---------------------------------------------------------------

    async def runs_in_hand(self) -> dict[str, list[str]]:
        """Return the runs that executors have begun, by the id of the executor, dead ones included."""
        found = await (await self.client()).list_workflows_async(
            name=WORKFLOW, status="PENDING", load_input=False, load_output=False
        )
        by_executor: dict[str, list[str]] = {}
        for status in found:
            by_executor.setdefault(status.executor_id or "", []).append(status.workflow_id)
        return by_executor

    async def step_count(self, run: str) -> int:
        """Return how many steps a run has recorded."""
        return len(await (await self.client()).list_workflow_steps_async(run))

    async def take_over(self, run: str) -> None:
        """Queue a run of a dead executor again, for any worker that has its task. DBOS would also revive a cancelled one."""
        status = await self._status(run)
        if status.status != "PENDING":
            return
        task = str((status.attributes or {}).get("task", ""))
        await (await self.client()).resume_workflows_async([run], queue_name=queue_of(task))

    async def end_partial(self, run: str, reason: str) -> None:
        """End a run that kills its workers."""
        client = await self.client()
        await client.update_workflow_attributes_async(run, {ENDED_AS: RunState.PARTIAL.value, REASON: reason})
        await client.cancel_workflow_async(run)

    async def close(self) -> None:
        """Close the connections of the client."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=CLOSE_SECONDS)
        if self._client is not None:
            client, self._client = self._client, None
            await asyncio.to_thread(client.destroy)

    async def _status(self, run: str) -> WorkflowStatus:
        client = await self.client()
        reading = asyncio.ensure_future(client.list_workflows_async(workflow_ids=[run], load_input=False))
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)
        found = await asyncio.shield(reading)  # a caller that gives up leaves its thread, which holds a connection
        if not found:
            raise RunNotFound(run)
        return found[0]


async def _destroy() -> None:
    """Finish the workflows in hand and stop DBOS. It shuts down the loop's thread pool, which was its own."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        wait = partial(DBOS.destroy, workflow_completion_timeout_sec=int(FOREVER_SECONDS))
        await loop.run_in_executor(thread, wait)
    loop.set_default_executor(ThreadPoolExecutor())


def queue_of(task: str) -> str:
    """Return the queue of a task."""
    return f"rung.{task}"


def state_of(status: WorkflowStatus) -> RunState:
    """Return the state of a run."""
    if status.status == "SUCCESS":
        return RunState(dict(status.output or {}).get("status", "succeeded"))
    ended_as = (status.attributes or {}).get(ENDED_AS)
    if status.status == "CANCELLED" and ended_as:
        return RunState(ended_as)
    return _STATES.get(status.status, RunState.FAILED)


def _reason(status: WorkflowStatus) -> str:
    return str((status.attributes or {}).get(REASON) or status.error or status.status.lower())
