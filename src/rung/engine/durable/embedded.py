"""Durable engine `embedded`: the journal itself, on SQLite for one machine or on PostgreSQL for several.

A run belongs to the process that has its lease. A worker claims the oldest run without a live owner. A dead owner on the
same machine is noticed at once, on another one when its lease expires.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import LeaseLost, RunNotFound, StoreUnavailable
from rung.engine.durable.port import ENDED, RunInfo, RunState
from rung.engine.durable.tasks import TASKS, arun_claimed, is_async, result_of, run_claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rung.engine.ports.durable_runs import ClaimedRunInfo, DurableJournal, ListedRunInfo

POLL_SECONDS: Final = 0.1  # for a run to claim, or for a result
MAX_POLL_SECONDS: Final = 1.0  # of a worker that finds the store unavailable
MAX_LISTED: Final = 10_000  # newest runs among which those of some states are looked for
CANCELLED_REASON: Final = "cancelled"


class EmbeddedEngine:
    """Durable engine on a journal."""

    name = "embedded"

    def __init__(
        self,
        journal: DurableJournal,
        *,
        poll_seconds: float = POLL_SECONDS,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self.journal = journal
        self._poll = poll_seconds
        self._on_close = on_close  # of a journal that was opened for this engine alone
        self.in_hand: set[asyncio.Task[None]] = set()
        self._judges_from = 0.0  # until then, an expired lease may be that of a live worker: the store was away

    async def submit(self, run: str, task: str, arguments: Mapping[str, Any]) -> bool:
        """Create a run that any worker can claim."""
        return await asyncio.to_thread(self.journal.runs.submit, run, task, dict(arguments))

    async def result(self, run: str, seconds: float | None = None) -> Any:
        """Wait for the end of a run and return its value."""
        async with asyncio.timeout(seconds):
            while True:
                found = await asyncio.to_thread(self.journal.runs.find, run)
                if found is None:
                    raise RunNotFound(run)
                if found.result is not None:
                    return result_of(run, found.result)
                await asyncio.sleep(self._poll)

    async def cancel(self, run: str) -> bool:
        """End a run. The next write of its worker is rejected, and ends its task."""
        was_open = await asyncio.to_thread(self.journal.runs.cancel, run, CANCELLED_REASON)
        if was_open is None:
            raise RunNotFound(run)
        return was_open

    async def list_runs(
        self, *, states: Collection[RunState] = (), task: str = "", limit: int = 100
    ) -> Sequence[RunInfo]:
        """Return runs, the newest first."""
        kinds = {state not in ENDED for state in states or RunState}
        is_open = kinds.pop() if len(kinds) == 1 else None
        read = partial(self.journal.runs.list_runs, task, MAX_LISTED if states else limit, is_open=is_open)
        found = [
            RunInfo(row.id, row.task, _state_of(row), row.owner, row.made_at) for row in await asyncio.to_thread(read)
        ]
        return [info for info in found if not states or info.state in states][:limit]

    async def send(self, run: str, topic: str, body: Any) -> None:
        """Send a message to a topic of a run."""
        await asyncio.to_thread(self.journal.runs.send, f"{run}/{topic}", body)

    async def work(self, stop: asyncio.Event, *, concurrency: int = 8) -> None:
        """Claim and run tasks until `stop` is set; then finish those in hand."""
        while not stop.is_set():
            claimed = await self._claim() if len(self.in_hand) < concurrency else None
            if claimed is not None:
                run = asyncio.create_task(self._run(claimed))
                self.in_hand.add(run)
                run.add_done_callback(self.in_hand.discard)
                continue
            waits = {asyncio.ensure_future(stop.wait()), *(self.in_hand if len(self.in_hand) >= concurrency else ())}
            await asyncio.wait(waits, timeout=self._poll, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits - self.in_hand:
                wait.cancel()
        if self.in_hand:
            await asyncio.wait(self.in_hand)

    async def _claim(self) -> ClaimedRunInfo | None:
        takes_expired = time.monotonic() >= self._judges_from
        try:
            return await asyncio.to_thread(self.journal.runs.claim_next, sorted(TASKS), takes_expired=takes_expired)
        except StoreUnavailable:
            self._judges_from = time.monotonic() + self.journal.runs.lease
            await asyncio.sleep(MAX_POLL_SECONDS)
            return None

    async def _run(self, claimed: ClaimedRunInfo) -> None:
        """Run a task to its end. Its end, or its error, is recorded with the run."""
        with suppress(Exception, LeaseLost):  # a lost run is another worker's
            if is_async(claimed.task):
                await arun_claimed(self.journal, claimed.lease, claimed.task, claimed.arguments)
            else:
                await asyncio.to_thread(run_claimed, self.journal, claimed.lease, claimed.task, claimed.arguments)

    async def close(self) -> None:
        """Close the journal, if it was opened for this engine alone."""
        if self._on_close is not None:
            await asyncio.to_thread(self._on_close)


def _state_of(row: ListedRunInfo) -> RunState:
    if row.status is not None:
        return RunState(row.status)
    return RunState.RUNNING if row.owner else RunState.QUEUED
