"""Durable runs: each belongs to one process by a lease with a number, and a finished step is never done again."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import LeaseLost, RunOwnedElsewhere
from rung.engine.process_identity import current_owner, is_gone
from rung.store import messages
from rung.store.messages import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.store.backends.port import BackendConnection, DurableEventLog, DurableFuture

LEASE: Final = 30.0
CLAIMS: Final = 3  # without a new step between them: the run kills whoever takes it up


class OpenRunRow(NamedTuple):
    """A run that has not ended."""

    id: str
    task: str
    arguments: Any
    owned: bool
    made_at: float
    touched_at: float


class DurableRunStore:
    """The runs of a journal."""

    def __init__(self, journal: DurableEventLog, *, lease: float = LEASE, now: Callable[[], float] = time.time) -> None:
        self.journal = journal
        self.lease = lease
        self.now = now

    def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
        """Take up a run, new or left behind. Taken: somebody else has it and is alive."""
        mine = current_owner().text()
        told = as_json(arguments, f"the arguments of {task or run}")

        def work(connection: BackendConnection) -> tuple[int, str, str, int]:
            return self._claim(connection, run, task, told, mine)

        def present(connection: BackendConnection) -> bool:
            return bool(connection.execute("SELECT 1 FROM run WHERE id = ? AND owner = ?", (run, mine)))

        epoch, state, result, idle = self.journal.write(work, present).result()
        return DurableRunLease(
            self, run, epoch, done=json.loads(result) if state == "done" else None, exhausted=idle > CLAIMS
        )

    def _claim(
        self, connection: BackendConnection, run: str, task: str, told: str, mine: str
    ) -> tuple[int, str, str, int]:
        now = self.now()
        rows = connection.execute("SELECT epoch, state, result, owner, lease, idle FROM run WHERE id = ?", (run,))
        if not rows:
            connection.execute(
                "INSERT INTO run (id, task, arguments, state, result, epoch, owner, lease, idle, made_at, touched_at)"
                " VALUES (?, ?, ?, 'open', '', 1, ?, ?, 1, ?, ?)",
                (run, task, told, mine, now + self.lease, now, now),
            )
            return 1, "open", "", 1
        ((epoch, state, result, owner, lease, idle),) = rows
        if state == "done":
            return epoch, state, result, idle
        if owner and now < lease and not is_gone(owner):
            raise RunOwnedElsewhere(
                run, "it is being worked on here" if owner == mine else "another process is at work on it"
            )
        connection.execute(
            "UPDATE run SET epoch = ?, owner = ?, lease = ?, idle = ?, touched_at = ? WHERE id = ?",
            (epoch + 1, mine, now + self.lease, idle + 1, now, run),
        )
        return epoch + 1, state, result, idle + 1

    def submit(self, run: str, task: str, arguments: Any) -> bool:
        """Leave a run for any worker to take up; False when there is one of that id already."""
        told, now = as_json(arguments, f"the arguments of {task}"), self.now()

        def work(connection: BackendConnection) -> bool:
            if connection.execute("SELECT 1 FROM run WHERE id = ?", (run,)):
                return False
            connection.execute(
                "INSERT INTO run (id, task, arguments, state, result, epoch, owner, lease, idle, made_at, touched_at)"
                " VALUES (?, ?, ?, 'open', '', 0, '', 0, 0, ?, ?)",
                (run, task, told, now, now),
            )
            return True

        return self.journal.write(
            work, lambda connection: bool(connection.execute("SELECT 1 FROM run WHERE id = ?", (run,)))
        ).result()

    def ended(self, run: str) -> Any:
        """How a run ended, without taking it up; None for one that is open, or was never there."""
        rows = self.journal.read("SELECT result FROM run WHERE id = ? AND state = 'done'", (run,))
        return json.loads(rows[0][0]) if rows else None

    def below(self, name: str) -> list[str]:
        """The runs whose ids are this name, a slash and more."""
        start = f"{name}/"
        rows = self.journal.read("SELECT id FROM run WHERE substr(id, 1, ?) = ? ORDER BY made_at", (len(start), start))
        return [run for (run,) in rows]

    def open_runs(self) -> list[OpenRunRow]:
        """The runs that have not ended; `owned`: a living process has it."""
        now = self.now()
        rows = self.journal.read(
            "SELECT id, task, arguments, owner, lease, made_at, touched_at FROM run WHERE state = 'open' ORDER BY made_at"
        )
        return [
            OpenRunRow(run, task, json.loads(told), bool(owner) and now < lease and not is_gone(owner), made, touched)
            for run, task, told, owner, lease, made, touched in rows
        ]

    def send(self, topic: str, body: Any) -> None:
        """Tell whoever waits for this topic; the last word counts."""
        messages.send(self.journal, topic, body, self.now())

    def received(self, topic: str) -> Any:
        """What was told about a topic; None when nothing was."""
        return messages.received(self.journal, topic)


class DurableRunLease:
    """A run in our hands, until it ends or somebody else takes it over. Writing after that raises Fenced."""

    def __init__(self, runs: DurableRunStore, run: str, epoch: int, *, done: Any, exhausted: bool) -> None:
        self.runs = runs
        self.run = run
        self.epoch = epoch
        self.done = done  # how it ended, if it has
        self.exhausted = exhausted  # taken up too often without getting on
        self.project = runs.journal.project
        self._stop = threading.Event()
        self._keeper: threading.Thread | None = None

    # -- steps ----------------------------------------------------------------------------------------

    def steps(self) -> dict[str, Any]:
        """What is done, by key."""
        rows = self.runs.journal.read("SELECT key, result FROM step WHERE run = ?", (self.run,))
        return {key: json.loads(result) for key, result in rows}

    def record(self, key: str, result: Any) -> None:
        """A step is done. When this returns it is never done again."""
        told, now = as_json(result, f"the result of step {key!r}"), self.runs.now()

        def work(connection: BackendConnection) -> None:
            self._hold(connection, now, "idle = 0, ")
            connection.execute(
                "INSERT INTO step (run, key, result, at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (run, key) DO UPDATE SET result = excluded.result, at = excluded.at",
                (self.run, key, told, now),
            )

        def present(connection: BackendConnection) -> bool:
            return bool(
                connection.execute("SELECT 1 FROM step WHERE run = ? AND key = ? AND at = ?", (self.run, key, now))
            )

        self.runs.journal.write(work, present).result()

    def finish(self, result: Any) -> None:
        """It has ended so."""
        told, now = as_json(result, f"the result of run {self.run}"), self.runs.now()

        def work(connection: BackendConnection) -> None:
            self._hold(connection, now, "")
            connection.execute("UPDATE run SET state = 'done', result = ?, owner = '' WHERE id = ?", (told, self.run))

        def present(connection: BackendConnection) -> bool:
            return bool(connection.execute("SELECT 1 FROM run WHERE id = ? AND state = 'done'", (self.run,)))

        self.runs.journal.write(work, present).result()
        self.done = json.loads(told)

    def release(self) -> None:
        """Give it back unfinished: whoever comes next may take it up at once."""
        now = self.runs.now()

        def work(connection: BackendConnection) -> None:
            self._hold(connection, now, "")
            connection.execute("UPDATE run SET owner = '', lease = 0 WHERE id = ?", (self.run,))

        self.runs.journal.write(work, lambda _: True).result()

    def _hold(self, connection: BackendConnection, now: float, also: str) -> None:
        """Still ours? In the same transaction as what depends on it."""
        held = connection.execute(
            f"UPDATE run SET {also}lease = ?, touched_at = ? WHERE id = ? AND epoch = ? AND state = 'open' RETURNING 1",  # noqa: S608
            (now + self.runs.lease, now, self.run, self.epoch),
        )
        if not held:
            raise LeaseLost(self.run)

    # -- the journal, fenced --------------------------------------------------------------------------

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None]:
        """Keep events of this run, as long as it is ours."""
        now = self.runs.now()
        return self.runs.journal.append_if(incident, first, events, lambda connection: self._hold(connection, now, ""))

    def intervention(self, incident: str) -> Intervention | None:
        """What a person wants of it, unasked."""
        return self.runs.journal.intervention(incident)

    def model_for(self, session: str) -> str:
        """The model that a person has put the session on."""
        return self.runs.journal.model_for(session)

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """What the journal remembers."""
        return self.runs.journal.suggest_rung(project, failure)

    # -- the lease ------------------------------------------------------------------------------------

    def __enter__(self) -> DurableRunLease:
        self._keeper = threading.Thread(target=self._keep, name=f"rung-lease-{self.run}", daemon=True)
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _keep(self) -> None:
        """Renew the lease while we work; when it is lost there is nothing to keep: writing will say so."""
        while not self._stop.wait(self.runs.lease / 3):
            try:
                self.renew()
            except LeaseLost:
                return
            except Exception:  # noqa: BLE001, S112  # a store in trouble: try again, the lease may last
                continue

    def renew(self) -> None:
        """Ours for another while."""
        now = self.runs.now()
        self.runs.journal.write(lambda connection: self._hold(connection, now, ""), lambda _: True).result()
