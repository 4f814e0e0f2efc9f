"""Crew of the demo: a script plays the conductor and the workers on a real crew database."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import ASKS_PREFIX, CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.domain.errors import RungError
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    import threading
    from pathlib import Path
    from random import Random

    from rung.store.crew.rows import TaskLease, TaskRow

MAX_WORKERS: Final = 4
STEPS_PER_TASK: Final = 8
MAX_TASKS: Final = 120  # afterwards the crew is idle
TURN_SECONDS: Final = 1.5
TITLES: Final = (
    "Read the old importer",
    "List what the new format cannot say",
    "Write the reader",
    "Write the writer",
    "Round-trip a thousand files",
    "Move the command line over",
    "Bring the documentation up to date",
    "Measure both on the large file",
    "Take the old one out",
)
ERRORS: Final = (
    "2 failed, 41 passed: test_rounding, test_refund",
    "FileNotFoundError: fixtures/large.bin",
    "ImportError: cannot import name 'Reader'",
)
QUESTIONS: Final = (
    "the two formats disagree about empty fields: which one is right?",
    "may the old importer be deleted?",
)


class DemoCrew:
    """A scripted conductor with its workers. Replies from the dashboard take effect."""

    def __init__(self, path: Path, random: Random) -> None:
        self.path = str(path)
        self._random = random
        self._claims: dict[str, TaskLease] = {}
        self._steps: dict[str, int] = {}
        self._added = 0
        with CrewTable.open(self.path, create=True) as table:
            self._add(table)

    def play(self, ended: threading.Event) -> None:
        """Run until the demo ends."""
        with CrewTable.open(self.path) as table:
            table.heartbeat_self(WATCHDOG, TaskState.CONFIRMED)
            while not ended.wait(TURN_SECONDS):
                with suppress(RungError):  # an operator was quicker, or the database is locked
                    self.turn(table)

    def turn(self, table: CrewTable) -> None:
        """Run one poll of the conductor and one step of each worker."""
        for name in (CONDUCTOR, WATCHDOG):
            table.heartbeat_self(name)
        open_ = table.tasks(*(state for state in TaskState if state is not TaskState.COMPLETE))
        if not any(row.state is TaskState.WATCHING for row in open_) and self._added < MAX_TASKS:
            self._add(table)
        for row in open_:
            if row.state in (TaskState.ERROR, TaskState.NEEDS_REVIEW):
                self._answer(table, row)
            elif row.task_id in self._claims:
                with suppress(RungError):
                    self._step(table, self._claims[row.task_id], row)
            elif row.state is TaskState.EXITED and not row.outcome:
                table.update_columns(row.task_id, outcome="escalated", note="stopped by an operator")
        at_work = sum(row.state not in (TaskState.WATCHING, TaskState.EXITED) for row in open_)
        if (
            at_work < MAX_WORKERS
            and (claim := table.claim_next(f"demo-{self._random.getrandbits(32):08x}")) is not None
        ):
            self._claims[claim.task_id], self._steps[claim.task_id] = claim, 0

    def _step(self, table: CrewTable, claim: TaskLease, row: TaskRow) -> None:
        if (row.session_id, row.generation) != (claim.session, claim.generation) or row.state is TaskState.EXITED:
            del self._claims[row.task_id]
            return
        done = self._steps[row.task_id] = self._steps[row.task_id] + 1
        if row.state is TaskState.REVIEW_APPROVED:
            table.complete(claim, "TASK COMPLETE")
            del self._claims[row.task_id]
        elif done > STEPS_PER_TASK:
            table.request_review(claim, "Summary: done as asked\nTests: 43 passed", checkpoint=1)
        elif self._random.random() < 0.08:  # noqa: PLR2004  # share of steps that fail
            table.report_error(claim, self._random.choice(ERRORS))
        else:
            if row.state is not TaskState.WORKING:
                table.resume(claim)
            table.heartbeat(claim, progress=f"step {done} of {STEPS_PER_TASK}")

    def _answer(self, table: CrewTable, row: TaskRow) -> None:
        """Answer as the conductor does; sometimes only an operator can."""
        if row.needs_person or self._random.random() < 0.6:  # noqa: PLR2004  # so that replies take some polls
            return
        asking = len([one for one in table.tasks(TaskState.ERROR, TaskState.NEEDS_REVIEW) if one.needs_person])
        if asking < len(QUESTIONS) and self._random.random() < 0.25:  # noqa: PLR2004  # share of the answers
            table.update_columns(row.task_id, note=f"{ASKS_PREFIX} {QUESTIONS[asking]}")
        elif row.state is TaskState.ERROR:
            body = f"FIX PROPOSAL\nRoot cause: {row.last_error}\nFix: look at what changed last, and undo it"
            table.reply(row, TaskState.FIX_PROPOSED, body, MessageType.FIX_PROPOSAL)
        else:
            table.reply(row, TaskState.REVIEW_APPROVED, "APPROVED: it does what was asked", MessageType.APPROVAL)

    def _add(self, table: CrewTable) -> None:
        first = self._added
        for title in TITLES:
            self._added += 1
            before = (f"task-{self._added - 1:02}",) if self._added - first in (2, 5, 9) else ()
            table.add_task(NewTask(task_id=f"task-{self._added:02}", title=title, instruction=title, depends_on=before))
