"""Processes that are killed between two statements of what they do."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import ClaimBlocked
from rung.store.crew.rows import NewTask, TaskLease
from rung.store.crew.table import CrewTable
from tests.store.crew.racer import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.store.crew.connection import CrewConnection

TASK = "task-01"
MINE = TaskLease(task_id=TASK, session="s1", generation=1)
WRITES: dict[str, Callable[[CrewTable], object]] = {
    "claim": lambda table: table.claim("task-02", "s2"),
    "blocked": lambda table: table.claim(TASK, "s2"),
    "error": lambda table: table.report_error(MINE, "boom"),
    "warn": lambda table: table.warn_context(MINE, "65 %"),
    "review": lambda table: table.request_review(MINE, "x", checkpoint=1),
    "hand off": lambda table: table.hand_off(MINE, "x"),
    "complete": lambda table: table.complete(MINE),
    "answer": lambda table: table.reply(table.require_task(TASK), TaskState.EXITED, "x", MessageType.SYSTEM),
    "add": lambda table: table.add_task(NewTask(task_id="task-03", instruction="x")),
}


class Killing:
    """A connection whose process dies before its nth statement, without a word to anybody."""

    def __init__(self, inner: CrewConnection, statements: int) -> None:
        self.inner = inner
        self.url = inner.url
        self.left = statements

    def _count(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def verify(self, *, full: bool = False) -> None:
        self.inner.verify(full=full)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._count()
        return self.inner.execute(sql, values)

    def begin(self) -> None:
        self._count()
        self.inner.begin()

    def commit(self) -> None:
        self._count()
        self.inner.commit()

    def rollback(self) -> None:
        self.inner.rollback()

    def close(self) -> None:
        self.inner.close()


def main(place: str, write: str) -> None:
    """Before the first statement, before the second …: a child of its own for each, until one lives to its end."""
    for statements in count():
        child = os.fork()  # nothing is open yet: what it opens is its own
        if child == 0:
            table = CrewTable.open(place)
            table.connection = Killing(table.connection, statements)
            with suppress(ClaimBlocked):
                WRITES[write](table)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say("done" if os.waitstatus_to_exitcode(status) == 0 else f"killed {os.waitstatus_to_exitcode(status)}")
        if not status or not sys.stdin.readline():
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
