"""World of one seed: hosts with wrong clocks, a database, a network between them, and a storm that ends.

The clocks of hosts differ from the database's by at most `MAX_SKEW`, a third of a lease, and by at most `MAX_DRIFT` in rate. In
one of ten seeds they differ by up to `WILD_SKEW`: then live owners lose runs to hosts whose clocks are ahead, but every
invariant holds all the same.
"""

from __future__ import annotations

import asyncio
import json
import re
import traceback
from random import Random
from typing import Any

from rung.core.policy.executor_health import MAX_TAKEOVERS
from rung.core.policy.slices import MAX_CLOCK_DRIFT, settled
from rung.store.durable_runs import MAX_IDLE_CLAIMS, DurableRunLease, DurableRunStore
from rung.store.fleet import slices
from rung.store.fleet.spend_slices import DOUBT_SECONDS, LEASE_SECONDS
from rung.store.queries.spend import spent_by_key
from rung.store.spend_holds import left, live_holds
from tests.fleet_simulation.database import SimulatedDatabase, SimulatedJournal
from tests.fleet_simulation.member import CALLS_PER_MINUTE, DOLLARS, ESTIMATE, LEASE, SPEND, TASK, Member
from tests.fleet_simulation.network import Cut, Faults, Network
from tests.fleet_simulation.virtual_time import EPOCH, Clock, VirtualLoop
from tests.fleet_simulation.workflows import Workflows

HOSTS = 3
MAX_SKEW = LEASE / 3
WILD_SKEW = 120.0
MAX_DRIFT = MAX_CLOCK_DRIFT * 0.8
STORM_SECONDS = 60.0
CALM_SECONDS = 500.0  # in which everything must end after the storm
ROUNDING = 1e-6
_DATABASE = SimulatedDatabase()


class Broken(AssertionError):
    """An invariant does not hold; says the seed and the trace."""


