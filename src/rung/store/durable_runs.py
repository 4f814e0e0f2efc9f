"""Durable runs: one process owns a run by a lease with a fencing token (`epoch`); finished steps never run again."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import RunOwnedElsewhere
from rung.core.policy.executor_health import MAX_TAKEOVERS
from rung.engine.process_identity import current_owner, is_gone
from rung.store import messages
from rung.store.messages import as_json
from rung.store.run_lease import DurableRunLease, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.store.backends.port import BackendConnection, DurableEventLog
    from rung.store.sealing import JournalKey

LEASE_SECONDS: Final = 30.0
NO_LEASE: Final = 0.0  # of a run that was submitted or released
MAX_IDLE_CLAIMS: Final = MAX_TAKEOVERS  # claims without a new step between them: the run probably crashes its workers


class RunRow(NamedTuple):
    """Run as stored; `result` is None while it is open."""

    id: str
    task: str
    arguments: Any
    result: Any
    owned: bool


class OpenRunRow(NamedTuple):
    """Run that has not ended."""

    id: str
    task: str
    stored_arguments: str
    owned: bool
    made_at: float
    touched_at: float
    key: JournalKey

    @property
    def arguments(self) -> Any:
        """Arguments of its task; raises SealedElsewhere if they are sealed under another key."""
        return json.loads(self.key.reveal(self.stored_arguments, place_of(self.id, "arguments")))


class ClaimedRun(NamedTuple):
    """Run of a task that this process has become the owner of."""

    lease: DurableRunLease
    task: str
    arguments: Any


class ListedRun(NamedTuple):
    """Run in a listing: `status` is None while it is open, `owner` empty if no live process owns it."""

    id: str
    task: str
    status: str | None
    owner: str
    made_at: float


class DurableRunStore:
    """Durable runs of a journal."""

    def __init__(
        self,
        journal: DurableEventLog,
        *,
        lease: float = LEASE_SECONDS,
        now: Callable[[], float] = time.time,
        owner: Callable[[], str] = lambda: current_owner().text(),
    ) -> None:
        self.owner = owner
        self.journal = journal
        self.key = journal.key
        self.lease = lease
        self.now = now

    def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
        """Become the owner of a new or abandoned run; raise RunOwnedElsewhere when a live process owns it."""
        mine, expires_at = self.owner(), self.now() + self.lease
        encoded = self._encoded_arguments(run, task, arguments)

        epoch = 0

        def work(connection: BackendConnection) -> tuple[int, str, str, int]:
            nonlocal epoch
            claimed = self._claim(connection, run, task, encoded, mine)
            epoch = claimed[0]
            return claimed

        def present(connection: BackendConnection) -> bool:
            """An earlier claim of this process is another epoch, which somebody else may get."""
            found = connection.execute("SELECT 1 FROM run WHERE id = ? AND owner = ? AND epoch = ?", (run, mine, epoch))
            return bool(found)

        epoch, state, result, idle = self.journal.write(work, present).result()
        done = self._result(run, result) if state == "done" else None
        exhausted = idle > MAX_IDLE_CLAIMS
        return DurableRunLease(self, run, epoch, done=done, exhausted=exhausted, expires_at=expires_at)

    def _encoded_arguments(self, run: str, task: str, arguments: Any) -> str:
        return self.key.protect(as_json(arguments, f"the arguments of {task or run}"), place_of(run, "arguments"))

    def _result(self, run: str, stored: str) -> Any:
        return json.loads(self.key.reveal(stored, place_of(run, "result")))

    def _claim(
        self, connection: BackendConnection, run: str, task: str, encoded: str, mine: str
    ) -> tuple[int, str, str, int]:
        now = self.now()
        rows = connection.execute("SELECT epoch, state, result, owner, lease, idle FROM run WHERE id = ?", (run,))
        if not rows:
            connection.execute(
                "INSERT INTO run (id, task, arguments, state, result, epoch, owner, lease, idle, made_at, touched_at)"
                " VALUES (?, ?, ?, 'open', '', 1, ?, ?, 1, ?, ?)",
                (run, task, encoded, mine, now + self.lease, now, now),
            )
            return 1, "open", "", 1
        ((epoch, state, result, owner, lease, idle),) = rows
        if state == "done":
            return epoch, state, result, idle
        if owner and now < lease and not is_gone(owner):
            raise RunOwnedElsewhere(run, "this process already runs it" if owner == mine else "another process runs it")
        connection.execute(
            "UPDATE run SET epoch = ?, owner = ?, lease = ?, idle = ?, touched_at = ? WHERE id = ?",
            (epoch + 1, mine, now + self.lease, idle + 1, now, run),
        )
        return epoch + 1, state, result, idle + 1

    def submit(self, run: str, task: str, arguments: Any) -> bool:
        """Create an unowned run for any worker to claim; return False when the id exists."""
        encoded, now = self._encoded_arguments(run, task, arguments), self.now()

        def work(connection: BackendConnection) -> bool:
            if connection.execute("SELECT 1 FROM run WHERE id = ?", (run,)):
                return False
            connection.execute(
                "INSERT INTO run (id, task, arguments, state, result, epoch, owner, lease, idle, made_at, touched_at)"
                " VALUES (?, ?, ?, 'open', '', 0, '', 0, 0, ?, ?)",
                (run, task, encoded, now, now),
            )
            return True

        return self.journal.write(
            work, lambda connection: bool(connection.execute("SELECT 1 FROM run WHERE id = ?", (run,)))
        ).result()

    def claim_next(self, tasks: Sequence[str], *, takes_expired: bool = True) -> ClaimedRun | None:
        """Become the owner of the oldest run of these tasks that no live process owns; None when there is none.

        Without `takes_expired`, an expired lease is no proof of death: nobody could renew one while the database was away.
        """
        if not tasks:
            return None
        mine, expires_at = self.owner(), self.now() + self.lease

        def work(connection: BackendConnection) -> tuple[str, str, str, int, int] | None:
            found = self._find_claimable(connection, tasks, takes_expired=takes_expired)
            if found is None:
                return None
            run, task, arguments = found
            epoch, _, _, idle = self._claim(connection, run, task, arguments, mine)
            return run, task, arguments, epoch, idle

        claimed = self.journal.write(work, lambda _: False).result()
        if claimed is None:
            return None
        run, task, arguments, epoch, idle = claimed
        exhausted = idle > MAX_IDLE_CLAIMS
        lease = DurableRunLease(self, run, epoch, done=None, exhausted=exhausted, expires_at=expires_at)
        return ClaimedRun(lease, task, json.loads(self.key.reveal(arguments, place_of(run, "arguments"))))

    def _find_claimable(
        self, connection: BackendConnection, tasks: Sequence[str], *, takes_expired: bool
    ) -> tuple[str, str, str] | None:
        """Return the oldest run without an owner; else one whose owner's lease has expired, or who is gone from here."""
        marks = ", ".join("?" * len(tasks))
        columns = f"SELECT id, task, arguments, owner FROM run WHERE state = 'open' AND task IN ({marks})"  # noqa: S608  # placeholders alone
        until = self.now() if takes_expired else NO_LEASE
        free = connection.execute(f"{columns} AND lease <= ? ORDER BY made_at, id LIMIT 1", (*tasks, until))
        if free:
            return free[0][:3]
        held = connection.execute(f"{columns} AND owner <> '' ORDER BY made_at, id", tuple(tasks))
        owners = {owner for _, _, _, owner in held}
        gone = {owner for owner in owners if is_gone(owner)}
        return next(((run, task, arguments) for run, task, arguments, owner in held if owner in gone), None)

    def cancel(self, run: str, reason: str) -> bool | None:
        """End an open run, whoever owns it: its owner's next write raises LeaseLost. None when it does not exist."""
        plain, now = json.dumps({"status": "cancelled", "reason": reason}), self.now()
        encoded = self.key.protect(plain, place_of(run, "result"))

        def work(connection: BackendConnection) -> bool | None:
            rows = connection.execute("SELECT state FROM run WHERE id = ?", (run,))
            if not rows:
                return None
            ended = connection.execute(
                "UPDATE run SET state = 'done', result = ?, epoch = epoch + 1, owner = '', touched_at = ?"
                " WHERE id = ? AND state = 'open' RETURNING 1",
                (encoded, now, run),
            )
            return bool(ended)

        return self.journal.write(work, lambda _: False).result()

    def list_runs(self, task: str, limit: int, *, is_open: bool | None = None) -> list[ListedRun]:
        """Return runs of a task (empty: of all tasks; recoveries are left out), the newest first; all, open or ended ones."""
        condition, values = ("task = ?", [task]) if task else ("task <> ''", [])
        if is_open is not None:
            condition += f" AND state = '{'open' if is_open else 'done'}'"
        rows = self.journal.read(
            f"SELECT id, task, state, result, owner, lease, made_at FROM run WHERE {condition}"  # noqa: S608  # constants
            " ORDER BY made_at DESC, id DESC LIMIT ?",
            [*values, limit],
        )
        now = self.now()
        return [
            ListedRun(
                run,
                of_task,
                str(self._result(run, result)["status"]) if state == "done" else None,
                owner if owner and now < lease and not is_gone(owner) else "",
                made_at,
            )
            for run, of_task, state, result, owner, lease, made_at in rows
        ]

    def result_of(self, run: str) -> Any:
        """Return the result of an ended run without claiming it; None when it is open or does not exist."""
        rows = self.journal.read("SELECT result FROM run WHERE id = ? AND state = 'done'", (run,))
        return self._result(run, rows[0][0]) if rows else None

    def find(self, run: str) -> RunRow | None:
        """Return a run without claiming it; None when it does not exist."""
        rows = self.journal.read("SELECT task, arguments, state, result, owner, lease FROM run WHERE id = ?", (run,))
        if not rows:
            return None
        ((task, arguments, state, result, owner, lease),) = rows
        owned = bool(owner) and self.now() < lease and not is_gone(owner)
        arguments = json.loads(self.key.reveal(arguments, place_of(run, "arguments")))
        return RunRow(run, task, arguments, self._result(run, result) if state == "done" else None, owned)

    def is_owned(self, run: str) -> bool | None:
        """Return whether a live process runs an open run; None when there is no such run. Reads no sealed content."""
        rows = self.journal.read("SELECT owner, lease FROM run WHERE id = ? AND state = 'open'", (run,))
        return next((bool(owner) and self.now() < lease and not is_gone(owner) for owner, lease in rows), None)

    def ids_below(self, name: str) -> list[str]:
        """Return the ids of the runs that start with this name and a slash."""
        prefix = f"{name}/"
        rows = self.journal.read(
            "SELECT id FROM run WHERE substr(id, 1, ?) = ? ORDER BY made_at", (len(prefix), prefix)
        )
        return [run for (run,) in rows]

    def step_keys(self, run: str) -> set[str]:
        """Return the keys of the recorded steps of a run."""
        return {str(key) for (key,) in self.journal.read("SELECT key FROM step WHERE run = ?", (run,))}

    def step(self, run: str, key: str) -> Any:
        """Return the result of a recorded step without claiming the run; None when there is none."""
        rows = self.journal.read("SELECT result FROM step WHERE run = ? AND key = ?", (run, key))
        return json.loads(self.key.reveal(rows[0][0], place_of(run, f"step {key}"))) if rows else None

    def open_runs(self) -> list[OpenRunRow]:
        """Return the runs that have not ended; `owned` means that a live process runs it."""
        now = self.now()
        rows = self.journal.read(
            "SELECT id, task, arguments, owner, lease, made_at, touched_at FROM run WHERE state = 'open' ORDER BY made_at"
        )
        return [
            OpenRunRow(
                run, task, arguments, bool(owner) and now < lease and not is_gone(owner), made, touched, self.key
            )
            for run, task, arguments, owner, lease, made, touched in rows
        ]

    def send(self, topic: str, body: Any) -> None:
        """Send a message to a topic; it replaces an earlier one."""
        messages.send(self.journal, topic, body, self.now())

    def received(self, topic: str) -> Any:
        """Return the last message of a topic; None when there is none."""
        return messages.latest(self.journal, topic)
