"""Queries of a crew's table that workers, the conductor and the operator share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import FALLBACK_PREFIX, MessageType, TaskState
from rung.core.domain.errors import ConfigError
from rung.store.crew.rows import IS_WORKER_SQL, SELECT_TASK, CrewMessageRow, TaskRow, task_from_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.crew.connection import CrewConnection

_ORDER: Final = "ORDER BY priority DESC, task_id"


class CrewQueries:
    """Read operations common to all roles."""

    connection: CrewConnection

    def task(self, task_id: str) -> TaskRow | None:
        """Return one row of any kind, or None."""
        rows = self.connection.execute(f"{SELECT_TASK} WHERE task_id = ?", [task_id])
        return task_from_row(rows[0]) if rows else None

    def require_task(self, task_id: str) -> TaskRow:
        """Return a worker task; raise ConfigError if there is none."""
        rows = self.connection.execute(f"{SELECT_TASK} WHERE task_id = ? AND {IS_WORKER_SQL}", [task_id])
        if not rows:
            raise ConfigError("task", task_id, f"a task of this crew: {self._sample_ids()}")
        return task_from_row(rows[0])

    def _sample_ids(self) -> str:
        names = self.connection.execute(
            f"SELECT task_id FROM orchestration_tasks WHERE {IS_WORKER_SQL} ORDER BY task_id LIMIT 6"
        )
        return (", ".join(name for (name,) in names[:5]) or "none yet") + (" …" if len(names) > 5 else "")  # noqa: PLR2004  # one more than shown is read, to know whether there are more

    def tasks(self, *states: TaskState) -> list[TaskRow]:
        """Return the worker tasks in these states, or in any state; highest priority first."""
        condition = f" AND state IN ({_placeholders(states)})" if states else ""
        return self._tasks(f"{IS_WORKER_SQL}{condition}", states)

    def fallbacks(self) -> list[TaskRow]:
        """Return the fallback rows of blocked sessions."""
        return self._tasks("substr(task_id, 1, 9) = ?", [FALLBACK_PREFIX])

    def _tasks(self, where: str, values: Sequence[Any]) -> list[TaskRow]:
        return [task_from_row(row) for row in self.connection.execute(f"{SELECT_TASK} WHERE {where} {_ORDER}", values)]

    def counts(self) -> dict[TaskState, int]:
        """Return the number of worker tasks in each state, including states without tasks."""
        sql = f"SELECT state, count(*) FROM orchestration_tasks WHERE {IS_WORKER_SQL} GROUP BY state"
        return dict.fromkeys(TaskState, 0) | {
            TaskState(state): number for state, number in self.connection.execute(sql)
        }

    def messages(
        self, task_id: str | None = None, *, after: int = 0, types: Sequence[MessageType] = ()
    ) -> list[CrewMessageRow]:
        """Return messages in order, after the message with id `after`."""
        sql = "SELECT id, task_id, from_session, message, message_type, timestamp FROM orchestration_messages WHERE id > ?"
        values: list[Any] = [after]
        if task_id is not None:
            sql, values = f"{sql} AND task_id = ?", [*values, task_id]
        if types:
            sql, values = f"{sql} AND message_type IN ({_placeholders(types)})", [*values, *types]
        return [
            CrewMessageRow(
                id=number,
                task_id=about or "",
                from_session=sender or "",
                message=body or "",
                message_type=MessageType(kind),
                timestamp=when or "",
            )
            for number, about, sender, body, kind, when in self.connection.execute(f"{sql} ORDER BY id", values)
        ]

    def last_message_id(self) -> int:
        """Return the id of the newest message; 0 if there is none."""
        ((number,),) = self.connection.execute("SELECT coalesce(max(id), 0) FROM orchestration_messages")
        return int(number)


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
