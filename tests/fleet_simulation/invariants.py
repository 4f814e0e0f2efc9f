"""Invariants of a simulated fleet, checked while it runs and at its end."""

from __future__ import annotations

import json
import re
import traceback
from typing import TYPE_CHECKING, Any

from rung.core.policy.executor_health import MAX_TAKEOVERS
from rung.core.policy.slices import use_as_of
from rung.store.durable_runs import MAX_IDLE_CLAIMS
from rung.store.fleet import slices
from rung.store.fleet.spend_slices import DOUBT_SECONDS, LEASE_SECONDS
from rung.store.queries.spend import spent_by_key
from rung.store.spend_holds import left, live_holds
from tests.fleet_simulation.database import SimulatedDatabase, SimulatedJournal
from tests.fleet_simulation.spender import CALLS_PER_MINUTE, DOLLARS, ESTIMATE, SPEND
from tests.fleet_simulation.virtual_time import EPOCH, VirtualLoop
from tests.fleet_simulation.workflows import Workflows

if TYPE_CHECKING:
    from rung.store.run_lease import DurableRunLease
    from tests.fleet_simulation.member import Member

LEASE = 6.0
ROUNDING = 1e-6
_DATABASE = SimulatedDatabase()


class Broken(AssertionError):
    """An invariant does not hold; says the seed and the trace."""


class Invariants:
    """What processes do and are told, and whether that may be."""

    def __init__(self, seed: int) -> None:
        self.seed, self.loop, self.database = seed, VirtualLoop(), _DATABASE
        self._trace: list[tuple[float, tuple[object, ...]]] = []
        self.database.wipe(self.now, LEASE)
        self.database.on_shared = self._check_shared
        self.workflows = Workflows(self.now, self.violate)
        self.database.on_return = self.workflows.return_of
        self.members: list[Member] = []
        self.poison: dict[str, str] = {}
        self.acknowledged: dict[tuple[str, str], Any] = {}
        self.claimed: dict[tuple[str, int], str] = {}
        self.late_takeovers: dict[str, float] = {}
        self.from_slices = self.by_ledger = 0.0
        self.calls = self._tokens = 0

    @property
    def living(self) -> list[Member]:
        """Return the processes that are alive."""
        return [member for member in self.members if member.process.is_alive]

    def calm_journal(self) -> Any:
        """Return a journal without faults."""
        return SimulatedJournal(self.database, lambda: "certain", lambda: None)

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

    # -- at the end -----------------------------------------------------------------------------------

    def open_runs(self) -> list[str]:
        """Return the runs that have not ended."""
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
        for run in self.open_runs():
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
        query, journal = self.database.connection.execute, self.calm_journal()
        recorded = spent_by_key(query, SPEND.id)
        settled_by_living = sum(member.spender.spent for member in self.living)
        if not settled_by_living - ESTIMATE * 2 * len(self.living) <= recorded <= self.by_ledger + ROUNDING:
            self.violate(f"recorded {recorded}, spent {self.by_ledger}, of it {settled_by_living} by the living")
        for member in self.living:
            member.process.kill()
        later = self.now() + LEASE_SECONDS + DOUBT_SECONDS + 1.0
        free = left(journal, [SPEND], later)
        if live_holds(query, later) or free is None or abs(free - max(0.0, SPEND.limit - recorded)) > ROUNDING:
            self.violate(f"{free} dollars are free after all died, {recorded} are recorded")
        body = self._row("SELECT body FROM message WHERE topic = 'shared/f'")
        if body is None:
            return  # nobody has slices
        document = json.loads(body)
        use = slices._use(document, "dollars", DOLLARS, 0.0)  # noqa: SLF001  # the stored table
        later += DOLLARS.lease_seconds + (DOLLARS.doubt_seconds or 0.0)
        after = use_as_of(DOLLARS, use, later)
        if after.leases or not 0 <= after.used <= self.from_slices + ROUNDING:
            self.violate(f"{after} after all died, spent {self.from_slices}")

    def _check_failures(self) -> None:
        for member in self.members:
            for error in member.process.failures():
                where = "".join(traceback.format_tb(error.__traceback__)[-2:])
                self.violate(f"{member.process.name} failed: {error!r} {where}")
