"""Model-based test of durable runs: any order of claims, late writers, expired leases and pruning."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rung.core.domain import events as ev
from rung.core.domain.errors import LeaseLost, RunOwnedElsewhere
from rung.store import open_journal
from rung.store.durable_runs import MAX_IDLE_CLAIMS, DurableRunStore
from rung.store.journal.retention import prune
from rung.store.run_lease import DurableRunLease
from tests.store.stories import NOON, emptied, failed, opened, succeeded
from tests.store.test_model import LONG, small

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

LEASE = 100.0
names = st.sampled_from(["r1", "r2", "r3"])
keys = st.sampled_from(["a", "b"])


@dataclass
class Known:
    """Expected state of a run."""

    epoch: int = 0
    owned_until: float = 0.0
    idle: int = 0
    done: Any = None
    steps: dict[str, int] = field(default_factory=dict)
    events: list[ev.Event] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], ev.AttemptSucceeded)


class Machine(RuleBasedStateMachine):
    """Two journals on one store, as in two processes, on one clock."""

    url: ClassVar[str] = ""
    claims = Bundle("claims")  # including those that another owner has claimed since

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="rung-runs-"))
        self.said: list[str] = []
        self.time = NOON
        self.journals = [self._open(), self._open()]
        emptied(self.journals[0])
        self.journals[0].write(
            lambda connection: [
                connection.execute(f"DELETE FROM {table}") for table in ("event", "run", "step", "message")
            ],
            lambda _: True,
        ).result(LONG)
        self.known: dict[str, Known] = {}
        self.messages: dict[str, int] = {}

    def _open(self) -> Journal:
        return open_journal(self.url or self.directory / "journal.db", on_warning=self.said.append)

    def _runs(self, which: int) -> DurableRunStore:
        return DurableRunStore(self.journals[which], lease=LEASE, now=lambda: self.time)

    def teardown(self) -> None:
        for journal in self.journals:
            journal.close()
        shutil.rmtree(self.directory)

    # -- ownership ------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), name=names)
    def submit(self, which: int, name: str) -> None:
        assert self._runs(which).submit(name, "task", {"x": 1}) is (name not in self.known)
        self.known.setdefault(name, Known())

    @rule(target=claims, which=st.integers(0, 1), name=names)
    def claim(self, which: int, name: str) -> DurableRunLease | None:
        known = self.known.setdefault(name, Known())
        try:
            claim = self._runs(which).claim(name)
        except RunOwnedElsewhere:
            assert known.done is None
            assert self.time < known.owned_until
            return None
        if known.done is not None:
            assert claim.done == known.done
            return claim
        assert self.time >= known.owned_until
        known.epoch, known.idle, known.owned_until = known.epoch + 1, known.idle + 1, self.time + LEASE
        assert (claim.epoch, claim.done, claim.exhausted) == (known.epoch, None, known.idle > MAX_IDLE_CLAIMS)
        return claim

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    # -- writes of the owner --------------------------------------------------------------------------

    def _try(self, claim: DurableRunLease | None, act: Any) -> Known | None:
        """Execute it; return the expected run if the lease is valid: not claimed since, and not ended."""
        if claim is None:
            return None
        known = self.known[claim.run]
        try:
            act()
        except LeaseLost:
            assert claim.epoch != known.epoch or known.done is not None
            return None
        assert claim.epoch == known.epoch
        assert known.done is None
        if known.owned_until:  # a released run is unowned whatever its lease
            known.owned_until = self.time + LEASE
        return known

    @rule(claim=claims, key=keys, value=st.integers(0, 9))
    def record(self, claim: DurableRunLease | None, key: str, value: int) -> None:
        if claim is not None and (known := self._try(claim, lambda: claim.record(key, value))):
            known.steps[key] = value
            known.idle = 0

    @rule(claim=claims, good=st.booleans())
    def append(self, claim: DurableRunLease | None, good: bool) -> None:
        if claim is None or self.known[claim.run].closed:
            return
        first = len(self.known[claim.run].events)
        events: list[ev.Event] = [] if first else [opened(claim.run, when=self.time)]
        events.append(succeeded(self.time) if good else failed(self.time))
        if known := self._try(claim, lambda: claim.append(claim.run, first, events).result(LONG)):
            known.events += events

    @rule(claim=claims)
    def renew(self, claim: DurableRunLease | None) -> None:
        if claim is not None:
            self._try(claim, claim.renew)

    @rule(claim=claims)
    def release(self, claim: DurableRunLease | None) -> None:
        if claim is not None and (known := self._try(claim, claim.release)):
            known.owned_until = 0.0

    @rule(claim=claims, result=st.integers(1, 9))
    def finish(self, claim: DurableRunLease | None, result: int) -> None:
        if claim is not None and (known := self._try(claim, lambda: claim.finish(result))):
            known.done = result

    # -- the rest -------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), topic=keys, body=st.integers())
    def send(self, which: int, topic: str, body: int) -> None:
        self._runs(which).send(topic, body)
        self.messages[topic] = body

    @rule(which=st.integers(0, 1), age=st.sampled_from([0.0, LEASE]))
    def prune(self, which: int, age: float) -> None:
        """Pruning deletes old ended incidents completely and keeps open ones completely."""
        gone = prune(self.journals[which], older_than=self.time - age)
        old = [one for one in self.known.values() if one.closed and one.events[-1].at < self.time - age]
        assert gone == (len(old), sum(len(one.events) for one in old))
        for one in old:
            one.events = []

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.journals[which].close()
        self.journals[which] = self._open()

    @invariant()
    def holds(self) -> None:
        assert self.said == []
        for which, journal in enumerate(self.journals):
            runs = self._runs(which)
            open_runs = {run.id: run.owned for run in runs.open_runs()}
            assert open_runs == {
                name: self.time < known.owned_until for name, known in self.known.items() if known.done is None
            }
            for name, known in self.known.items():
                assert journal.events(name) == known.events
                assert DurableRunLease(runs, name, 0, done=None, exhausted=False).steps() == known.steps
            for topic, body in self.messages.items():
                assert runs.received(topic) == body


def test_sqlite() -> None:
    """On SQLite, runs have one owner at a time and lose nothing, for any sequence of operations."""
    run_state_machine_as_test(Machine, settings=small)


def test_postgres(postgres_url: str) -> None:
    """On PostgreSQL, runs have one owner at a time and lose nothing, for any sequence of operations."""
    run_state_machine_as_test(type("PostgresMachine", (Machine,), {"url": postgres_url}), settings=small)
