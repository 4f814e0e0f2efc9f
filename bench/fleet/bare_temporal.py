"""Worker of the benchmark that uses Temporal alone, as its documentation shows: python -m bench.fleet.bare_temporal ADDRESS."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "bare"


@activity.defn(name="bare.nothing")
async def nothing() -> None:
    """Do nothing."""


@workflow.defn(name="bare.steps", sandboxed=False)
class Steps:
    """Runs steps."""

    @workflow.run
    async def run(self, count: int) -> dict[str, Any]:
        """Run so many steps. Return when the run began and ended."""
        began = time.time()
        for _ in range(count):
            await workflow.execute_activity(
                "bare.nothing", start_to_close_timeout=timedelta(seconds=60), heartbeat_timeout=timedelta(seconds=2)
            )
        return {"began": began, "ended": time.time()}


async def main() -> None:
    """Work until killed."""
    client = await Client.connect(sys.argv[1])
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[Steps],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=8,
    )
    print("ready", flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
