"""A worker that is none of ours: raw SQL, through Python's own SQLite module or psycopg.

In the tests' own process, which is no example to follow: two copies of SQLite in one process do not see each other's
locks. So it is used where nobody else writes meanwhile; who does, is a process of its own.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

OLD = "2020-01-01 00:00:00"  # a heartbeat that is stale


class Refused(Exception):
    """What the database said."""


class Stranger:
    """One connection; each statement is a transaction of its own, unless it begins one."""

    def __init__(self, place: str, key: str = "") -> None:
        self.key = key
        self.is_postgres = place.startswith("postgresql:")
        self.raw: Any = (
            psycopg.connect(place, autocommit=True)
            if self.is_postgres
            else sqlite3.connect(place, isolation_level=None, timeout=30)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.raw.close()

    def changed(self, sql: str) -> int:
        """Run a statement; how many rows it changed."""
        try:
            return int(self.raw.execute(sql).rowcount)
        except (sqlite3.Error, psycopg.Error) as error:
            raise Refused(str(error)) from error

    def says(self, task_id: str, session: str, kind: str) -> None:
        """Send a message, as a worker does before it reports."""
        self.changed(
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
            f" VALUES ('{task_id}', '{session}', 'it is so', '{kind}')"
        )

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query; its rows."""
        return [tuple(row) for row in self.raw.execute(sql).fetchall()]

    def row(self, task_id: str, columns: str) -> tuple[Any, ...]:
        """Columns of a task."""
        return self.asked(f"SELECT {columns} FROM orchestration_tasks WHERE task_id = '{task_id}'")[0]

    @contextmanager
    def conducts(self) -> Iterator[None]:
        """What is done here is done with the crew's key."""
        self.raw.execute("BEGIN")
        try:
            self.raw.execute(f"INSERT INTO crew_conductor (key) VALUES ('{self.key}')")
            yield
            self.raw.execute("DELETE FROM crew_conductor")
        except BaseException:
            self.raw.execute("ROLLBACK")
            raise
        self.raw.execute("COMMIT")

    @contextmanager
    def takes_back(self) -> Iterator[None]:
        """What is done here, with the crew's key if there is one, is not done in the end."""
        self.raw.execute("BEGIN")
        try:
            if self.key:
                self.raw.execute(f"INSERT INTO crew_conductor (key) VALUES ('{self.key}')")
            yield
        finally:
            self.raw.execute("ROLLBACK")

    def force(self, task_id: str, **columns: str) -> None:
        """Put a row into any condition, as if there were no rules."""
        sets = ", ".join(f"{name} = {value}" for name, value in columns.items())
        update = f"UPDATE orchestration_tasks SET {sets} WHERE task_id = '{task_id}'"
        if self.is_postgres:
            self.raw.execute("ALTER TABLE orchestration_tasks DISABLE TRIGGER USER")
            self.raw.execute(update)
            self.raw.execute("ALTER TABLE orchestration_tasks ENABLE TRIGGER USER")
            return
        triggers = self.asked("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        self.raw.execute("BEGIN IMMEDIATE")
        for name, _ in triggers:
            self.raw.execute(f"DROP TRIGGER {name}")
        self.raw.execute(update)
        for _, sql in triggers:
            self.raw.execute(sql)
        self.raw.execute("COMMIT")
