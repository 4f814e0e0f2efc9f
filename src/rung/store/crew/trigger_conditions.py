"""Trigger conditions of a crew's table: SQL for both databases, generated from the contract's transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import (
    CONDUCTOR_ONLY_MESSAGES,
    CONTEXT_WARNING,
    FALLBACK_PREFIX,
    MAX_MESSAGE_BYTES,
    MAX_TEXT_BYTES,
    OWNER_ONLY_MESSAGES,
    REPORTS,
    RESERVED,
    RESERVED_SENDERS,
    Actor,
    MessageType,
    TaskState,
    TransitionGuard,
    legal_transitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW_SQL: Final = "datetime('now')"
KEY_DIGEST_FACT: Final = "key_digest"  # fact of the crew: SHA-256 digest of its key
# The transaction has presented the crew's key: a row that no other transaction sees, because it is deleted before the commit.
SIGNED_IN: Final = "EXISTS (SELECT 1 FROM crew_conductor)"


def literals(names: Iterable[str]) -> str:
    """Return SQL string literals, separated by commas, for IN."""
    return ", ".join(literal(name) for name in names)


def literal(value: str) -> str:
    """Return an SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def is_stale(row: str) -> str:
    """Return SQL for: the row's heartbeat is too old, missing or invalid."""
    return f"coalesce((julianday('now') - julianday({row}.last_heartbeat)) * 86400 > {row}.stale_after, TRUE)"


def is_fallback(row: str) -> str:
    """Return SQL for: the row is the fallback row of a blocked session."""
    return f"substr({row}.task_id, 1, {len(FALLBACK_PREFIX)}) = {literal(FALLBACK_PREFIX)}"


def is_reserved(row: str) -> str:
    """Return SQL for: the row is the conductor's or the watchdog's."""
    return f"{row}.task_id IN ({literals(RESERVED)})"


def is_worker(row: str) -> str:
    """Return SQL for: the row is a worker task."""
    return f"NOT ({is_reserved(row)} OR {is_fallback(row)})"


SAME_SESSION: Final = "coalesce(NEW.session_id, '') = coalesce(OLD.session_id, '')"
OWNED: Final = f"(coalesce(OLD.session_id, '') <> '' AND {SAME_SESSION})"
STATE_CHANGED: Final = "coalesce(NEW.state, '') <> OLD.state"
WAS_WARNING: Final = f"coalesce(OLD.last_error, '') = {literal(CONTEXT_WARNING)}"
IS_WARNING: Final = f"coalesce(NEW.last_error, '') = {literal(CONTEXT_WARNING)}"
# A losing claim changes no row, as the guarded UPDATE expects: the task is answered and its owner is alive.
CLAIM_LOST: Final = (
    f"OLD.state = 'fix_proposed' AND NEW.state = 'working' AND OLD.open_for_claim = 0"
    f" AND coalesce(NEW.session_id, '') <> '' AND NOT ({SAME_SESSION}) AND NOT {is_stale('OLD')}"
)
CLAIMED: Final = (
    "(NEW.state = 'working' AND (OLD.state IN ('watching', 'exit_requested')"
    f" OR (OLD.state = 'fix_proposed' AND NOT {OWNED})))"
)
REOPENED: Final = (
    "(NEW.state IN ('fix_proposed', 'watching') AND"
    f" (OLD.state = 'exited' OR (OLD.state <> 'watching' AND {is_stale('OLD')})))"
)
LAST_MESSAGE: Final = "coalesce((SELECT max(id) FROM orchestration_messages), 0)"
_ITS_MESSAGE: Final = (
    "SELECT 1 FROM orchestration_messages AS said"
    " WHERE said.task_id = OLD.task_id AND said.from_session = OLD.session_id"
)
_REPORT: Final = " OR ".join(
    f"(NEW.state = '{state}' AND said.message_type IN ({literals(types)}))" for state, types in REPORTS.items()
)
_CONDITIONS: Final = {
    TransitionGuard.ALWAYS: "TRUE",
    TransitionGuard.CLAIM: "coalesce(NEW.session_id, '') <> ''",
    TransitionGuard.OWNED: OWNED,
    TransitionGuard.APPROVED: "OLD.approved = 1",
    TransitionGuard.STALE: is_stale("OLD"),
    TransitionGuard.WARNED: WAS_WARNING,
    TransitionGuard.REPORTED: (
        f"({OWNED} AND ({SIGNED_IN} OR EXISTS ({_ITS_MESSAGE} AND said.id > OLD.moved_message AND ({_REPORT}))))"
    ),
    TransitionGuard.SPOKEN: f"({OWNED} AND EXISTS ({_ITS_MESSAGE}))",
}


