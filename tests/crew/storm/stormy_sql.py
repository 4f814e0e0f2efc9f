"""A storm's worker that knows nothing but the SQL of the documents: Python's own SQLite, or psycopg."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.crew.storm.stormy_notes import Notes

POLL = 0.1
ANSWERED = ("review_approved", "review_failed", "fix_proposed")
OUTAGE_SECONDS = 30.0  # of a server that is waited for


class Gone(Exception):
    """The task has another owner, or the worker has handed it over."""


class SqlWay:
    """A task's lease, with statements only."""

    def __init__(self, notes: Notes) -> None:
        self.notes, self.task, self.session = notes, os.environ["RUNG_TASK"], os.environ["RUNG_SESSION"]
        self.place = os.environ["RUNG_CREW"]
        self.connection: Any = None
        self.text, self.generation = "", 0

    def __enter__(self) -> SqlWay:
        self.run(
            "UPDATE orchestration_tasks SET state = 'working', session_id = ?, worked_by = ?, started_at = datetime('now'),"
            " last_heartbeat = datetime('now'), retry_count = 0"
            " WHERE task_id = ? AND state IN ('watching', 'fix_proposed', 'exit_requested')",
            self.session, f"sql-{self.task}", self.task,
        )  # fmt: skip
        found = self.run(
            "SELECT generation, instruction_path FROM orchestration_tasks WHERE task_id = ? AND session_id = ? AND state = 'working'",
            self.task, self.session,
        )  # fmt: skip
        if not found:
            raise Gone("claim blocked")
        self.generation = found[0][0]
        given = self.run(
            "SELECT message FROM orchestration_messages WHERE task_id = ? AND message_type = 'instruction' ORDER BY id DESC LIMIT 1",
            self.task,
        )
        self.text = given[0][0] if given else ""
        if found[0][1]:
            with open(found[0][1], encoding="utf-8") as file:  # noqa: PTH123  # standard library only
                self.text += "\n" + file.read()
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def run(self, *statement: Any) -> list[Any]:
        """Run one statement; return its rows."""
        return self.transact(statement)

    def transact(self, *statements: Any) -> list[Any]:
        """Run statements in one transaction. A server that restarts is waited for."""
        until = time.monotonic() + OUTAGE_SECONDS
        while True:
            try:
                return self._transact(statements)
            except Exception as error:
                if type(error).__name__ not in ("OperationalError", "AdminShutdown") or time.monotonic() > until:
                    raise
                self.connection = None
                time.sleep(0.2)

    def _transact(self, statements: Any) -> list[Any]:
        connection, is_server = self._connected(), "://" in self.place
        connection.execute("BEGIN" if is_server else "BEGIN IMMEDIATE")
        try:
            rows: list[Any] = []
            for sql, *values in statements:
                cursor = connection.execute(sql.replace("?", "%s") if is_server else sql, values)
                rows = cursor.fetchall() if cursor.description else [cursor.rowcount] * max(0, cursor.rowcount)
            connection.execute("COMMIT")
        except Exception:
            try:
                connection.execute("ROLLBACK")
            except Exception:  # the connection is gone
                self.connection = None
            raise
        return rows

    def _connected(self) -> Any:
        if self.connection is None and "://" in self.place:
            import psycopg

            self.connection = psycopg.connect(self.place, autocommit=True)
        elif self.connection is None:
            self.connection = sqlite3.connect(self.place, timeout=30, isolation_level=None)
        return self.connection

    def beat(self, progress: str) -> None:
        if not self.run(
            "UPDATE orchestration_tasks SET last_heartbeat = datetime('now'), progress = ? WHERE task_id = ? AND session_id = ?"
            " AND state NOT IN ('exited', 'complete')",
            progress, self.task, self.session,
        ):  # fmt: skip
            raise Gone("the task has another owner")

    def _say(self, kind: str, body: str, state: str, sets: str = "", *values: Any) -> None:
        self._guard(
            (
                "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES (?, ?, ?, ?)",
                self.task, self.session, body, kind,
            ),
            (
                f"UPDATE orchestration_tasks SET state = '{state}'{sets}, last_heartbeat = datetime('now') WHERE task_id = ?",
                *values, self.task,
            ),
        )  # fmt: skip
        self.notes.sent(kind, body)

    def _guard(self, *statements: Any) -> None:
        try:
            self.transact(*statements)
        except Exception as error:
            raise Gone(f"refused: {error}") from None

    def error(self, text: str) -> None:
        body = f"ERROR (Retry 1/5):\nError: {text}\nReport: none"
        self._say("error", body, "error", ", retry_count = retry_count + 1, last_error = ?", text)
        self.answer()

    def warn(self, body: str) -> None:
        self._say("context_warning", body, "error", ", last_error = 'context_exhaustion_warning'")
        self.answer()

    def review(self, body: str, checkpoint: int) -> str:  # the number is in the text
        self._say("review_request", body, "needs_review")
        return self.answer()

    def answer(self) -> str:
        """Wait for the conductor's answer, and continue."""
        while True:
            rows = self.run("SELECT state, session_id FROM orchestration_tasks WHERE task_id = ?", self.task)
            state, session = rows[0]
            if session != self.session or state in ("exited", "complete"):
                raise Gone("the task has another owner")
            if state == "exit_requested":
                self.hand_off(f"HANDOFF: asked to stop\nDone: the walls of {self.task} ({self.notes.number}).")
                raise Gone("asked to stop")
            if state in ANSWERED:
                sql = (
                    "UPDATE orchestration_tasks SET state = 'working', last_heartbeat = datetime('now')"
                    " WHERE task_id = ? AND session_id = ?"
                )
                self._guard((sql, self.task, self.session))
                return str(state)
            self.beat("")
            time.sleep(POLL)

    def complete(self) -> None:
        self._say("completion", "TASK COMPLETE", "complete", ", completed_at = datetime('now')")

    def hand_off(self, body: str) -> None:
        self._say("handoff", body, "exited")

    def owner(self) -> dict[str, Any]:
        """Return the task's state, and whether this worker still has it."""
        self.connection = None  # the signal may have come in the middle of a statement
        state, session, note = self.run(
            "SELECT state, session_id, note FROM orchestration_tasks WHERE task_id = ?", self.task
        )[0]
        return {"state": state, "note": note or "", "mine": session == self.session, "session": self.session}

    def break_rules(self) -> None:
        """Break none: the library's worker tries them all."""
