"""Database of the simulated fleet: the journal's schema in memory, one writer at a time, with a clock of its own.

Its triggers check what no transaction may ever do, whoever writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from rung.core.domain.errors import StoreUnavailable
from rung.store.backends.durable_future import DurableFuture
from rung.store.backends.migrations import LATEST_VERSION, statements
from rung.store.backends.postgres import PostgresBackend, PostgresConnection
from rung.store.backends.sqlite import SQL_TYPES
from rung.store.sealing import JournalKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.store.backends.port import BackendConnection, Row

_TRIGGERS = """
CREATE TEMP TRIGGER epoch_grows BEFORE UPDATE ON run
  WHEN new.epoch < old.epoch
  BEGIN SELECT violated('epoch of ' || old.id || ' fell'); END;
CREATE TEMP TRIGGER owner_is_fenced BEFORE UPDATE ON run
  WHEN new.owner <> old.owner AND new.owner <> '' AND new.epoch <= old.epoch
  BEGIN SELECT violated(old.id || ' has a new owner in an old epoch'); END;
CREATE TEMP TRIGGER ended_stays BEFORE UPDATE ON run
  WHEN old.state = 'done'
  AND (new.state <> 'done' OR new.result <> old.result)
  BEGIN SELECT violated(old.id || ' changed after its end'); END;
CREATE TEMP TRIGGER run_stays BEFORE DELETE ON run
  WHEN wiping() = 0
  BEGIN SELECT violated(old.id || ' was lost'); END;
CREATE TEMP TRIGGER step_stays BEFORE UPDATE ON step
  WHEN new.result <> old.result
  BEGIN SELECT violated('step ' || old.key || ' of ' || old.run || ' was recorded twice'); END;
CREATE TEMP TRIGGER step_is_fenced BEFORE INSERT ON step
  WHEN json_extract(new.result, '$.epoch') <> (SELECT epoch FROM run WHERE id = new.run)
  BEGIN SELECT violated('step ' || new.key || ' of ' || new.run || ' was recorded by a stale epoch'); END;
CREATE TEMP TRIGGER claims AFTER UPDATE OF epoch ON run
  WHEN new.epoch > old.epoch AND new.owner <> ''
  BEGIN SELECT claimed(new.id); END;
CREATE TEMP TRIGGER beats BEFORE UPDATE ON message
  WHEN old.topic >= 'executor/' AND old.topic < 'executor0'
  BEGIN SELECT beaten(old.topic, old.at, new.at); END;
CREATE TEMP TRIGGER comes BEFORE INSERT ON message
  WHEN new.topic >= 'executor/' AND new.topic < 'executor0'
  AND NOT EXISTS (SELECT 1 FROM message WHERE topic = new.topic)
  BEGIN SELECT beaten(new.topic, 0.0, new.at); END;
CREATE TEMP TRIGGER shares AFTER UPDATE ON message
  WHEN new.topic = 'shared/f'
  BEGIN SELECT shared(new.body); END;
CREATE TEMP TRIGGER progress AFTER INSERT ON step
  BEGIN SELECT progressed(new.run); END;
"""


class SimulatedConnection(PostgresConnection):
    """Connection to the database in memory, which answers the journal's question for the server's time."""

    def __init__(self, raw: apsw.Connection, clock: Callable[[], float]) -> None:
        self.raw, self._now = raw, clock

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement."""
        if "clock_timestamp" in sql:
            return [(self._now(),)]
        return list(self.raw.execute(sql, tuple(values)))

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        self.raw.executemany(sql, rows)


class _SharedServer(PostgresBackend):
    """Says that the journal is one that hosts share."""

    def __init__(self) -> None:
        self.url = "simulated"


class SimulatedDatabase:
    """One database. `violations` lists what happened in it although it must not."""

    def __init__(self) -> None:
        self.raw = apsw.Connection(":memory:")
        self.violations: list[str] = []
        self.claims: dict[str, int] = {}  # of runs since their last new step
        self.silent: dict[str, float] = {}  # executors that did not beat for a time, and when they beat again
        self._is_wiping = False
        for number in range(1, LATEST_VERSION + 1):
            for statement in statements(number, SQL_TYPES):
                self.raw.execute(statement)
        functions: dict[str, Callable[..., Any]] = {
            "violated": self.violations.append,
            "wiping": lambda: int(self._is_wiping),
            "claimed": self._count_claim,
            "progressed": lambda run: self.claims.pop(run, 0),
            "beaten": self._note_beat,
            "shared": self._note_shared,
        }
        for name, function in functions.items():
            self.raw.create_scalar_function(name, function)
        self.raw.execute(_TRIGGERS)

    def _note_beat(self, topic: str, before: float, now: float) -> None:
        if now - before > self.lease:
            self.silent[topic.removeprefix("executor/")] = now
            self.on_return(topic.removeprefix("executor/"))

    def _note_shared(self, body: str) -> None:
        self.on_shared(body)

    def _count_claim(self, run: str) -> None:
        self.claims[run] = self.claims.get(run, 0) + 1

    def wipe(self, clock: Callable[[], float], lease: float) -> None:
        """Empty it for another simulation, with executors of this lease."""
        self.lease = lease
        self.on_shared: Callable[[str], object] = lambda _: None
        self.on_return: Callable[[str], object] = lambda _: None
        self._is_wiping = True
        for table in ("message", "run", "step"):
            self.raw.execute(f"DELETE FROM {table}")  # constants
        self._is_wiping = False
        self.violations.clear()
        self.claims.clear()
        self.silent.clear()
        self.connection = SimulatedConnection(self.raw, clock)


class SimulatedJournal:
    """Journal of one process, as far as a fleet uses it. `doubt` decides what happens to a commit, and to what others do."""

    project = ""
    last_error = ""

    def __init__(self, database: SimulatedDatabase, doubt: Callable[[], str], others_act: Callable[[], object]) -> None:
        self.backend, self.key = _SharedServer(), JournalKey()
        self._database, self._doubt, self._others_act = database, doubt, others_act

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one query."""
        return self._database.connection.execute(sql, values)

    def flush(self, seconds: float) -> bool:
        """Return True: nothing is buffered."""
        return seconds > 0

    def write(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[Any]:
        """Run a transaction. If its outcome is in doubt, ask `present`, as the journal's writer does."""
        future: DurableFuture[Any] = DurableFuture()
        connection, fate = self._database.connection, self._doubt()
        claims = dict(self._database.claims)
        connection.raw.execute("BEGIN")
        try:
            result = work(connection)
        except BaseException as error:  # LeaseLost is one
            connection.raw.execute("ROLLBACK")
            self._database.claims = claims
            future.set_exception(error)
            return future
        connection.raw.execute("ROLLBACK" if fate == "lost" else "COMMIT")
        if fate == "lost":
            self._database.claims = claims
        if fate != "certain":
            self._others_act()
            if not present(connection):
                future.set_exception(StoreUnavailable("the outcome of a commit is unknown"))
                return future
        future.set_result(result)
        return future