def allowed_transition(before: TaskState, task_id: str = "") -> str:
    """Return SQL for: NEW.state is a legal successor of this state, for who has signed in or for a worker."""
    successors: dict[str, list[str]] = {}
    for move in legal_transitions(before, task_id):
        condition = _CONDITIONS[move.guard]
        if move.by is not Actor.WORKER:
            condition = f"{SIGNED_IN} AND {condition}"
        successors.setdefault(condition, []).append(move.after)
    alternatives = [f"({condition} AND NEW.state IN ({literals(after)}))" for condition, after in successors.items()]
    return f"coalesce({' OR '.join(alternatives)}, FALSE)" if alternatives else "FALSE"


APPROVED_NOW: Final = "OLD.state = 'needs_review' AND NEW.state = 'review_approved'"
CHECKPOINTS_LEFT: Final = (
    "OLD.checkpoints > 0 AND OLD.reviews_approved <= OLD.checkpoints AND OLD.state = 'working' AND NEW.state = 'complete'"
    " AND OLD.approved = 1"
)


def review_requested(named_checkpoint: str) -> str:
    """Return SQL assignments for one more review request; the SQL argument is the checkpoint that the request names.

    Every request counts until a review is approved, whatever its number. Declared checkpoints are numbered by the
    approvals.
    """
    reached = "CASE WHEN reviews_approved < checkpoints THEN reviews_approved ELSE checkpoints END + 1"
    return (
        "review_cycles = review_cycles + 1,"
        f" checkpoint = CASE WHEN checkpoints > 0 THEN {reached} ELSE {named_checkpoint} END"
    )


# Side effects of a worker task's transition, computed from the old row and the row as it was written.
EFFECTS: Final = {
    "generation": f"NEW.generation + CASE WHEN {CLAIMED} OR {REOPENED} THEN 1 ELSE 0 END",
    "open_for_claim": f"CASE WHEN {REOPENED} THEN 1 ELSE 0 END",
    "approved": (
        f"CASE WHEN {APPROVED_NOW} THEN 1"
        f" WHEN {CLAIMED} OR {REOPENED} OR NEW.state IN ('error', 'needs_review', 'review_failed') THEN 0"
        " ELSE NEW.approved END"
    ),
    "reviews_approved": f"NEW.reviews_approved + CASE WHEN {APPROVED_NOW} THEN 1 ELSE 0 END",
    "review_cycles": f"CASE WHEN {APPROVED_NOW} THEN 0 ELSE NEW.review_cycles END",
    "error_tries": f"NEW.error_tries + CASE WHEN NEW.state = 'error' AND NOT ({IS_WARNING}) THEN 1 ELSE 0 END",
    "warnings": f"NEW.warnings + CASE WHEN NEW.state = 'error' AND {IS_WARNING} THEN 1 ELSE 0 END",
    "retry_count": f"CASE WHEN NEW.state = 'error' AND {IS_WARNING} THEN OLD.retry_count ELSE NEW.retry_count END",
    # An answered context warning is over: the next report is an error, even if it leaves last_error as it was.
    "last_error": f"CASE WHEN NEW.state = 'working' AND {IS_WARNING} THEN NULL ELSE NEW.last_error END",
    "session_id": f"CASE WHEN {REOPENED} THEN NULL ELSE NEW.session_id END",  # a former owner has to claim the task again
    "worked_by": "CASE WHEN NEW.state = 'watching' THEN NULL ELSE NEW.worked_by END",
    "completed_at": f"CASE WHEN NEW.state = 'complete' THEN coalesce(NEW.completed_at, {NOW_SQL}) ELSE NEW.completed_at END",
    "moved_at": NOW_SQL,
    "moved_message": LAST_MESSAGE,
    "last_heartbeat": (
        f"CASE WHEN coalesce(NEW.last_heartbeat, '') = coalesce(OLD.last_heartbeat, '') THEN {NOW_SQL}"
        " ELSE NEW.last_heartbeat END"
    ),
}

