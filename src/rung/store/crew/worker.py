"""Crew worker for Python: claims a task, sends heartbeats while it works, and hands the task off if it fails."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from rung.core.crew.contract import ANSWER_MESSAGES, CONDUCTOR, HEARTBEAT_SECONDS, MessageType, TaskState
from rung.core.crew.handoff import ArtifactPresence, Handoff, Resumption, compare_with_table, handoff_kind
from rung.core.domain.errors import (
    ConfigError,
    LeaseExpired,
    NoTaskAvailable,
    RungError,
    StopRequested,
    StoreUnavailable,
)
from rung.store.crew.briefing import worker_instructions
from rung.store.crew.table import CrewTable
from rung.store.crew.table_patience import MAX_PAUSE_SECONDS, WORKER_PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from rung.store.crew.rows import CrewMessageRow, TaskLease

AWAITING_REPLY: Final = (TaskState.ERROR, TaskState.NEEDS_REVIEW)
POLL_SECONDS: Final = 2.0
TABLE_VARIABLE, TASK_VARIABLE, SESSION_VARIABLE = (
    "RUNG_CREW",
    "RUNG_TASK",
    "RUNG_SESSION",
)  # environment variables of a launched worker
GENERATION_VARIABLE: Final = "RUNG_GENERATION"  # of the command of `rung worker run`


class ConductorReply(NamedTuple):
    """The conductor's decision and its message."""

    state: TaskState
    text: str


