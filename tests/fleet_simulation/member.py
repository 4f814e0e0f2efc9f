"""One process of the simulated fleet. It beats, watches, works for both engines, and spends from shared limits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rung.core.domain.errors import LeaseLost, RunOwnedElsewhere
from rung.core.policy.executor_health import beat_interval
from rung.engine.durable.store_retry import awrite_with_retry
from rung.engine.durable.task_steps import AsyncDurableTask
from rung.engine.process_identity import ProcessOwner
from rung.store.durable_runs import DurableRunStore
from rung.store.fleet.executors import Executor, ExecutorRole, announce, beat
from rung.wiring.fleet_watchdog import FleetWatchdog
from tests.fleet_simulation.database import SimulatedJournal
from tests.fleet_simulation.invariants import LEASE
from tests.fleet_simulation.spender import AWAY, Spender
from tests.fleet_simulation.virtual_time import Clock, Process
from tests.fleet_simulation.workflows import Begun, Conflict, WorkflowClient

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal
    from rung.store.run_lease import DurableRunLease
    from tests.fleet_simulation.world import World

POLL = 3.0
MAX_IN_HAND = 2
TASK = "job"


class Member:
    """Process with everything that a fleet's process can have."""

    def __init__(self, world: World, host: int, number: int, clock: Clock) -> None:
        self.world = world
        self.process = Process(world.loop, f"p{host}.{number}", host, clock)
        journal = SimulatedJournal(world.database, world.network.doubt, world.network.let_others_act)
        self.journal = cast("Journal", journal)
        owner = ProcessOwner(f"host{host}", "boot", "", number, self.process.name).text()
        self.runs = DurableRunStore(self.journal, lease=LEASE, now=clock, owner=lambda: owner)
        engine = WorkflowClient(world.workflows, self._while_handing_over, self._on_takeover)
        self.watchdog = FleetWatchdog(self.journal, engine, lease=LEASE, report=self._trace, monotonic=clock.read)
        self.in_hand: set[str] = set()
        self.spender = Spender(world, self.process, self.journal)
        self.watchdog._name = self.process.name  # noqa: SLF001  # not a random one: traces must repeat

    def start(self) -> None:
        """Run all parts."""
        parts = []
        if self.world.has_runs:
            watch = self.watchdog.watch(asyncio.Event())
            parts += [self._beat(), watch, self._work_embedded(), self._work_workflows()]
        if self.world.has_money:
            parts += self.spender.parts()
        for part in parts:
            self.process.spawn(part)

    def _trace(self, text: str) -> None:
        self.world.trace(f"{self.process.name} {text}")

    def _is_chosen(self, chance: float) -> bool:
        return self.world.is_stormy and self.world.chance.random() < chance

    # -- heartbeat and watchdog ------------------------------------------------------------------------

    async def _beat(self) -> None:
        executor = Executor(
            id=self.process.name,
            role=ExecutorRole.WORKER,
            host=f"host{self.process.host}",
            pid=1,
            version="1",
            engine="dbos",
            lease=LEASE,
        )
        is_announced = False
        while True:
            with suppress(*AWAY):
                if not is_announced:
                    executor, is_announced = await asyncio.to_thread(announce, self.journal, executor), True
                executor = await asyncio.to_thread(beat, self.journal, executor)
            await asyncio.sleep(beat_interval(LEASE))

    def _while_handing_over(self, what: str) -> None:
        """Die or hang in the middle of a hand-over, at times."""
        if self._is_chosen(0.08):
            self._trace(f"dies before {what}")
            self.world.kill(self)
        elif self._is_chosen(0.12):
            self._trace(f"hangs before {what}")
            self.process.stop(self.world.chance.uniform(1.0, 3 * LEASE))

    def _on_takeover(self, what: str, run: str) -> None:
        self.world.check_takeover(self, what, run)

    # -- embedded runs ---------------------------------------------------------------------------------

    async def _work_embedded(self) -> None:
        while True:
            if len(self.in_hand) < MAX_IN_HAND:
                lease = await self._claim()
                if lease is not None and lease.run not in self.in_hand:
                    self.world.note_claim(self, lease)
                    self.in_hand.add(lease.run)
                    self.process.spawn(self._run_embedded(lease))
            await asyncio.sleep(POLL)

    async def _claim(self) -> DurableRunLease | None:
        """Claim the next run, or one by its name, as a client does that starts it again."""
        name = self.world.chance.choice(self.world.embedded)
        with suppress(*AWAY, RunOwnedElsewhere):
            if self.world.chance.random() < 0.3 and name not in self.in_hand:  # both often enough
                lease = await asyncio.to_thread(self.runs.claim, name, TASK, {})
                return lease if lease.done is None else None
            claimed = await asyncio.to_thread(self.runs.claim_next, [TASK])
            return None if claimed is None else claimed.lease
        return None

    async def _run_embedded(self, lease: DurableRunLease) -> None:
        is_over = asyncio.Event()
        self.process.spawn(self._renew(lease, is_over))
        try:
            await self._run_steps(lease)
        except AWAY:
            with suppress(*AWAY, LeaseLost):
                await asyncio.to_thread(lease.release)
        except LeaseLost:
            self._trace(f"lost {lease.run} epoch {lease.epoch}")
        is_over.set()
        self.in_hand.discard(lease.run)

    async def _run_steps(self, lease: DurableRunLease) -> None:
        ended = {"status": "partial", "reason": "no progress"}
        if not lease.exhausted:
            task = await asyncio.to_thread(
                AsyncDurableTask, lease, self.runs.received, self.process.clock, asyncio.sleep
            )
            for number in range(self.world.steps[lease.run]):
                key = f"s{number}"
                result = await task.step(key, self._step, (lease, key))
                self.world.acknowledge(lease.run, key, result)
            ended = {"status": "succeeded", "value": self.process.name}
        await awrite_with_retry(partial(lease.finish, ended), asyncio.sleep)
        self.world.acknowledge(lease.run, "", ended)

    async def _step(self, lease: DurableRunLease, key: str) -> Any:
        self.world.check_step(self, lease, key)
        await self._do_step(lease.run, key)
        return {"epoch": lease.epoch, "by": self.process.name, "token": self.world.next_token()}

    async def _do_step(self, run: str, key: str) -> None:
        await asyncio.sleep(self.world.chance.uniform(0.1, 4.0))
        if self.world.poison.get(run) == key:
            self._trace(f"is killed by {run} {key}")
            self.world.kill(self)
            await asyncio.sleep(0)

    async def _renew(self, lease: DurableRunLease, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            await asyncio.sleep(LEASE / 3)
            with suppress(*AWAY):
                try:
                    await asyncio.to_thread(lease.renew)
                except LeaseLost:
                    return

    # -- runs of the workflow engine -------------------------------------------------------------------

    async def _work_workflows(self) -> None:
        in_hand: set[str] = set()
        while True:
            if len(in_hand) < MAX_IN_HAND:
                with suppress(*AWAY):
                    begun = await asyncio.to_thread(self.world.workflows.dequeue, self.process.name)
                    if begun is not None:
                        in_hand.add(begun.run)
                        self.process.spawn(self._run_workflow(begun, in_hand))
            await asyncio.sleep(POLL)

    async def _run_workflow(self, begun: Begun, in_hand: set[str]) -> None:
        workflows = self.world.workflows
        with suppress(Conflict):
            for number in range(begun.done, self.world.steps[begun.run]):
                await self._do_step(begun.run, f"s{number}")
                value = f"{self.process.name} {self.world.next_token()}"
                await self._until_answered(partial(workflows.record, begun.run, begun.token, number, value))
                self.world.acknowledge(begun.run, f"s{number}", value)
            await self._until_answered(partial(workflows.finish, begun.run, begun.token))
            self.world.acknowledge(begun.run, "", "SUCCESS")
        in_hand.discard(begun.run)

    async def _until_answered(self, write: partial[None]) -> None:
        while True:
            with suppress(*AWAY):
                await asyncio.to_thread(write)
                return
            await asyncio.sleep(1.0)
