"""What a worker writes: each a message and a move in one transaction, fenced by its claim."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import (
    ANSWERED,
    CLAIMABLE,
    CONTEXT_WARNING,
    ERROR_TRIES,
    FALLBACK,
    TERMINAL,
    MessageType,
    TaskState,
    refusal,
)
from rung.core.domain.errors import ClaimBlocked, ConfigError, IllegalTransition, LeaseExpired, is_whole
from rung.store.crew.connection import transaction
from rung.store.crew.queries import CrewQueries
from rung.store.crew.rows import IS_WORKER_SQL, TaskLease, parse_list
from rung.store.crew.trigger_conditions import NOW_SQL, literals

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskRow

_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_CLAIM: Final = (
    f"UPDATE orchestration_tasks SET state = 'working', session_id = ?, worked_by = ?, started_at = {NOW_SQL},"
    f" last_heartbeat = {NOW_SQL}, retry_count = 0 WHERE task_id = ? AND state IN ({literals(CLAIMABLE)}) RETURNING task_id"
)
_DONE: Final = "SELECT task_id FROM orchestration_tasks WHERE state = 'complete'"
_FREE: Final = (
    f"SELECT task_id, depends_on FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND state IN ('watching', 'fix_proposed')"
    " AND open_for_claim = 1 ORDER BY priority DESC, task_id"
)
_BEAT: Final = (
    f"UPDATE orchestration_tasks SET last_heartbeat = {NOW_SQL},"
    f" progress_at = CASE WHEN ? <> '' AND coalesce(progress, '') <> ? THEN {NOW_SQL} ELSE progress_at END,"
    " progress = CASE WHEN ? <> '' THEN ? ELSE progress END"
    f" WHERE task_id = ? AND session_id = ? AND generation = ? AND state NOT IN ({literals(sorted(TERMINAL))})"
    " RETURNING state"
)


class WorkerCommands(CrewQueries):
    """A worker's side of the table."""

    def claim(self, task_id: str, session: str, worked_by: str = "") -> TaskLease:
        """Take a task; whoever does not get it is blocked, and leaves its fallback row and a message."""
        _named("session", session)
        with transaction(self.connection):
            before = self.require_task(task_id)
            won = self._taken(task_id, session, worked_by)
            if won is None:
                self._blocked(before, session)
        if won is None:
            raise ClaimBlocked(task_id, session, _why(before, session))
        return won

    def claim_next(self, session: str) -> TaskLease | None:
        """Take the most urgent task that nobody has and that waits for no other."""
        _named("session", session)
        done = {name for (name,) in self.connection.execute(_DONE)}
        for task_id, waits_for in self.connection.execute(_FREE):
            if done.issuperset(parse_list(waits_for)):
                with transaction(self.connection):
                    won = self._taken(task_id, session, "")
                if won is not None:  # otherwise somebody was quicker: there may be another
                    return won
        return None

    def _taken(self, task_id: str, session: str, worked_by: str) -> TaskLease | None:
        """The guarded statement; it changes a row, or it does not."""
        if not self.connection.execute(_CLAIM, [session, worked_by or f"worker-{task_id}", task_id]):
            return None
        task = self.require_task(task_id)
        return TaskLease(
            task_id=task_id,
            session=session,
            generation=task.generation,
            worked_by=task.worked_by,
            instruction_path=task.instruction_path,
        )

    def _blocked(self, task: TaskRow, session: str) -> None:
        why = _why(task, session)
        self.connection.execute(
            "INSERT INTO orchestration_tasks (task_id, state, session_id, last_heartbeat, last_error, note)"
            f" VALUES (?, 'exited', ?, {NOW_SQL}, ?, ?)"
            f" ON CONFLICT (task_id) DO UPDATE SET last_heartbeat = {NOW_SQL}, last_error = excluded.last_error,"
            " note = excluded.note",
            [FALLBACK + session, session, f"claim_blocked: {why}", task.task_id],
        )
        self._insert_message(task.task_id, session, f"CLAIM BLOCKED: {why}", MessageType.CLAIM_BLOCKED)

    # -- while it works -------------------------------------------------------------------------------

    def heartbeat(self, claim: TaskLease, *, progress: str = "") -> TaskState:
        """A sign of life, and what there is to show for it; the state it is in, so that a worker learns what is asked."""
        found = self.connection.execute(_BEAT, [*[progress] * 4, claim.task_id, claim.session, claim.generation])
        if not found:
            raise self._stale(claim)
        return TaskState(found[0][0])

    def report_error(self, claim: TaskLease, summary: str, *, body: str = "", report_path: str = "") -> int:
        """Report what went wrong; how many errors the task has had in its life."""
        if summary == CONTEXT_WARNING:
            raise ConfigError("summary", summary, "what went wrong; a context warning is no error: warn")
        with transaction(self.connection):
            task = self._at_work(claim)
            tries = task.error_tries + 1
            text = body or f"ERROR (Retry {tries}/{ERROR_TRIES}):\nError: {summary}\nReport: {report_path or 'none'}"
            self._insert_message(claim.task_id, claim.session, text, MessageType.ERROR)
            self._move(
                claim, TaskState.ERROR, retry_count=task.retry_count + 1, last_error=summary, **_report(report_path)
            )
        return tries

    def warn_context(self, claim: TaskLease, body: str) -> None:
        """Say that the context runs out: no error, and not counted as one."""
        with transaction(self.connection):
            self._at_work(claim)
            self._insert_message(claim.task_id, claim.session, body, MessageType.CONTEXT_WARNING)
            self._move(claim, TaskState.ERROR, last_error=CONTEXT_WARNING)

    def request_review(self, claim: TaskLease, body: str, *, checkpoint: int, report_path: str = "") -> int:
        """Ask for a review; which cycle of this checkpoint it is."""
        if not is_whole(checkpoint):
            raise ConfigError("checkpoint", checkpoint, "a whole number, 0 or more")
        if not re.match(rf"CHECKPOINT 0*{checkpoint}:", body):
            body = f"CHECKPOINT {checkpoint}: REVIEW REQUEST\n{body}"
        with transaction(self.connection):
            self._its_turn(claim)
            self._insert_message(claim.task_id, claim.session, body, MessageType.REVIEW_REQUEST)
            self._move(claim, TaskState.NEEDS_REVIEW, **_report(report_path))
            return self.require_task(claim.task_id).review_cycles

    def resume(self, claim: TaskLease, body: str = "") -> None:
        """Go on after an answer; whoever takes up another's work says in the body how it found it."""
        with transaction(self.connection):
            self._its_turn(claim)
            if body:
                self._insert_message(claim.task_id, claim.session, body, MessageType.RESUMPTION)
            self._move(claim, TaskState.WORKING)

    def complete(self, claim: TaskLease, body: str = "", *, report_path: str = "") -> None:
        """The last write: it is done, and a review has approved it."""
        with transaction(self.connection):
            self._at_work(claim)
            self._insert_message(claim.task_id, claim.session, body or "TASK COMPLETE", MessageType.COMPLETION)
            self._move(claim, TaskState.COMPLETE, **_report(report_path))

    def hand_off(self, claim: TaskLease, body: str, *, report_path: str = "") -> None:
        """Stop, and say how far it got; also after the conductor has ended it, as long as nobody else has it."""
        with transaction(self.connection):
            task = self._mine(claim, TaskState.COMPLETE)
            self._insert_message(claim.task_id, claim.session, body, MessageType.HANDOFF)
            if task.state != TaskState.EXITED:
                self._move(claim, TaskState.EXITED, **_report(report_path))

    def post_message(self, task_id: str, sender: str, body: str, type: MessageType | str) -> int:  # noqa: A002  # the contract's word
        """Leave a message; its number."""
        with transaction(self.connection):
            return self._insert_message(task_id, sender, body, type)

    # -- the fence ------------------------------------------------------------------------------------

    def _mine(self, claim: TaskLease, *ended: TaskState) -> TaskRow:
        """The task, if it still is this claim's; it holds until the transaction's end."""
        task = self.require_task(claim.task_id)
        if (task.session_id, task.generation) != (claim.session, claim.generation) or task.state in (ended or TERMINAL):
            raise self._stale(claim)
        return task

    def _at_work(self, claim: TaskLease) -> TaskRow:
        """The task, at work: whoever goes on after an answer need not say so first."""
        task = self._its_turn(claim)
        if task.state in ANSWERED:
            self._move(claim, TaskState.WORKING)
        return task

    def _its_turn(self, claim: TaskLease) -> TaskRow:
        """The task, if its worker waits for nobody: whoever has reported something must first be answered."""
        task = self._mine(claim)
        if task.state not in {TaskState.WORKING, *ANSWERED}:
            raise IllegalTransition(refusal(task.state).removeprefix("rung: "))
        return task

    def _stale(self, claim: TaskLease) -> LeaseExpired:
        task = self.require_task(claim.task_id)
        whose = (
            f"{task.task_id} is not {claim.session}'s any more (generation {claim.generation}; now {task.generation}"
        )
        holder = f", {task.session_id}" if task.session_id else ", nobody's"
        return LeaseExpired(f"{whose}{holder}, {task.state}): nothing was written; stop working on it")

    def _move(self, claim: TaskLease, state: TaskState, **columns: Any) -> None:
        names = "".join(f", {name} = ?" for name in columns)
        self.connection.execute(
            f"UPDATE orchestration_tasks SET state = ?, last_heartbeat = {NOW_SQL}{names} WHERE task_id = ?",
            [state, *columns.values(), claim.task_id],
        )

    def _insert_message(self, task_id: str, sender: str, body: str, type: MessageType | str) -> int:  # noqa: A002  # the contract's word
        ((number,),) = self.connection.execute(
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type, timestamp)"
            f" VALUES (?, ?, ?, ?, {NOW_SQL}) RETURNING id",
            [task_id, sender, body, str(type)],
        )
        return int(number)


def _report(path: str) -> dict[str, str]:
    return {"report_path": path} if path else {}


def _why(task: TaskRow, session: str) -> str:
    if task.session_id and task.session_id != session:
        return f"it is {task.state}, in the hands of {task.session_id}"
    if task.session_id and task.state not in TERMINAL:
        return f"it is {task.state}, and this session's already (generation {task.generation})"
    return f"it is {task.state}; claimable are {', '.join(CLAIMABLE)}"


def _named(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(what, name, "1 to 200 characters without blanks")