class CrewWorker:
    """A worker that owns one task of a crew.

    Use it in a `with` block, in the thread that created it; a background thread sends heartbeats. Leaving the block without
    `complete` or `hand_off`, with or without an exception, hands the task off with the reason.

    Args:
        location: Path or `postgresql://` URL of the crew's table.
        task: Id of the task. Default: the next one that can be claimed.
        session: Name of the session. Default: a new one.
        worked_by: Who works: a model or an agent. Default: unknown.
        beat_every: Seconds between heartbeats.

    Raises:
        NoTaskAvailable: No task can be claimed.
        ClaimBlocked: This task cannot be claimed.

    Example:
        ```python
        with rung.crew.CrewWorker("crew.db", "task-01") as worker:
            worker.beat("read the code")
            worker.review("CHECKPOINT 1: …", checkpoint=1)
            if worker.wait_for_answer().state == "review_approved":
                worker.complete("TASK COMPLETE")
        ```
    """

    def __init__(
        self,
        location: str,
        task: str | None = None,
        *,
        session: str = "",
        worked_by: str = "",
        beat_every: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.session = session or f"worker-{uuid4().hex[:12]}"
        self.notes: list[str] = []  # completed work, for the handoff to a successor
        self._location = location
        self._task_id = task
        self._worked_by = worked_by
        self._heartbeat_seconds = beat_every
        self._finished = threading.Event()
        self._pending_error: RungError | None = None
        self._heartbeat_thread: threading.Thread | None = None
        self._claim: TaskLease | None = None
        self._last_message_id = 0

    @classmethod
    def launched(cls, *, beat_every: float = HEARTBEAT_SECONDS) -> CrewWorker:
        """Return the worker for a launched process, from the environment variables of its table, task and session.

        Args:
            beat_every: Seconds between heartbeats.
        """
        location = os.environ.get(TABLE_VARIABLE, "")
        if not location:
            raise ConfigError(TABLE_VARIABLE, location, "the crew table's path or postgresql:// URL")
        return cls(
            location,
            os.environ.get(TASK_VARIABLE) or None,
            session=os.environ.get(SESSION_VARIABLE, ""),
            beat_every=beat_every,
        )

    # -- lifecycle ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        # A table that is back gets the next heartbeat no later than usual.
        longest_pause = min(self._heartbeat_seconds, MAX_PAUSE_SECONDS)
        self.table = CrewTable.open(self._location, patience=WORKER_PATIENCE_SECONDS, longest_pause=longest_pause)
        try:
            self._claim = self._acquire()
            if self._claim.generation > 1:
                self._report_resumption()
            self._heartbeat_thread = threading.Thread(
                target=self._heartbeat_loop, args=(self.table.clone(),), daemon=True
            )
            self._heartbeat_thread.start()
        except BaseException:
            self.table.close()
            raise
        return self

    def _acquire(self) -> TaskLease:
        try:
            return self._claim_task()
        except StoreUnavailable:  # away in the middle: the claim may have been written
            return self.table.lease_of(self.session) or self._claim_task()

    def _claim_task(self) -> TaskLease:
        if self._task_id is not None:
            return self.table.claim(self._task_id, self.session, self._worked_by)
        found = self.table.claim_next(self.session)
        if found is None:
            raise NoTaskAvailable(
                "there is nothing to claim: every task is owned, waits for a dependency, or is complete"
            )
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            if not self._finished.is_set() and not isinstance(error, LeaseExpired):
                self._hand_off_on_exit(error)
        finally:
            self._finished.set()
            if self._heartbeat_thread is not None:
                self._heartbeat_thread.join()
            self.table.close()
        return isinstance(error, StopRequested)

    def _hand_off_on_exit(self, error: BaseException | None) -> None:
        if isinstance(error, KeyboardInterrupt) and self._was_ended():
            return
        reason = "asked to stop" if isinstance(error, StopRequested) else "left without completing"
        if isinstance(error, KeyboardInterrupt):
            reason = f"stopped by {error!s}" if str(error) else "stopped by Ctrl-C"
        elif error is not None and not isinstance(error, StopRequested):
            reason = f"{type(error).__name__}: {error}"
        try:
            self.hand_off(self._handoff(reason).body())
        except (LeaseExpired, StoreUnavailable):
            if error is None:
                raise

    def _was_ended(self) -> bool:
        """Return whether the conductor has ended the task: its signal to a lost worker must not pass for a hand-over."""
        try:
            task = self.table.task(self.task_id)
        except StoreUnavailable:
            return False
        return task is None or task.state is TaskState.EXITED

    def _handoff(self, reason: str) -> Handoff:
        return Handoff(
            session=self.session,
            reason=" ".join(reason.split()),
            task=self.task_id,
            worked_by=self.claim.worked_by,
            completed=tuple(self.notes),
            instructions="Inspect the current state of the work, run its tests, then continue.",
        )

    def _report_resumption(self) -> None:
        """Report what a successor found before it continues; where handoff and table differ, the table is right."""
        handoffs = self.table.messages(self.task_id, types=(MessageType.HANDOFF,))
        handoff = Handoff.read(handoffs[-1].message, handoffs[-1].from_session) if handoffs else None
        differences = () if handoff is None else compare_with_table(handoff, state=TaskState.WORKING)
        found = Resumption(
            previous_session=handoffs[-1].from_session if handoffs else "unknown",
            handoff=ArtifactPresence.MISSING if handoff is None else ArtifactPresence.PRESENT,
            kind=handoff_kind(handoff),
            differences=differences,
            deviations=0 if handoff is None else len(handoff.deviations),
            resume_point=handoff.pending[0] if handoff is not None and handoff.pending else "the task as it is",
        )
        self.table.post_message(self.task_id, self.session, found.body(), MessageType.RESUMPTION)

    @property
    def claim(self) -> TaskLease:
        """Return this worker's lease."""
        if self._claim is None:
            raise ConfigError(
                "worker", self.session, "a worker that has claimed its task: with CrewWorker(…) as worker"
            )
        return self._claim

    @property
    def task_id(self) -> str:
        """Return the id of the claimed task."""
        return self.claim.task_id

    def _heartbeat_loop(self, table: CrewTable) -> None:
        """Send heartbeats in a background thread, so that long work does not look dead."""
        with table:
            while not self._finished.wait(self._heartbeat_seconds):
                try:
                    if table.heartbeat(self.claim) is TaskState.EXIT_REQUESTED and self._pending_error is None:
                        self._pending_error = StopRequested(f"{self.task_id}: the conductor requested a stop")
                except StoreUnavailable:
                    continue  # the next heartbeat tries again
                except RungError as error:  # lease lost: raised by the worker's next call
                    self._pending_error = error
                    return

    # -- reports --------------------------------------------------------------------------------------

    def beat(self, progress: str = "") -> TaskState:
        """Send a heartbeat with the current progress; raises StopRequested when the worker should stop.

        Args:
            progress: What was done last. Default: unchanged.
        """
        self._raise_pending()
        state = self.table.heartbeat(self.claim, progress=progress)
        if state is TaskState.EXIT_REQUESTED:
            raise StopRequested(f"{self.task_id}: the conductor requested a stop")
        return state

    def error(self, summary: str, *, body: str = "", report_path: str = "") -> int:
        """Report an error; return the number of errors in the task's life.

        Args:
            summary: First line of the report.
            body: Details. Default: none.
            report_path: File with a longer report. Default: none.
        """
        self._raise_pending()
        self._report(
            MessageType.ERROR,
            lambda: self.table.report_error(self.claim, summary, body=body, report_path=report_path),
        )
        return self.table.require_task(self.task_id).error_tries

    def warn_context(self, body: str) -> None:
        """Report that the context window is nearly full.

        Args:
            body: Text of the warning.
        """
        self._raise_pending()
        self._report(MessageType.CONTEXT_WARNING, lambda: self.table.warn_context(self.claim, body))

    def review(self, body: str, *, checkpoint: int, report_path: str = "") -> int:
        """Request a review; return the review cycle of this checkpoint.

        Args:
            body: Text for the reviewer.
            checkpoint: Number of the checkpoint.
            report_path: File with a longer report. Default: none.
        """
        self._raise_pending()
        self._report(
            MessageType.REVIEW_REQUEST,
            lambda: self.table.request_review(self.claim, body, checkpoint=checkpoint, report_path=report_path),
        )
        return self.table.require_task(self.task_id).review_cycles

    def wait_for_answer(
        self, timeout: float | None = None, *, poll: float = POLL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> ConductorReply:
        """Wait for the conductor's decision about an error, a warning or a review, then resume the task.

        Args:
            timeout: Longest wait in seconds. Default: None, any time.
            poll: Seconds between looks at the table. Default: 2.
            clock: Clock in seconds, for tests.
        """
        until = None if timeout is None else clock() + timeout
        while True:
            state = self.beat()
            if state not in AWAITING_REPLY:
                break
            if until is not None and clock() >= until:
                raise TimeoutError(f"{self.task_id}: no reply within {timeout:g} s")
            self._finished.wait(poll)
        replies = [message for message in self.messages(*ANSWER_MESSAGES) if message.from_session == CONDUCTOR]
        try:
            self.table.resume(self.claim)
        except StoreUnavailable:  # away in the middle; a task that has resumed may resume again
            self.table.resume(self.claim)
        return ConductorReply(state, replies[-1].message if replies else "")

    def instructions(self) -> str:
        """Return everything that this worker is told: its task, hand-overs, saved work and what a person said."""
        return worker_instructions(self.table, self.table.require_task(self.task_id))

    def messages(self, *types: MessageType) -> list[CrewMessageRow]:
        """Return the messages about the task since the last call.

        Args:
            *types: Types of messages. Default: all.
        """
        found = self.table.messages(self.task_id, after=self._last_message_id, types=types)
        self._last_message_id = max([self._last_message_id, *(message.id for message in found)])
        return found

    def complete(self, body: str = "", *, report_path: str = "") -> None:
        """Complete the task; requires an approved review.

        Args:
            body: Text of the report. Default: none.
            report_path: File with a longer report. Default: none.
        """
        self._raise_pending()
        self._report(MessageType.COMPLETION, lambda: self.table.complete(self.claim, body, report_path=report_path))
        self._finished.set()

    def hand_off(self, body: str, *, report_path: str = "") -> None:
        """Stop, and leave a handoff for the next worker.

        Args:
            body: What the next worker must know.
            report_path: File with a longer report. Default: none.
        """
        self._report(MessageType.HANDOFF, lambda: self.table.hand_off(self.claim, body, report_path=report_path))
        self._finished.set()

    def _report(self, kind: MessageType, write: Callable[[], object]) -> None:
        """Write a report, also if the table goes away meanwhile: once, because the outcome of a lost commit is unknown."""
        before = self.table.last_message_id()
        try:
            write()
        except StoreUnavailable:
            said = self.table.messages(self.task_id, after=before, types=(kind,))
            if not any(message.from_session == self.session for message in said):
                write()

    def _raise_pending(self) -> None:
        """Raise the error that the heartbeat thread received."""
        if self._pending_error is not None:
            raise self._pending_error