ILLEGAL_OWNER_CHANGE: Final = (
    f"NOT ({SAME_SESSION}) AND NOT ({CLAIMED} OR (coalesce(NEW.session_id, '') = ''"
    f" AND NEW.state IN ('watching', 'fix_proposed') AND ({STATE_CHANGED} OR NEW.open_for_claim = 1)))"
)
HEARTBEAT_IN_FUTURE: Final = "coalesce(julianday(NEW.last_heartbeat) > julianday('now') + 5.0 / 86400, FALSE)"
SENDER_NOT_OWNER: Final = (
    f"NEW.message_type IN ({literals(OWNER_ONLY_MESSAGES)}) AND NOT ({is_reserved('NEW')}) AND NOT EXISTS (SELECT 1 FROM"
    " orchestration_tasks AS held WHERE held.task_id = NEW.task_id AND held.session_id = NEW.from_session)"
)
UNKNOWN_MESSAGE_TYPE: Final = f"coalesce(NEW.message_type, '') NOT IN ({literals(MessageType)})"
BAD_INITIAL_STATE: Final = (
    f"NOT (({is_fallback('NEW')} AND coalesce(NEW.state, '') = 'exited')"
    f" OR (NOT ({is_fallback('NEW')}) AND coalesce(NEW.state, '') = 'watching'))"
)

# -- what a worker may write ----------------------------------------------------------------------------

WORKER_TEXTS: Final = ("session_id", "worked_by", "started_at", "completed_at", "report_path", "last_heartbeat", "last_error",
                       "progress", "progress_at")  # fmt: skip
CONDUCTOR_COLUMNS: Final = ("instruction_path", "stale_after", "title", "depends_on", "priority", "command", "workdir",
                            "writes", "checkpoints", "reviews_approved", "redispatches", "history", "plan_mark", "phase", "outcome", "note")  # fmt: skip


def _changed(column: str) -> str:
    return f"coalesce(CAST(NEW.{column} AS TEXT), '') <> coalesce(CAST(OLD.{column} AS TEXT), '')"


# Triggers update these columns after a worker's legal transition, and only in this direction.
_NOT_AN_EFFECT: Final = (
    f"{_changed('approved')} AND CAST(NEW.approved AS TEXT) <> '0'",
    f"{_changed('open_for_claim')} AND NOT (CAST(NEW.open_for_claim AS TEXT) = '0' AND NEW.state NOT IN ('watching', 'fix_proposed'))",
    *(f"NEW.{name} NOT IN (OLD.{name}, OLD.{name} + 1)" for name in ("generation", "error_tries", "warnings")),
    f"{_changed('moved_at')} AND coalesce(NEW.moved_at, '') <> {NOW_SQL}",
    f"NEW.moved_message NOT IN (OLD.moved_message, {LAST_MESSAGE})",
    "NEW.review_cycles < OLD.review_cycles",
)
ILLEGAL_COLUMN_CHANGE: Final = (
    f"NOT ({is_fallback('OLD')} OR {SIGNED_IN})"
    f" AND ({' OR '.join(f'({one})' for one in (*map(_changed, CONDUCTOR_COLUMNS), *_NOT_AN_EFFECT))})"
)
RESERVED_ROW_CHANGE: Final = f"{is_reserved('OLD')} AND NOT {SIGNED_IN}"
TASK_INSERT: Final = f"NOT ({is_fallback('NEW')}) AND NOT {SIGNED_IN}"
RESERVED_SESSION: Final = (
    f"lower(trim(coalesce(NEW.session_id, ''))) IN ({literals(RESERVED_SENDERS)}) AND NOT {is_reserved('NEW')}"
)
FORGED_MESSAGE: Final = (
    f"NOT {SIGNED_IN} AND (lower(trim(coalesce(NEW.from_session, ''))) IN ({literals(RESERVED_SENDERS)})"
    f" OR NEW.message_type IN ({literals(CONDUCTOR_ONLY_MESSAGES)}))"
)
GUARDED_COLUMNS: Final = (
    *CONDUCTOR_COLUMNS, "approved", "open_for_claim", "generation", "error_tries", "warnings", "review_cycles",
    "moved_at", "moved_message",
)  # fmt: skip
CONDUCTOR_TABLES: Final = ("crew_processes", "crew_restarts", "crew_facts", "crew_lease")

