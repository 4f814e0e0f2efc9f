"""Load of a durable engine, which a worker reports to the fleet: its runs in hand, and the queues with their lag.

The journal has this for the engine `embedded`; of other engines only their workers know it, and report it in their heartbeats.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from rung.engine.durable.port import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rung.engine.durable.port import DurableEngine, RunInfo

MAX_LISTED: Final = 1_000  # of the newest open runs: with more, numbers and lag are lower bounds


class EngineLoad:
    """Load of an engine as of the last refresh; pass `detail` to a heartbeat."""

    def __init__(self, engine: DurableEngine, executor_id: str, now: Callable[[], float] = time.time) -> None:
        self._engine, self._executor_id, self._now = engine, executor_id, now
        self._latest: dict[str, Any] = {}
        self.failures = 0

    def detail(self) -> dict[str, Any]:
        """Return what was found last; empty at first. Any thread may call it."""
        return self._latest

    async def refresh(self) -> None:
        """Ask the engine for its open runs. For the journal's own runs there is nothing to ask."""
        if self._engine.name == "embedded":
            return
        open_runs = await self._engine.list_runs(states={RunState.QUEUED, RunState.RUNNING}, limit=MAX_LISTED)
        self._latest = summarize_load(open_runs, self._executor_id, self._now())

    async def watch(self, stop: asyncio.Event, seconds: float) -> None:
        """Refresh it every so many seconds until `stop` is set. An engine that is away is asked again."""
        while not stop.is_set():
            try:
                async with asyncio.timeout(seconds):  # DBOS waits for ever for a database that is away
                    await self.refresh()
            except Exception:  # noqa: BLE001  # what is shown to operators must not end a worker
                self._latest = {}
                self.failures += 1
            try:
                await asyncio.wait_for(stop.wait(), seconds)
            except TimeoutError:
                continue


def summarize_load(open_runs: Iterable[RunInfo], executor_id: str, now: float) -> dict[str, Any]:
    """Return the number of runs that an executor has in hand, and for each task how many wait since when."""
    waiting: dict[str, list[float]] = {}
    runs = 0
    for run in open_runs:
        runs += run.state is RunState.RUNNING and run.executor == executor_id
        if run.state is RunState.QUEUED:
            waiting.setdefault(run.task, []).append(run.submitted_at)
    queues = [
        {"name": task, "waiting": len(times), "lag": max(0.0, now - min(times))}
        for task, times in sorted(waiting.items())
    ]
    return {"runs": runs, "queues": queues}