class World:
    """One simulation."""

    def __init__(self, seed: int, *, is_fair: bool = False) -> None:
        self.seed, self.chance = seed, Random(seed)
        self.loop = VirtualLoop()
        self._trace: list[tuple[float, tuple[object, ...]]] = []
        self.database = _DATABASE
        self.database.wipe(self.now, LEASE)
        self.database.on_shared = self._check_shared
        self.network = Network(self.loop, self.chance, self.trace)
        self.loop.send = self.network.send
        self.workflows = Workflows(self.now, self.violate)
        self.is_stormy = not is_fair
        self.has_runs, self.has_money = self.chance.choice([(True, False), (True, False), (False, True), (True, True)])
        self.members: list[Member] = []
        self.acknowledged: dict[tuple[str, str], Any] = {}
        self.claimed: dict[tuple[str, int], str] = {}
        self.late_takeovers: dict[str, float] = {}
        self.from_slices = self.by_ledger = 0.0
        self.calls = self._tokens = self._started = 0
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
            runs = DurableRunStore(self._calm_journal(), now=self.now)
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

    def _calm_journal(self) -> Any:
        return SimulatedJournal(self.database, lambda: "certain", lambda: None)

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

    @property
    def living(self) -> list[Member]:
        """Return the processes that are alive."""
        return [member for member in self.members if member.process.is_alive]

    def kill(self, member: Member) -> None:
        """Kill a process; another one is started on its host."""
        if member.process.is_alive:
            self.trace(f"{member.process.name} dies")
            member.process.kill()
            self.loop.call_later(self.chance.uniform(1.0, 8.0), self._start, member.process.host)

    # -- what happens ----------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time of the database."""
        return EPOCH + self.loop.time()

    def trace(self, *what: object) -> None:
        """Add a line to the trace; it is formatted when somebody reads it."""
        self._trace.append((self.loop.time(), what))

    def text(self) -> str:
        """Return the trace."""
        lines = (f"{at:8.3f} " + " ".join(f"{each!s:.120}" for each in what) for at, what in self._trace)
        return re.sub(r" at 0x[0-9a-f]+", "", "\n".join(lines))

    def violate(self, text: str) -> None:
        """Note that an invariant does not hold."""
        self.database.violations.append(text)
        self.trace(f"VIOLATION {text}")

    def next_token(self) -> int:
        """Return a number that no other execution of a step has."""
        self._tokens += 1
        return self._tokens

    def note_claim(self, member: Member, lease: DurableRunLease) -> None:
        """Check that nobody else has the same epoch of a run."""
        name = member.process.name
        if self.claimed.setdefault((lease.run, lease.epoch), name) != name:
            self.violate(f"epoch {lease.epoch} of {lease.run} has two owners")

    def check_step(self, member: Member, lease: DurableRunLease, key: str) -> None:
        """Check that a step begins that was not recorded before its owner claimed the run."""
        row = self._row("SELECT result FROM step WHERE run = ? AND key = ?", lease.run, key)
        if row is not None and json.loads(row)["epoch"] < lease.epoch:
            self.violate(f"{member.process.name} runs {key} of {lease.run} again")

    def acknowledge(self, run: str, key: str, value: Any) -> None:
        """Note what a process was told to be recorded; an empty key is the end of a run."""
        self.acknowledged[run, key] = value
        self._check_acknowledged(run, key, value)

    def _check_acknowledged(self, run: str, key: str, value: Any) -> None:
        if run in self.workflows.table:
            stored: Any = self.workflows.table[run]
            found = stored.steps[int(key[1:])] if key else stored.status
        else:
            sql = "SELECT result FROM step WHERE run = ? AND key = ?" if key else "SELECT result FROM run WHERE id = ?"
            row = self._row(sql, *((run, key) if key else (run,)))
            found = json.loads(row) if row else None
        if found != value:
            self.violate(f"acknowledged {value!r} as {key or 'end'} of {run}, found {found!r}")

    def check_takeover(self, member: Member, what: str, run: str) -> None:
        """Check that a watchdog hands over what a dead executor had, if it hands over in time."""
        name, row = member.watchdog._name, self.workflows.table[run]  # noqa: SLF001  # as in its claims
        self.trace(f"{member.process.name} {what} {run}, {row.status} of {row.executor}")
        rows = self.database.connection.execute("SELECT topic, body FROM message WHERE topic LIKE 'takeover-claim/%'")
        claims = {topic.removeprefix("takeover-claim/"): json.loads(body) for topic, body in rows}
        valid = {of for of, claim in claims.items() if claim["by"] == name and claim["until"] > self.now()}
        if not valid:
            self.late_takeovers[run] = self.now()  # it slept over its claim: the other rules say what must hold then
        elif self.now() - self.late_takeovers.get(run, 0.0) < LEASE:
            return  # another one did while this one was at it
        elif row.status == "SUCCESS":
            return  # the engine leaves it alone
        elif row.status != "PENDING" or row.executor not in valid:
            self.violate(f"{name} hands over {run}, {row.status} of {row.executor}, but claimed {sorted(valid)}")
        elif not self._was_silent(row.executor, row.begun_at):
            self.violate(f"{run} was taken from {row.executor}, which never was silent")

    def _was_silent(self, executor: str, since: float) -> bool:
        beat = self._row("SELECT at FROM message WHERE topic = ?", f"executor/{executor}")
        return beat is None or self.now() - beat > LEASE or self.database.silent.get(executor, 0.0) >= since

    def spend_from_slice(self, amount: float) -> None:
        """Spend dollars of a slice."""
        self.from_slices += amount
        if self.from_slices > DOLLARS.amount + ROUNDING:
            self.violate(f"{self.from_slices} dollars were spent from slices of {DOLLARS.amount}")

    def spend_by_ledger(self, amount: float) -> None:
        """Spend dollars that a gateway reserved."""
        self.by_ledger += amount
        if self.by_ledger > SPEND.limit + ESTIMATE + ROUNDING:
            self.violate(f"gateways spent {self.by_ledger} dollars of {SPEND.limit}")

    def count_call(self) -> None:
        """Make a call that a rate limits."""
        self.calls += 1
        if self.calls > CALLS_PER_MINUTE * (1 + self.loop.time() / 60) + ROUNDING:
            self.violate(f"{self.calls} calls exceed the rate")

    def _check_shared(self, body: str) -> None:
        """Check the table of dollars. That of a rate may count more than was used: what a forgotten holder tells late."""
        use = json.loads(body)["limits"].get("dollars")
        if use is not None:
            out = sum(max(0.0, lease[0] - lease[1]) for lease in use["leases"].values())
            if use["used"] < 0 or use["used"] + out > DOLLARS.amount + ROUNDING:
                self.violate(f"{use['used']} used and {out} leased of {DOLLARS.amount} dollars")

    def _row(self, sql: str, *values: Any) -> Any:
        rows = self.database.connection.execute(sql, values)
        return rows[0][0] if rows else None

    # -- the run ---------------------------------------------------------------------------------------

    def run(self) -> None:
        """Let the storm pass, and wait until everything has ended."""
        while self.loop.time() < STORM_SECONDS + CALM_SECONDS and (self.loop.time() < STORM_SECONDS or self._open()):
            self._pass(1.0)
        self._pass(20.0)  # spend is recorded, and late calls arrive

    def _pass(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def _open(self) -> list[str]:
        rows = self.database.connection.execute("SELECT id FROM run WHERE state = 'open'")
        queued = [run for run, row in self.workflows.table.items() if row.status in ("ENQUEUED", "PENDING")]
        return [run for (run,) in rows] + queued

    def check(self) -> None:
        """Check what must hold at the end; raise Broken with the seed and the trace."""
        for check in (self._check_ends, self._check_money, self._check_failures):
            check()
        for (run, key), value in self.acknowledged.items():
            if run not in self.workflows.table or key or self.workflows.table[run].status != "SUCCESS":
                self._check_acknowledged(run, key, value)
        if self.database.violations:
            found = "\n".join(self.database.violations)
            raise Broken(f"seed {self.seed}: {found}\n{self.text()}")

    def _check_ends(self) -> None:
        for run in self._open():
            self.violate(f"{run} did not end")
        for run, body in self.database.connection.execute("SELECT id, result FROM run WHERE state = 'done'"):
            is_partial = json.loads(body)["status"] == "partial"
            if is_partial and self.database.claims.get(run, 0) <= MAX_IDLE_CLAIMS:
                self.violate(f"{run} ended partial after {self.database.claims.get(run, 0)} claims without a step")
            self._check_poison(run, is_partial=is_partial)
        for run, row in self.workflows.table.items():
            begun = self.workflows.executions_without_step(run, LEASE)
            if row.status == "CANCELLED" and begun <= MAX_TAKEOVERS:
                self.violate(f"{run} ended partial after {begun} executions without a step")
            self._check_poison(run, is_partial=row.status == "CANCELLED")

    def _check_poison(self, run: str, *, is_partial: bool) -> None:
        if run in self.poison and not is_partial:
            self.violate(f"{run} succeeded although it kills its executors")

    def _check_money(self) -> None:
        """Check that all spend of the living is recorded, and that all that was leased returns when they die."""
        query, journal = self.database.connection.execute, self._calm_journal()
        recorded = spent_by_key(query, SPEND.id)
        settled_by_living = sum(member.spent_by_ledger for member in self.living)
        if not settled_by_living - ESTIMATE * 2 * len(self.living) <= recorded <= self.by_ledger + ROUNDING:
            self.violate(f"recorded {recorded}, spent {self.by_ledger}, of it {settled_by_living} by the living")
        for member in self.living:
            member.process.kill()
        later = self.now() + LEASE_SECONDS + DOUBT_SECONDS + 1.0
        free = left(journal, [SPEND], later)
        if live_holds(query, later) or free is None or abs(free - max(0.0, SPEND.limit - recorded)) > ROUNDING:
            self.violate(f"{free} dollars are free after all died, {recorded} are recorded")
        if not self.has_money:
            return
        document = json.loads(self._row("SELECT body FROM message WHERE topic = 'shared/f'"))
        use = slices._use(document, "dollars", DOLLARS, 0.0)  # noqa: SLF001  # the stored table
        later += DOLLARS.lease_seconds + (DOLLARS.doubt_seconds or 0.0)
        after = settled(DOLLARS, use, later)
        if after.leases or not 0 <= after.used <= self.from_slices + ROUNDING:
            self.violate(f"{after} after all died, spent {self.from_slices}")

    def _check_failures(self) -> None:
        for member in self.members:
            for error in member.process.failures():
                where = "".join(traceback.format_tb(error.__traceback__)[-2:])
                self.violate(f"{member.process.name} failed: {error!r} {where}")


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
