"""A worker's writes: each posts a message and changes the state in one transaction, fenced by the lease."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import (
    ANSWERED,
    CLAIMABLE,
    CONDUCTOR_ONLY_MESSAGES,
    CONTEXT_WARNING,
    FALLBACK_PREFIX,
    MAX_ERROR_TRIES,
    MAX_NAME_CHARS,
    RESERVED_SENDERS,
    TERMINAL,
    MessageType,
    TaskState,
    illegal_transition_message,
)
from rung.core.crew.pool import DEFAULT_POOL
from rung.core.crew.review import reviews_left
from rung.core.domain.errors import (
    ClaimBlocked,
    ConductorReplaced,
    ConfigError,
    IllegalTransition,
    LeaseExpired,
    is_whole,
)
from rung.store.crew.conductor_key import load_key
from rung.store.crew.connection import transaction
from rung.store.crew.pools import PoolQueries
from rung.store.crew.rows import IS_WORKER_SQL, TaskLease, parse_list
from rung.store.crew.trigger_conditions import NOW_SQL, STALE_TERM_ERROR, literals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.crew.rows import TaskRow

_NAME: Final = re.compile(rf"[^\s\x00-\x1f\x7f]{{1,{MAX_NAME_CHARS}}}")
_CLAIM: Final = (
    f"UPDATE orchestration_tasks SET state = 'working', session_id = ?, worked_by = ?, started_at = {NOW_SQL},"
    f" last_heartbeat = {NOW_SQL}, retry_count = 0 WHERE task_id = ? AND state IN ({literals(CLAIMABLE)}) RETURNING task_id"
)
_COMPLETE: Final = "SELECT task_id FROM orchestration_tasks WHERE state = 'complete'"
_UNOWNED: Final = (
    f"SELECT task_id, depends_on FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND state IN ('watching', 'fix_proposed')"
    " AND open_for_claim = 1 ORDER BY priority DESC, task_id"
)
_HEARTBEAT: Final = (
    f"UPDATE orchestration_tasks SET last_heartbeat = {NOW_SQL},"
    f" progress_at = CASE WHEN ? <> '' AND coalesce(progress, '') <> ? THEN {NOW_SQL} ELSE progress_at END,"
    " progress = CASE WHEN ? <> '' THEN ? ELSE progress END"
    f" WHERE task_id = ? AND session_id = ? AND generation = ? AND state NOT IN ({literals(sorted(TERMINAL))})"
    " RETURNING state"
)


class WorkerCommands(PoolQueries):
    """Write operations of a worker."""

    _key: str = ""  # of the crew, once it was needed
    _term: int | None = None  # of the conductor's lease that fences the writes of this table
    _lease_seconds: float = 0.0  # by which a heartbeat of the conductor renews its lease

    def claim(self, task_id: str, session: str, worked_by: str = "") -> TaskLease:
        """Claim a task; a session that loses leaves a fallback row and a message, and ClaimBlocked is raised."""
        _validate_name("session", session)
        with transaction(self.connection):
            before = self.require_task(task_id)
            won = self._try_claim(task_id, session, worked_by)
            if won is None:
                self._record_blocked(before, session)
        if won is None:
            raise ClaimBlocked(task_id, session, _blocked_reason(before, session))
        return won

    def claim_next(self, session: str) -> TaskLease | None:
        """Claim the unowned task with the highest priority whose dependencies are complete; None if there is none.

        A task of a closed pool is claimed only if the conductor chose it as the probe.
        """
        _validate_name("session", session)
        done = {name for (name,) in self.connection.execute(_COMPLETE)}
        closed = {name: pool for name, pool in self.pools().items() if not pool.is_open}
        pools = self.task_pools() if closed else {}
        for task_id, waits_for in self.connection.execute(_UNOWNED):
            pool = closed.get(pools.get(task_id, DEFAULT_POOL))
            if pool is not None and pool.probe != task_id:
                continue
            if done.issuperset(parse_list(waits_for)) and not self.require_task(task_id).problem:
                with transaction(self.connection):
                    won = self._try_claim(task_id, session, "")
                if won is not None:  # otherwise another worker claimed it first
                    return won
        return None

    def _try_claim(self, task_id: str, session: str, worked_by: str) -> TaskLease | None:
        """Run the guarded claim statement; return None if it changed no row."""
        if not self.connection.execute(_CLAIM, [session, worked_by or f"worker-{task_id}", task_id]):
            return None
        return _lease(self.require_task(task_id))

    def lease_of(self, session: str) -> TaskLease | None:
        """Return the lease of a session that has claimed a task and works on it, or None."""
        found = self._tasks(f"{IS_WORKER_SQL} AND session_id = ? AND state = ?", [session, TaskState.WORKING])
        return _lease(found[0]) if found else None

    def _record_blocked(self, task: TaskRow, session: str) -> None:
        why = _blocked_reason(task, session)
        self.connection.execute(
            "INSERT INTO orchestration_tasks (task_id, state, session_id, last_heartbeat, last_error, note)"
            f" VALUES (?, 'exited', ?, {NOW_SQL}, ?, ?)"
            f" ON CONFLICT (task_id) DO UPDATE SET last_heartbeat = {NOW_SQL}, last_error = excluded.last_error,"
            " note = excluded.note",
            [FALLBACK_PREFIX + session, session, f"claim_blocked: {why}", task.task_id],
        )
        self._insert_message(task.task_id, session, f"CLAIM BLOCKED: {why}", MessageType.CLAIM_BLOCKED)

    # -- reports --------------------------------------------------------------------------------------

    def heartbeat(self, claim: TaskLease, *, progress: str = "") -> TaskState:
        """Write a heartbeat and the progress; return the task's state, which may be a stop request."""
        rows = self.connection.execute(_HEARTBEAT, [*[progress] * 4, claim.task_id, claim.session, claim.generation])
        if not rows:
            raise self._lease_expired(claim)
        return TaskState(rows[0][0])

    def report_error(self, claim: TaskLease, summary: str, *, body: str = "", report_path: str = "") -> int:
        """Report an error; return the number of errors in the task's life."""
        if summary == CONTEXT_WARNING:
            raise ConfigError("summary", summary, "a summary of the error; report a context warning as such")
        with transaction(self.connection):
            task = self._require_working(claim)
            tries = task.error_tries + 1
            text = (
                body or f"ERROR (Retry {tries}/{MAX_ERROR_TRIES}):\nError: {summary}\nReport: {report_path or 'none'}"
            )
            self._insert_message(claim.task_id, claim.session, text, MessageType.ERROR)
            self._set_state(
                claim,
                TaskState.ERROR,
                retry_count=task.retry_count + 1,
                last_error=summary,
                **_report_column(report_path),
            )
        return tries

    def warn_context(self, claim: TaskLease, body: str) -> None:
        """Report that the context window is nearly full; does not count as an error."""
        with transaction(self.connection):
            self._require_working(claim)
            self._insert_message(claim.task_id, claim.session, body, MessageType.CONTEXT_WARNING)
            self._set_state(claim, TaskState.ERROR, last_error=CONTEXT_WARNING)

    def request_review(self, claim: TaskLease, body: str, *, checkpoint: int, report_path: str = "") -> int:
        """Request a review; return the review cycle of this checkpoint."""
        if not is_whole(checkpoint):
            raise ConfigError("checkpoint", checkpoint, "a whole number, 0 or more")
        if not re.match(rf"CHECKPOINT 0*{checkpoint}:", body):
            body = f"CHECKPOINT {checkpoint}: REVIEW REQUEST\n{body}"
        with transaction(self.connection):
            self._require_turn(claim)
            self._insert_message(claim.task_id, claim.session, body, MessageType.REVIEW_REQUEST)
            self._set_state(claim, TaskState.NEEDS_REVIEW, **_report_column(report_path))
            return self.require_task(claim.task_id).review_cycles

    def resume(self, claim: TaskLease, body: str = "") -> None:
        """Resume work after a reply; a successor reports in `body` what it found."""
        with transaction(self.connection):
            self._require_turn(claim)
            if body:
                self._insert_message(claim.task_id, claim.session, body, MessageType.RESUMPTION)
            self._set_state(claim, TaskState.WORKING)

    def complete(self, claim: TaskLease, body: str = "", *, report_path: str = "") -> None:
        """Complete the task; requires an approved review of each checkpoint and one of the whole work."""
        with transaction(self.connection):
            task = self._require_working(claim)
            left = reviews_left(task.checkpoints, task.reviews_approved)
            if left:
                raise IllegalTransition(f"{task.task_id} is not complete: {left}")
            self._insert_message(claim.task_id, claim.session, body or "TASK COMPLETE", MessageType.COMPLETION)
            self._set_state(claim, TaskState.COMPLETE, **_report_column(report_path))

    def hand_off(self, claim: TaskLease, body: str, *, report_path: str = "") -> None:
        """Stop and leave a handoff; also allowed after the conductor ended the task, while no other worker owns it."""
        with transaction(self.connection):
            task = self._require_lease(claim, TaskState.COMPLETE)
            self._insert_message(claim.task_id, claim.session, body, MessageType.HANDOFF)
            if task.state != TaskState.EXITED:
                self._set_state(claim, TaskState.EXITED, **_report_column(report_path))

    def post_message(self, task_id: str, sender: str, body: str, type: MessageType | str) -> int:  # noqa: A002  # the column is message_type
        """Post a message and return its id; one of the conductor or of a person needs the crew's key."""
        signs_in = sender in RESERVED_SENDERS or type in CONDUCTOR_ONLY_MESSAGES
        with self.signed_in() if signs_in else transaction(self.connection):
            return self._insert_message(task_id, sender, body, type)

    @contextmanager
    def signed_in(self, *, fenced: bool = True) -> Iterator[None]:
        """Run the block in one transaction with the rights of the conductor; raises StoreError without the crew's key.

        Raises ConductorReplaced, and writes nothing, if another conductor has the lease by which this table is fenced.
        """
        self._key = self._key or load_key(self.connection)
        with transaction(self.connection):
            self.connection.verify()  # in the transaction: a foreign trigger would act with these rights
            self._sign_in(self._term if fenced else None)
            yield
            self.connection.execute("DELETE FROM crew_conductor")

    def _sign_in(self, term: int | None) -> None:
        try:
            self.connection.execute("INSERT INTO crew_conductor (key, term) VALUES (?, ?)", [self._key, term])
        except IllegalTransition as error:
            if str(error) == STALE_TERM_ERROR.removeprefix("rung: "):
                raise ConductorReplaced("nothing was written") from None
            raise

    # -- fencing --------------------------------------------------------------------------------------

    def _require_lease(self, claim: TaskLease, *ended: TaskState) -> TaskRow:
        """Return the task if the lease is still valid; it stays valid until the transaction ends."""
        task = self.require_task(claim.task_id)
        if (task.session_id, task.generation) != (claim.session, claim.generation) or task.state in (ended or TERMINAL):
            raise self._lease_expired(claim)
        return task

    def _require_working(self, claim: TaskLease) -> TaskRow:
        """Return the task, resumed first if it was just answered."""
        task = self._require_turn(claim)
        if task.state in ANSWERED:
            self._set_state(claim, TaskState.WORKING)
        return task

    def _require_turn(self, claim: TaskLease) -> TaskRow:
        """Return the task unless its worker still waits for a reply."""
        task = self._require_lease(claim)
        if task.state not in {TaskState.WORKING, *ANSWERED}:
            raise IllegalTransition(illegal_transition_message(task.state).removeprefix("rung: "))
        return task

    def _lease_expired(self, claim: TaskLease) -> LeaseExpired:
        task = self.require_task(claim.task_id)
        lost = f"{claim.session} no longer owns {task.task_id} (generation {claim.generation}; now {task.generation}"
        holder = f", {task.session_id}" if task.session_id else ", unowned"
        return LeaseExpired(f"{lost}{holder}, {task.state}): nothing was written; stop working on it")

    def _set_state(self, claim: TaskLease, state: TaskState, **columns: Any) -> None:
        names = "".join(f", {name} = ?" for name in columns)
        self.connection.execute(
            f"UPDATE orchestration_tasks SET state = ?, last_heartbeat = {NOW_SQL}{names} WHERE task_id = ?",
            [state, *columns.values(), claim.task_id],
        )

    def _insert_message(self, task_id: str, sender: str, body: str, type: MessageType | str) -> int:  # noqa: A002  # the column is message_type
        ((number,),) = self.connection.execute(
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type, timestamp)"
            f" VALUES (?, ?, ?, ?, {NOW_SQL}) RETURNING id",
            [task_id, sender, body, str(type)],
        )
        return int(number)


def _lease(task: TaskRow) -> TaskLease:
    return TaskLease(
        task_id=task.task_id,
        session=task.session_id,
        generation=task.generation,
        worked_by=task.worked_by,
        instruction_path=task.instruction_path,
    )


def _report_column(path: str) -> dict[str, str]:
    return {"report_path": path} if path else {}


def _blocked_reason(task: TaskRow, session: str) -> str:
    if task.session_id and task.session_id != session:
        return f"it is {task.state}, owned by {task.session_id}"
    if task.session_id and task.state not in TERMINAL:
        return f"it is {task.state}, already owned by this session (generation {task.generation})"
    return f"it is {task.state}; claimable states are {', '.join(CLAIMABLE)}"


def _validate_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name) or name.lower() in RESERVED_SENDERS:
        allowed = f"1 to {MAX_NAME_CHARS} characters without whitespace; not {', '.join(RESERVED_SENDERS)}"
        raise ConfigError(what, name, allowed)
