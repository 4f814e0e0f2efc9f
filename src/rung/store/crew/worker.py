"""A worker of a crew, in Python: it claims a task, gives signs of life while it works, and never ends without a word."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from rung.core.crew.contract import BEAT, CONDUCTOR, MessageType, TaskState
from rung.core.crew.handoff import ArtifactPresence, Handoff, Resumption, compare, handoff_kind
from rung.core.domain.errors import (
    ConfigError,
    LeaseExpired,
    NoTaskAvailable,
    RungError,
    StopRequested,
    StoreUnavailable,
)
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from rung.store.crew.rows import CrewMessageRow, TaskLease

AWAITING_REPLY: Final = (TaskState.ERROR, TaskState.NEEDS_REVIEW)  # for an answer
POLL_SECONDS: Final = 2.0  # seconds between two looks for one
TABLE_VARIABLE, TASK_VARIABLE, SESSION_VARIABLE = "RUNG_CREW", "RUNG_TASK", "RUNG_SESSION"  # what a worker that was started is told


class ConductorReply(NamedTuple):
    """What the conductor decided, and said."""

    state: TaskState
    text: str


class CrewWorker:
    """One task in one worker's hands.

    >>> with rung.crew.Worker("crew.db", "task-01") as worker:
    ...     worker.beat("read the code")
    ...     worker.review("CHECKPOINT 1: …", checkpoint=1)
    ...     if worker.wait_for_answer().state == "review_approved":
    ...         worker.complete("TASK COMPLETE")

    Used by the thread that made it; a thread of its own gives signs of life. Leaving the block without `complete` or
    `hand_off`, by an exception or not, hands the task over and says why.
    """

    def __init__(
        self, place: str, task: str | None = None, *, session: str = "", worked_by: str = "", beat_every: float = BEAT
    ) -> None:
        self.session = session or f"worker-{uuid4().hex[:12]}"
        self.notes: list[str] = []  # what a successor should know, if it comes to that
        self._place = place
        self._wanted = task
        self._worked_by = worked_by
        self._every = beat_every
        self._over = threading.Event()
        self._trouble: RungError | None = None
        self._beating: threading.Thread | None = None
        self._claim: TaskLease | None = None
        self._heard = 0

    @classmethod
    def launched(cls, *, beat_every: float = BEAT) -> CrewWorker:
        """The worker that this process was started as: the table, task and session in its environment."""
        place = os.environ.get(TABLE_VARIABLE, "")
        if not place:
            raise ConfigError(TABLE_VARIABLE, place, "where the crew's table is: a path or a postgresql:// URL")
        return cls(place, os.environ.get(TASK_VARIABLE) or None, session=os.environ.get(SESSION_VARIABLE, ""), beat_every=beat_every)

    # -- from the claim to the end --------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.table = CrewTable.open(self._place)
        try:
            self._claim = self._taken()
            if self._claim.generation > 1:
                self._returned()
            self._beating = threading.Thread(target=self._beat_on, args=(self.table.clone(),), daemon=True)
            self._beating.start()
        except BaseException:
            self.table.close()
            raise
        return self

    def _taken(self) -> TaskLease:
        if self._wanted is not None:
            return self.table.claim(self._wanted, self.session, self._worked_by)
        found = self.table.claim_next(self.session)
        if found is None:
            raise NoTaskAvailable("there is nothing to claim: every task is taken, waits for another, or is done")
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            if not self._over.is_set() and not isinstance(error, LeaseExpired):
                self._give_up(error)
        finally:
            self._over.set()
            if self._beating is not None:
                self._beating.join()
            self.table.close()
        return isinstance(error, StopRequested)

    def _give_up(self, error: BaseException | None) -> None:
        reason = "asked to stop" if isinstance(error, StopRequested) else "left without completing"
        if error is not None and not isinstance(error, StopRequested):
            reason = f"{type(error).__name__}: {error}"
        try:
            self.hand_off(self._handoff(reason).body())
        except (LeaseExpired, StoreUnavailable):
            if error is None:
                raise

    def _handoff(self, reason: str) -> Handoff:
        return Handoff(
            session=self.session,
            reason=" ".join(reason.split()),
            task=self.task_id,
            worked_by=self.claim.worked_by,
            completed=tuple(self.notes),
            instructions="Look at the work as it is, run its tests, then go on.",
        )

    def _returned(self) -> None:
        """A successor says what it found, before it goes on: the table is right where the handoff differs."""
        left = self.table.messages(self.task_id, types=(MessageType.HANDOFF,))
        handoff = Handoff.parse(left[-1].message) if left else None
        differences = () if handoff is None else compare(handoff, state=TaskState.WORKING)
        found = Resumption(
            previous_session=left[-1].from_session if left else "unknown",
            handoff=ArtifactPresence.MISSING if handoff is None else ArtifactPresence.PRESENT,
            kind=handoff_kind(handoff),
            differences=differences,
            deviations=0 if handoff is None else len(handoff.deviations),
            resume_point=handoff.pending[0] if handoff is not None and handoff.pending else "the task as it is",
        )
        self.table.post_message(self.task_id, self.session, found.body(), MessageType.RESUMPTION)

    @property
    def claim(self) -> TaskLease:
        """The lease this worker has."""
        if self._claim is None:
            raise ConfigError("worker", self.session, "one that has claimed: with Worker(…) as worker")
        return self._claim

    @property
    def task_id(self) -> str:
        """What it works on."""
        return self.claim.task_id

    def _beat_on(self, table: CrewTable) -> None:
        """In a thread of its own, so that long work does not look dead."""
        with table:
            while not self._over.wait(self._every):
                try:
                    if table.heartbeat(self.claim) is TaskState.EXIT_REQUESTED and self._trouble is None:
                        self._trouble = StopRequested(f"{self.task_id}: the conductor asks this worker to stop")
                except StoreUnavailable:
                    continue  # the next one will do
                except RungError as error:  # it is somebody else's: the work's next word will say so
                    self._trouble = error
                    return

    # -- what it says ---------------------------------------------------------------------------------

    def beat(self, progress: str = "") -> TaskState:
        """A sign of life with what there is to show for it; raises when it should stop."""
        self._check()
        state = self.table.heartbeat(self.claim, progress=progress)
        if state is TaskState.EXIT_REQUESTED:
            raise StopRequested(f"{self.task_id}: the conductor asks this worker to stop")
        return state

    def error(self, summary: str, *, body: str = "", report_path: str = "") -> int:
        """Report what went wrong; how many errors the task has had in its life."""
        self._check()
        return self.table.report_error(self.claim, summary, body=body, report_path=report_path)

    def warn_context(self, body: str) -> None:
        """Say that the context runs out."""
        self._check()
        self.table.warn_context(self.claim, body)

    def review(self, body: str, *, checkpoint: int, report_path: str = "") -> int:
        """Ask for a review; which cycle of this checkpoint it is."""
        self._check()
        return self.table.request_review(self.claim, body, checkpoint=checkpoint, report_path=report_path)

    def wait_for_answer(
        self, timeout: float | None = None, *, poll: float = POLL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> ConductorReply:
        """Wait for what the conductor decides about an error, a warning or a review, and go on with it."""
        until = None if timeout is None else clock() + timeout
        while True:
            state = self.beat()
            if state not in AWAITING_REPLY:
                break
            if until is not None and clock() >= until:
                raise TimeoutError(f"{self.task_id}: nobody answered within {timeout:g} s")
            self._over.wait(poll)
        said = [message for message in self.messages() if message.from_session == CONDUCTOR]
        self.table.resume(self.claim)
        return ConductorReply(state, said[-1].message if said else "")

    def messages(self, *types: MessageType) -> list[CrewMessageRow]:
        """What was said about the task since this was last asked."""
        found = self.table.messages(self.task_id, after=self._heard, types=types)
        self._heard = max([self._heard, *(message.id for message in found)])
        return found

    def complete(self, body: str = "", *, report_path: str = "") -> None:
        """It is done, and a review has approved it."""
        self._check()
        self.table.complete(self.claim, body, report_path=report_path)
        self._over.set()

    def hand_off(self, body: str, *, report_path: str = "") -> None:
        """Stop, and tell whoever takes it up how far it got."""
        self.table.hand_off(self.claim, body, report_path=report_path)
        self._over.set()

    def _check(self) -> None:
        """What the thread that gives signs of life was told is raised here."""
        if self._trouble is not None:
            raise self._trouble
