"""A storm's worker that uses the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import MessageType
from rung.core.domain.errors import IllegalTransition, LeaseExpired, RungError, StopRequested, StoreError
from rung.crew.instruction_file import full_instructions
from rung.store.crew.worker import CrewWorker
from tests.crew.storm.stormy_sql import Gone

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.crew.storm.stormy_notes import Notes

BEAT = 0.5
POLL = 0.1


class LibraryWay:
    """A task's lease through `CrewWorker`."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.worker = CrewWorker.launched(beat_every=BEAT)

    def __enter__(self) -> Self:
        try:
            self.worker.__enter__()
        except RungError as error:
            raise Gone(str(error)) from None
        table = self.worker.table
        self.text = full_instructions(table, table.require_task(self.worker.task_id))
        self.generation, self.session = self.worker.claim.generation, self.worker.session
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.worker.__exit__(kind, error, trace)
        return isinstance(error, StopRequested | LeaseExpired)

    def beat(self, progress: str) -> None:
        self.worker.beat(progress)

    def error(self, text: str) -> None:
        self.worker.error(text, body=f"ERROR:\nError: {text}")
        self.notes.sent(MessageType.ERROR, text)
        self.worker.wait_for_answer(poll=POLL)

    def warn(self, body: str) -> None:
        self.worker.warn_context(body)
        self.notes.sent(MessageType.CONTEXT_WARNING, body)
        self.worker.wait_for_answer(poll=POLL)

    def review(self, body: str, checkpoint: int) -> str:
        self.worker.review(body, checkpoint=checkpoint)
        self.notes.sent(MessageType.REVIEW_REQUEST, body)
        return str(self.worker.wait_for_answer(poll=POLL).state)

    def complete(self) -> None:
        self.worker.complete("TASK COMPLETE")
        self.notes.sent(MessageType.COMPLETION, "TASK COMPLETE")

    def hand_off(self, body: str) -> None:
        self.worker.hand_off(body)
        self.notes.sent(MessageType.HANDOFF, body)

    def owner(self) -> dict[str, Any]:
        """Return the task's state, and whether this worker still has it."""
        with self.worker.table.clone() as table:
            row = table.require_task(self.worker.task_id)
        mine = (row.session_id, row.generation) == (self.session, self.generation)
        return {"state": row.state, "note": row.note, "mine": mine, "session": self.session}

    def break_rules(self) -> None:
        """Try writes that the database must refuse."""
        other = "task-02" if self.worker.task_id == "task-01" else "task-01"
        for wrong, values in (
            ("UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = ?", [self.worker.task_id]),
            ("UPDATE orchestration_tasks SET state = 'review_approved' WHERE task_id = ?", [self.worker.task_id]),
            ("DELETE FROM orchestration_tasks WHERE task_id = ?", [self.worker.task_id]),
            ("UPDATE orchestration_tasks SET error_tries = 0, generation = 0 WHERE task_id = ?", [self.worker.task_id]),
            ("UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = ?", ["task-00"]),
            (
                "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES (?, ?, ?, ?)",
                [other, self.session, "forged", "completion"],
            ),
            (
                "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES (?, ?, ?, ?)",
                [self.worker.task_id, "task-00", "forged", "approval"],
            ),
        ):
            try:
                self.worker.table.connection.execute(wrong, values)
            except (IllegalTransition, StoreError):
                continue
            self.notes.ended(state="", mine=False, accepted=wrong)
