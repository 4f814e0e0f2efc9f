"""Worker of the benchmark that uses DBOS alone, as its documentation shows: python -m bench.fleet.bare_dbos URL."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from dbos import DBOS

QUEUE = "bare"
SCHEMA = "bare_dbos"


@DBOS.step()
async def nothing() -> None:
    """Do nothing."""


@DBOS.workflow(name="bare.steps")
async def steps(count: int) -> dict[str, Any]:
    """Run so many steps. Return when the run began and ended."""
    began = time.time()
    for _ in range(count):
        await nothing()
    return {"began": began, "ended": time.time()}


async def main() -> None:
    """Work until killed."""
    DBOS(
        config={
            "name": "bare",
            "system_database_url": sys.argv[1],
            "dbos_system_schema": SCHEMA,
            "application_version": "1",
            "executor_id": f"bare-{time.time_ns()}",
            "log_level": "ERROR",
        }
    )
    DBOS.listen_queues([QUEUE])
    await asyncio.to_thread(DBOS.launch)
    await DBOS.register_queue_async(QUEUE, worker_concurrency=8, polling_interval_sec=0.1, on_conflict="always_update")
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
