"""The conductor's writes: guarded replies to workers, its own row, processes, restarts and facts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.briefing import Briefing
from rung.core.crew.contract import CONDUCTOR, FALLBACK_PREFIX, RESERVED, TASK_ID_PATTERN, MessageType, TaskState
from rung.core.crew.pool import describe
from rung.core.domain.errors import ConfigError, is_number
from rung.store.crew.pools import POOL_FACT, TASK_POOL_FACT, parse_pool
from rung.store.crew.rows import EXCUSED_FACT, INSTRUCTION_FACT, ProcessRow, RestartRow, encode_columns, parse_list
from rung.store.crew.trigger_conditions import NOW_SQL
from rung.store.crew.worker_commands import WorkerCommands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.crew.pool import Pool
    from rung.store.crew.rows import NewTask, TaskRow

_TASK_ID: Final = re.compile(TASK_ID_PATTERN)
_LAST_EXCUSED_FACT: Final = "last_excused/"  # fact of the crew; the task id follows: number of its last excused error
_PROCESS_COLUMNS: Final = "session_id, task_id, launched_at, ended_at, exit_code, command, machine"


class ConductorCommands(WorkerCommands):
    """Write operations of the conductor."""

    def add_task(self, new: NewTask) -> None:
        """Add a task and its instruction message in one transaction."""
        _validate(new)
        columns = {
            "instruction_path": new.instruction_path or None,
            "stale_after": float(new.stale_after),
            **encode_columns(
                {
                    name: getattr(new, name)
                    for name in ("title", "depends_on", "priority", "command", "workdir", "writes")
                }
            ),
            **encode_columns({name: getattr(new, name) for name in ("plan_mark", "phase", "note", "checkpoints")}),
        }
        with self.signed_in():
            if self.task(new.task_id) is not None:
                raise ConfigError("task_id", new.task_id, "an id that no task of this crew has")
            self.connection.execute(
                f"INSERT INTO orchestration_tasks (task_id, state, {', '.join(columns)})"
                f" VALUES (?, 'watching'{', ?' * len(columns)})",
                [new.task_id, *columns.values()],
            )
            body = Briefing(task=new.task_id, instruction=new.instruction, instruction_path=new.instruction_path).body()
            self._insert_message(new.task_id, CONDUCTOR, body, MessageType.INSTRUCTION)
            if new.instruction:
                self._upsert_fact(INSTRUCTION_FACT + new.task_id, new.instruction)
            if new.pool:
                self._upsert_fact(TASK_POOL_FACT + new.task_id, new.pool)

    def reply(
        self, task: TaskRow, to: TaskState, body: str, type: MessageType, *, briefing: str = "",  # noqa: A002  # the column is message_type
        sender: str = CONDUCTOR, excuse: bool = False, **columns: Any,
    ) -> bool:  # fmt: skip
        """Post a message and change the task's state; return False, without a write, if the task changed since it was read.

        `briefing` is an instruction for the next worker, posted before the message. `excuse` takes back the count of
        the task's last error: it was its pool's.
        """
        values = encode_columns(columns)
        names = "".join(f", {name} = ?" for name in values)
        with self.signed_in():
            moved = self.connection.execute(
                f"UPDATE orchestration_tasks SET state = ?{names}"
                " WHERE task_id = ? AND state = ? AND generation = ? RETURNING task_id",
                [to, *values.values(), task.task_id, task.state, task.generation],
            )
            if moved and briefing:
                self._insert_message(task.task_id, CONDUCTOR, briefing, MessageType.INSTRUCTION)
            if moved and body:
                self._insert_message(task.task_id, sender, body, type)
            if moved and excuse:
                excused = self.get_fact(EXCUSED_FACT + task.task_id) or "0"
                self._upsert_fact(EXCUSED_FACT + task.task_id, str(int(excused) + 1))
        return bool(moved)

    def excuse_error(self, task: TaskRow) -> None:
        """Take back the count of the task's last error, once: no correction was spent on it."""
        with self.signed_in():
            excused = int(self.get_fact(EXCUSED_FACT + task.task_id) or "0")
            number = str(task.error_tries + excused)  # of the error, over the task's life
            if task.error_tries and self.get_fact(_LAST_EXCUSED_FACT + task.task_id) != number:
                self._upsert_fact(_LAST_EXCUSED_FACT + task.task_id, number)
                self._upsert_fact(EXCUSED_FACT + task.task_id, str(excused + 1))
                self.connection.execute(
                    "UPDATE orchestration_tasks SET retry_count = retry_count - 1"
                    " WHERE task_id = ? AND session_id = ? AND retry_count > 0",
                    [task.task_id, task.session_id],
                )

    def update_columns(self, task_id: str, **columns: Any) -> None:
        """Update columns other than the state."""
        values = encode_columns(columns)
        if values:
            names = ", ".join(f"{name} = ?" for name in values)
            self._write(f"UPDATE orchestration_tasks SET {names} WHERE task_id = ?", [*values.values(), task_id])

    def heartbeat_self(self, who: str, state: TaskState | None = None, *, session: str = "") -> None:
        """Write a heartbeat of the conductor or watchdog, optionally with a new state and session.

        A heartbeat of the conductor renews its lease.
        """
        if who not in RESERVED:
            raise ConfigError("who", who, f"one of {', '.join(RESERVED)}")
        with self.signed_in():
            self._beat(who, state, session)
            if who == CONDUCTOR and self._lease_seconds:
                self.connection.execute(
                    "UPDATE crew_lease SET expires = julianday('now') * 86400 + ?", [self._lease_seconds]
                )

    def _beat(self, who: str, state: TaskState | None = None, session: str = "") -> None:
        sets, values = [f"last_heartbeat = {NOW_SQL}"], list[Any]()
        if state is not None:
            sets, values = [*sets, "state = ?"], [*values, state]
        if session:
            sets, values = [*sets, "session_id = ?", f"started_at = {NOW_SQL}"], [*values, session]
        self.connection.execute(f"UPDATE orchestration_tasks SET {', '.join(sets)} WHERE task_id = ?", [*values, who])

    def delete_fallback(self, session: str) -> None:
        """Delete the fallback row of a blocked session."""
        self._write("DELETE FROM orchestration_tasks WHERE task_id = ?", [FALLBACK_PREFIX + session])

    # -- processes ------------------------------------------------------------------------------------

    def record_launch(self, session: str, task_id: str, command: Sequence[str] = (), *, machine: str = "") -> None:
        """Record a process before it is launched, so that a successor of this conductor, anywhere, knows about it."""
        self._write(
            f"INSERT INTO crew_processes ({_PROCESS_COLUMNS}) VALUES (?, ?, {NOW_SQL}, NULL, NULL, ?, ?)",
            [session, task_id, json.dumps(list(command)), machine],
        )

    def record_exit(self, session: str, exit_code: int | None = None) -> None:
        """Record the end of a process."""
        self._write(
            f"UPDATE crew_processes SET ended_at = {NOW_SQL}, exit_code = ? WHERE session_id = ? AND ended_at IS NULL",
            [exit_code, session],
        )

    def processes(self, *, alive_only: bool = True, task_id: str = "") -> list[ProcessRow]:
        """Return the recorded processes of one task or of all; by default only those without a recorded end."""
        conditions = [*(["ended_at IS NULL"] if alive_only else []), *(["task_id = ?"] if task_id else [])]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self.connection.execute(
            f"SELECT {_PROCESS_COLUMNS}, (julianday('now') - julianday(launched_at)) * 86400 FROM crew_processes {where}"
            " ORDER BY launched_at, session_id",
            [task_id] if task_id else [],
        )
        names = [*_PROCESS_COLUMNS.split(", "), "age"]
        return [ProcessRow(**dict(zip(names, row, strict=True)) | {"command": parse_list(row[5])}) for row in rows]

    # -- restarts and facts ---------------------------------------------------------------------------

    def record_restart(self, task_id: str, why: str) -> None:
        """Record a restart."""
        self._write(
            f"INSERT INTO crew_restarts (at, task_id, why) VALUES ({NOW_SQL}, ?, ?)",
            [task_id, why],
        )

    def restarts(self, since_seconds: float) -> list[RestartRow]:
        """Return the restarts of the last `since_seconds`, oldest first."""
        age = "(julianday('now') - julianday(at)) * 86400"
        rows = self.connection.execute(
            f"SELECT id, at, task_id, why, {age} FROM crew_restarts WHERE {age} <= ? ORDER BY id",
            [float(since_seconds)],
        )
        return [
            RestartRow(id=number, at=at, task_id=task, why=why, age=seconds) for number, at, task, why, seconds in rows
        ]

    def get_fact(self, name: str) -> str | None:
        """Return a stored fact about the crew, or None."""
        found = self.connection.execute("SELECT value FROM crew_facts WHERE name = ?", [name])
        return found[0][0] if found else None

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact about the crew."""
        with self.signed_in():
            self._upsert_fact(name, str(value))

    def change_pool(self, name: str, change: Callable[[Pool], Pool]) -> tuple[Pool, Pool]:
        """Read a pool, change it and store it, in one transaction. Return the pool before and after."""
        with self.signed_in():
            before = parse_pool(self.get_fact(POOL_FACT + name))
            after = change(before)
            if after != before:
                self._upsert_fact(POOL_FACT + name, json.dumps(after.to_json()))
            if describe(after) != describe(before) and not after.probe:
                body = f"POOL {name}: {describe(after) or 'open'}"
                self._insert_message(CONDUCTOR, CONDUCTOR, body, MessageType.SYSTEM)
        return before, after

    def set_task_pool(self, task_id: str, name: str) -> None:
        """Put a task into a pool; an empty name is the default pool."""
        if name != self.facts(TASK_POOL_FACT).get(task_id, ""):
            self.set_fact(TASK_POOL_FACT + task_id, name)

    def _upsert_fact(self, name: str, value: str) -> None:
        self.connection.execute(
            "INSERT INTO crew_facts (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value],
        )

    def _write(self, sql: str, values: Sequence[Any]) -> None:
        with self.signed_in():
            self.connection.execute(sql, values)


def _validate(new: NewTask) -> None:
    if not _TASK_ID.fullmatch(new.task_id) or new.task_id in RESERVED or new.task_id.startswith(FALLBACK_PREFIX):
        raise ConfigError(
            "task_id", new.task_id, "letters, digits, . _ and -, up to 100; not task-00, souffleur or fallback-…"
        )
    if new.pool and not _TASK_ID.fullmatch(new.pool):
        raise ConfigError("pool", new.pool, "letters, digits, . _ and -, up to 100")
    if not new.instruction.strip() and not new.instruction_path.strip():
        raise ConfigError("instruction", new.instruction, "a text (--body), or else the path of a file (--instruction)")
    if not is_number(new.stale_after, 1):
        raise ConfigError("stale_after", new.stale_after, "seconds, 1 or more")
