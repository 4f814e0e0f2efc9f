"""Model-based test of the journal: any order of appends, repeats, flushes, rebuilds and reopenings."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.store import open_journal
from tests.store.stories import NOON, differences, emptied, failed, opened, succeeded, tables

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

LONG = 120.0


class Machine(RuleBasedStateMachine):
    """Two journals on one store, as in two processes; `told` holds the events expected after a flush."""

    url: ClassVar[str] = ""  # of a server; empty for a new file each time

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="rung-model-"))
        self.said: list[str] = []  # warnings: there must be none
        self.journals = [self._open(), self._open()]
        emptied(self.journals[0])
        self.told: dict[str, list[ev.Event]] = {}
        self.home: dict[str, int] = {}  # the process that owns an incident
        self.flushed = True
        self.clock = count()

    def _open(self) -> Journal:
        return open_journal(self.url or self.directory / "journal.db", on_warning=self.said.append)

    def teardown(self) -> None:
        for journal in self.journals:
            journal.close()
        shutil.rmtree(self.directory)

    def now(self) -> float:
        return NOON + next(self.clock) * 600

    @rule(
        target=names, which=st.integers(0, 1), model=st.sampled_from(["small", "large"]), session=st.sampled_from("ab")
    )
    def open(self, which: int, model: str, session: str) -> str:
        name = f"i{len(self.told)}"
        self.home[name] = which
        self.told[name] = []
        self._tell(name, [opened(name, when=self.now(), model=model, session=session)], wait=True)
        return name

    @rule(name=names, text=st.sampled_from(["overloaded", "timed out"]), again=st.booleans(), wait=st.booleans())
    def fail(self, name: str, text: str, again: bool, wait: bool) -> None:
        events: list[ev.Event] = [failed(self.now(), text)]
        if again:
            events.append(ev.Decided(self.now(), ev.Repeat(0, 1.0, "again")))
        self._tell(name, events, wait=wait)

    @rule(name=consumes(names), good=st.booleans(), wait=st.booleans())
    def end(self, name: str, good: bool, wait: bool) -> None:
        now = self.now()
        self._tell(name, [succeeded(now) if good else ev.Closed(now, ev.Status.FAILED, "no")], wait=wait)

    @rule(which=st.integers(0, 1), session=st.sampled_from("ab"))
    def note(self, which: int, session: str) -> None:
        """Append a successful call."""
        name = f"i{len(self.told)}"
        self.home[name] = which
        events: list[ev.Event] = [opened(name, when=self.now(), session=session), succeeded(self.now())]
        self.told[name] = list(events)
        self.journals[which].append_lazy(lambda: events)
        self.flushed = False

    def _tell(self, name: str, events: list[ev.Event], *, wait: bool) -> None:
        journal, first = self.journals[self.home[name]], len(self.told[name])
        self.told[name] += events
        if wait:
            journal.append(name, first, events).result(LONG)
        else:
            journal.append(name, first, events)
            self.flushed = False

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def tell_again(self, data: st.DataObject) -> None:
        """Append a part of known events again, from either process."""
        name = data.draw(st.sampled_from(sorted(self.told)))
        first = data.draw(st.integers(0, len(self.told[name])))
        last = data.draw(st.integers(first, len(self.told[name])))
        self.journals[self.home[name]].append(name, first, self.told[name][first:last]).result(LONG)

    @rule(name=names)
    def move(self, name: str) -> None:
        """Continue an incident in the other process, which must load it."""
        which = self.home[name]
        assert self.journals[which].flush(LONG)
        self.home[name] = 1 - which

    @rule(which=st.integers(0, 1))
    def fail_to_write(self, which: int) -> None:
        def work(connection: BackendConnection) -> None:
            connection.execute("DELETE FROM event")
            raise ZeroDivisionError

        with suppress(ZeroDivisionError):
            self.journals[which].write(work, lambda _: False).result(LONG)

    @rule()
    def flush(self) -> None:
        assert all(journal.flush(LONG) for journal in self.journals)
        self.flushed = True

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.journals[which].close()
        self.journals[which] = self._open()

    @rule(which=st.integers(0, 1))
    def rebuild(self, which: int) -> None:
        self.flush()
        before = tables(self.journals[which])
        assert self.journals[which].rebuild() == sum(map(len, self.told.values()))
        assert not differences(before, tables(self.journals[which]))

    @invariant()
    def holds(self) -> None:
        assert self.said == []
        if self.flushed:
            for journal in self.journals:
                self._check(journal)

    def _check(self, journal: Journal) -> None:
        for name, events in self.told.items():
            assert journal.events(name) == events
        incidents = {name: Incident.of(events) for name, events in self.told.items()}
        rows: list[tuple[Any, ...]] = journal.read("SELECT id, status, attempts, dollars FROM incident")
        assert {row[0]: row[1:] for row in rows} == {
            name: (
                incident.status.value if incident.status is not None else "open",
                incident.attempts,
                incident.dollars,
            )
            for name, incident in incidents.items()
        }
        attempts = sum(incident.attempts for incident in incidents.values())
        dollars = sum(incident.dollars for incident in incidents.values())
        for table in ("attempt", "by_hour", "session"):
            number = {"attempt": "count(*)", "by_hour": "sum(n)", "session": "sum(attempts)"}[table]
            ((found, spent),) = journal.read(f"SELECT {number}, sum(dollars) FROM {table}")
            assert (found or 0, spent or 0.0) == (attempts, dollars)


small = settings(
    max_examples=400 if os.environ.get("RUNG_STORM") else 8,
    stateful_step_count=30 if os.environ.get("RUNG_STORM") else 20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def test_sqlite() -> None:
    """On SQLite, the journal equals a dictionary for any sequence of operations."""
    run_state_machine_as_test(Machine, settings=small)


def test_postgres(postgres_url: str) -> None:
    """On PostgreSQL, the journal equals a dictionary for any sequence of operations."""
    run_state_machine_as_test(type("PostgresMachine", (Machine,), {"url": postgres_url}), settings=small)
