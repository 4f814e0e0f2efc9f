"""A worker process for the tests of the Temporal adapter: `python -m tests.adapters.durable.temporal_worker ADDRESS QUEUE DIRECTORY`.

Its attempt writes its process id into the directory when it begins. The first one hangs, until its process is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

import rung
from rung.adapters.durable.temporal import RungPlugin, attempt_activity
from tests.adapters.durable.temporal_rig import WORKFLOWS

DIRECTORY = Path(sys.argv[3])


@attempt_activity
def attempt(request: rung.Request) -> str:
    """Hang if no attempt began before, else succeed."""
    is_first = not list(DIRECTORY.glob("attempt-*"))
    (DIRECTORY / f"attempt-{os.getpid()}").touch()
    if is_first:
        rung.report_cost(0.25)
        threading.Event().wait()
    return request.prompt.upper()


async def main() -> None:
    """Work until the process is killed."""
    client = await Client.connect(sys.argv[1], plugins=[RungPlugin()])
    worker = Worker(
        client,
        task_queue=sys.argv[2],
        activities=[attempt],
        workflows=WORKFLOWS,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
