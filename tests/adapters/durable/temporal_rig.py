"""A worker for the tests of the Temporal adapter, and what they look at."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from rung.adapters.durable.temporal import RungPlugin
from tests.adapters.durable.temporal_workflows import Once, OncePolicy, Recovering
from tests.waiting import DEADLINE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from temporalio.client import Plugin

WORKFLOWS = (Once, OncePolicy, Recovering)


class Rig:
    """A client and the task queue of a running worker."""

    def __init__(self, client: Client, queue: str) -> None:
        self.client, self.queue = client, queue

    async def start(self, workflow: Any, *arguments: Any) -> WorkflowHandle[Any, Any]:
        """Start a workflow on the worker."""
        return await self.client.start_workflow(workflow, args=arguments, id=f"w-{uuid.uuid4()}", task_queue=self.queue)

    async def run(self, workflow: Any, *arguments: Any) -> Any:
        """Return the result of a workflow."""
        return await (await self.start(workflow, *arguments)).result()


@asynccontextmanager
async def rig(
    address: str,
    activities: Sequence[Callable[..., Any]],
    *,
    plugins: Sequence[Plugin] | None = None,
    workflows: Sequence[type] = WORKFLOWS,
    **options: Any,
) -> AsyncIterator[Rig]:
    """Run a worker, by default with our plugin."""
    client = await Client.connect(address, plugins=[RungPlugin()] if plugins is None else plugins)
    queue = f"q-{uuid.uuid4()}"
    async with Worker(client, task_queue=queue, activities=activities, workflows=workflows, **options):
        yield Rig(client, queue)


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Poll the server until the condition is true, and return its value."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (value := await condition()):  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.02)
    return value


async def waiting_activity(handle: WorkflowHandle[Any, Any]) -> Any:
    """Return the activity of a workflow that waits for its retry, once its first attempt has failed."""

    async def failed() -> Any:
        pending = (await handle.describe()).raw_description.pending_activities
        return pending[0] if pending and pending[0].HasField("last_failure") else None

    return await until(failed)
