"""Watchdog of a fleet: hands the runs of dead executors to the living, through the public API of the engine.

Every worker of an engine that does not do this itself has one; any number of them, anywhere, do no harm. An executor is dead
when its heartbeat is older than its lease, while this watchdog could read the database all the time: an outage of the
database is nobody's death. A hung executor that wakes up later finds its runs taken, and the engine rejects its writes.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.policy.executor_health import MAX_TAKEOVERS, ExecutorHealth, beat_interval
from rung.store.fleet.database_clock import time_of
from rung.store.fleet.executors import executors, forget, list_missing
from rung.store.fleet.takeovers import claim_takeover, count_takeover, release_takeover

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.store.fleet.executors import Executor
    from rung.store.journal.journal import Journal

ENDED_REASON: Final = "the run was taken over three times without progress"
MAX_GAP_POLLS: Final = 3  # polls without an answer of the database, after which it is observed anew


class TakeoverEngine(Protocol):
    """Engine whose runs a watchdog hands over."""

    async def runs_in_hand(self) -> Mapping[str, list[str]]:
        """Return the runs that executors have begun, by the id of the executor."""
        ...

    async def step_count(self, run: str) -> int:
        """Return how many steps a run has recorded."""
        ...

    async def take_over(self, run: str) -> None:
        """Queue a run again."""
        ...

    async def end_partial(self, run: str, reason: str) -> None:
        """End a run that kills its workers."""
        ...


class FleetWatchdog:
    """Watches the executors of one journal."""

    def __init__(
        self,
        journal: Journal,
        engine: TakeoverEngine,
        *,
        lease: float,
        report: Callable[[str], object] = lambda _text: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._engine, self._lease, self._report = journal, engine, lease, report
        self._monotonic = monotonic
        self._name = f"watchdog-{token_hex(8)}"
        self._observed_since: float | None = None  # on the database's clock
        self._last_read = 0.0  # on this process's monotonic clock

    async def watch(self, stop: asyncio.Event) -> None:
        """Check every third of the lease until `stop` is set. A failing database is tried again."""
        while not stop.is_set():
            try:
                await self.check()
            except Exception as error:  # noqa: BLE001  # the database is away: nobody is judged
                self._report(f"watchdog: {type(error).__name__}: {error}")
            try:
                await asyncio.wait_for(stop.wait(), beat_interval(self._lease))
            except TimeoutError:
                continue

    async def check(self) -> int:
        """Hand over the runs of executors that are dead now. Return how many."""
        now = await asyncio.to_thread(time_of, self._journal)
        since = self._observe(now)
        in_hand = await self._engine.runs_in_hand()  # first: what is begun after the heartbeats is a living executor's
        listed = await asyncio.to_thread(lambda: executors(self._journal, observed_since=since))
        count = 0
        for executor in listed:
            if executor.health is ExecutorHealth.DEAD and executor.engine == "dbos":
                count += await self._hand_over(executor, in_hand.get(executor.id, []))
        for name in sorted(set(in_hand) - {executor.id for executor in listed}):
            if name and "/" not in name:  # not a name of ours otherwise
                await asyncio.to_thread(list_missing, self._journal, name, self._lease)
        return count

    def _observe(self, now: float) -> float:
        """Return since when the database is read without a gap."""
        read = self._monotonic()
        if self._observed_since is None or read - self._last_read > MAX_GAP_POLLS * beat_interval(self._lease):
            self._observed_since = now
        self._last_read = read
        return self._observed_since

    async def _hand_over(self, executor: Executor, runs: list[str]) -> int:
        """Hand over runs one by one, each under a fresh claim: a watchdog that hangs in between may be late.

        Then another one has handed them over, and they are a living executor's.
        """
        count = 0
        for run in sorted(runs):
            if not await asyncio.to_thread(claim_takeover, self._journal, executor.id, self._name, self._lease):
                return count  # another watchdog is at it
            if run in (await self._engine.runs_in_hand()).get(executor.id, []):
                if not await self._hand_over_run(run, executor):
                    return count
                count += 1
        await asyncio.to_thread(forget, self._journal, executor)
        await asyncio.to_thread(release_takeover, self._journal, executor.id, self._name)
        return count

    async def _hand_over_run(self, run: str, executor: Executor) -> bool:
        """Hand over a run, or end it; False if the claim was lost meanwhile."""
        steps, death = await self._engine.step_count(run), f"{executor.id} {executor.heartbeat}"
        tell = partial(count_takeover, death=death, executor_id=executor.id, watchdog=self._name)
        takeovers = await asyncio.to_thread(tell, self._journal, run, steps)
        if takeovers is None:
            return False
        if takeovers > MAX_TAKEOVERS:
            self._report(f"run {run}: ended partial: {ENDED_REASON}")
            await self._engine.end_partial(run, ENDED_REASON)
        else:
            self._report(f"run {run}: taken over from executor {executor.id}, which is dead")
            await self._engine.take_over(run)
        return True


def watchdog_for(
    journal: Journal, engine: Any, *, lease: float, report: Callable[[str], object]
) -> FleetWatchdog | None:
    """Return a watchdog for an engine that needs one: embedded runs have leases, and Temporal's server watches its own."""
    return FleetWatchdog(journal, engine, lease=lease, report=report) if hasattr(engine, "take_over") else None