# -- the conductor's lease ----------------------------------------------------------------------------

# A conductor signs in with its term: the writes of one that was replaced are rejected.
STALE_TERM: Final = "NEW.term IS NOT NULL AND NOT EXISTS (SELECT 1 FROM crew_lease WHERE term = NEW.term)"
# A new holder has a new term, so that nobody can mistake it for the one before.
TERM_KEPT: Final = "NEW.term < OLD.term OR (NEW.holder NOT IN (OLD.holder, '') AND NEW.term = OLD.term)"

# -- error messages -----------------------------------------------------------------------------------

INITIAL_STATE_ERROR: Final = (
    "rung: a task begins as watching (conductor); only the row of a blocked session, fallback-{session}, as exited"
)
DUPLICATE_TASK_ERROR: Final = "rung: there is such a task already; it is moved, never replaced"
DELETE_ERROR: Final = "rung: tasks are not deleted; only rows of blocked sessions, fallback-{session}, are (conductor)"
FALLBACK_ERROR: Final = "rung: the row of a blocked session stays exited, until it is deleted (conductor)"
RENAME_ERROR: Final = "rung: a task keeps its task_id"
OWNER_CHANGE_ERROR: Final = (
    "rung: the task is another session's; session_id changes by a claim (worker: watching, fix_proposed or"
    " exit_requested to working), or when it is opened again (conductor: to watching or fix_proposed)"
)
CHECKPOINTS_LEFT_ERROR: Final = (
    "rung: not every checkpoint of the task is reviewed: reviews_approved must exceed checkpoints before complete; request"
    " the review of the next checkpoint (worker: needs_review)"
)
DECREASE_ERROR: Final = "rung: generation and error_tries are for life: they never become less"
SIGN_IN_HINT: Final = "needs the crew's key: INSERT INTO crew_conductor (key) VALUES (…), in the same transaction"
SIGN_IN_ERROR: Final = "rung: this is not the crew's key"
STALE_TERM_ERROR: Final = "rung: another conductor has the lease of this crew: nothing was written"
TERM_ERROR: Final = "rung: the term of the conductor's lease only grows, and each holder has its own"
LEASE_ROW_ERROR: Final = "rung: the row of the conductor's lease is neither added nor deleted"
TASK_ID_ERROR: Final = (
    "rung: a task_id is 1 to 100 letters, digits, dots, dashes and underscores, and begins with a letter or a digit"
)
TASK_INSERT_ERROR: Final = f"rung: only the conductor adds tasks; that {SIGN_IN_HINT}"
COLUMN_ERROR: Final = (
    f"rung: a worker writes only state, retry_count, {', '.join(WORKER_TEXTS)}; the rest {SIGN_IN_HINT}"
)
RESERVED_ROW_ERROR: Final = f"rung: only the conductor changes the rows {' and '.join(RESERVED)}; that {SIGN_IN_HINT}"
RESERVED_SESSION_ERROR: Final = f"rung: a session is not named {', '.join(RESERVED_SENDERS)}"
FORGED_MESSAGE_ERROR: Final = (
    f"rung: a worker does not write as {', '.join(RESERVED_SENDERS)}, nor {' '.join(CONDUCTOR_ONLY_MESSAGES)}; that"
    f" {SIGN_IN_HINT}"
)
KEPT_MESSAGE_ERROR: Final = "rung: messages are neither changed, replaced nor deleted"
CONDUCTOR_TABLE_ERROR: Final = f"rung: only the conductor writes {', '.join(CONDUCTOR_TABLES)}; that {SIGN_IN_HINT}"
VALUE_ERROR: Final = (
    f"rung: retry_count is a whole number; a text has at most {MAX_TEXT_BYTES} bytes, a message {MAX_MESSAGE_BYTES};"
    " a session has 1 to 200 characters without whitespace"
)
MESSAGE_TYPE_ERROR: Final = f"rung: message_type is one of: {' '.join(MessageType)}"
NOT_OWNER_ERROR: Final = (
    "rung: the task is not this session's (any more): nothing was written, stop working on it;"
    f" {' '.join(OWNER_ONLY_MESSAGES)} come only from the session_id that has it"
)
