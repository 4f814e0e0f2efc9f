"""World of one seed: hosts with wrong clocks, a database, a network between them, and a storm that ends.

The clocks of hosts differ from the database's by at most `MAX_SKEW`, a third of a lease, and by at most `MAX_DRIFT` in rate. In
one of ten seeds they differ by up to `WILD_SKEW`: then live owners lose runs to hosts whose clocks are ahead, but every
invariant holds all the same.
"""

from __future__ import annotations

import asyncio
from random import Random

from rung.core.policy.slices import MAX_CLOCK_DRIFT
from rung.store.durable_runs import DurableRunStore
from tests.fleet_simulation.invariants import LEASE, Invariants
from tests.fleet_simulation.member import TASK, Member
from tests.fleet_simulation.network import Cut, Faults, Network
from tests.fleet_simulation.virtual_time import Clock

HOSTS = 3
MAX_SKEW = LEASE / 3
WILD_SKEW = 120.0
MAX_DRIFT = MAX_CLOCK_DRIFT * 0.8
STORM_SECONDS = 60.0
CALM_SECONDS = 500.0  # in which everything must end after the storm


class World(Invariants):
    """One simulation."""

    def __init__(self, seed: int, *, is_fair: bool = False) -> None:
        super().__init__(seed)
        self.chance = Random(seed)
        self.network = Network(self.loop, self.chance, self.trace)
        self.loop.send = self.network.send
        self.is_stormy = not is_fair
        self.has_runs, self.has_money = self.chance.choice([(True, False), (True, False), (False, True), (True, True)])
        self._started = 0
        self._plan()

    # -- the plan --------------------------------------------------------------------------------------

    def _plan(self) -> None:
        chance = self.chance
        self.embedded = [f"e{number}" for number in range(chance.randrange(3, 7))]
        queued = [f"w{number}" for number in range(chance.randrange(3, 7))]
        self.steps = {run: chance.randrange(1, 6) for run in (*self.embedded, *queued)}
        self.poison = {
            run: f"s{chance.randrange(self.steps[run])}"
            for run in (self.embedded[-1], queued[-1])
            if chance.random() < 0.25 and self.is_stormy
        }
        if self.is_stormy:
            self._plan_storm(chance)
        skew = WILD_SKEW if chance.random() < 0.1 and self.is_stormy else MAX_SKEW
        self.clocks = [
            Clock(self.loop, chance.uniform(-skew, skew), chance.uniform(-MAX_DRIFT, MAX_DRIFT)) for _ in range(HOSTS)
        ]
        if self.has_runs:
            runs = DurableRunStore(self.calm_journal(), now=self.now)
            for run in self.embedded:
                runs.submit(run, TASK, {})
            for run in queued:
                self.workflows.submit(run)
        for host in range(HOSTS):
            self._start(host)
        self.loop.call_at(STORM_SECONDS, self._calm)

    def _plan_storm(self, chance: Random) -> None:
        harshness = chance.choice([0.0, 0.3, 1.0, 1.0])
        rates = (0.04, 0.04, 0.02, 0.03, 0.05)
        self.network.faults = Faults(*(chance.uniform(0.0, 2 * rate) * harshness for rate in rates))
        for _ in range(chance.randrange(4)):
            begin = chance.uniform(0.0, STORM_SECONDS)
            end = min(STORM_SECONDS, begin + chance.uniform(2.0, 40.0))
            self.network.cuts.append(Cut(chance.choice([None, *range(HOSTS)]), begin, end))
        for happens in (self._kill_one, self._stop_one):
            for _ in range(chance.randrange(4)):
                self.loop.call_at(chance.uniform(5.0, STORM_SECONDS), happens)

    def _start(self, host: int) -> None:
        self._started += 1
        member = Member(self, host, self._started, self.clocks[host])
        self.members.append(member)
        member.start()

    def _kill_one(self) -> None:
        if self.living:
            self.kill(self.chance.choice(self.living))

    def _stop_one(self) -> None:
        if not self.living:
            return
        member, seconds = self.chance.choice(self.living), self.chance.uniform(1.0, 4 * LEASE)
        self.trace(f"{member.process.name} is stopped for {seconds:.1f} s")
        member.process.stop(seconds)

    def _calm(self) -> None:
        self.trace("the storm ends")
        self.is_stormy = False
        self.network.faults, self.network.cuts = Faults(), []
        for member in self.members:
            member.process.wake()

    def kill(self, member: Member) -> None:
        """Kill a process; another one is started on its host."""
        if member.process.is_alive:
            self.trace(f"{member.process.name} dies")
            member.process.kill()
            self.loop.call_later(self.chance.uniform(1.0, 8.0), self._start, member.process.host)

    # -- the run ---------------------------------------------------------------------------------------

    def run(self) -> None:
        """Let the storm pass, and wait until everything has ended."""
        while self.loop.time() < STORM_SECONDS + CALM_SECONDS and (
            self.loop.time() < STORM_SECONDS or self.open_runs()
        ):
            self._pass(1.0)
        self._pass(20.0)  # spend is recorded, and late calls arrive

    def _pass(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


def simulate(seed: int, *, is_fair: bool = False) -> World:
    """Run one seed and check it."""
    world = World(seed, is_fair=is_fair)
    try:
        world.run()
        world.check()
    finally:
        for member in world.members:
            member.process.discard()
        world.loop.close()
    return world
