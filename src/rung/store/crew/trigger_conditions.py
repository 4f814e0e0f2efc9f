"""Trigger conditions of a crew's table: SQL for both databases, generated from the contract's transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import (
    CONTEXT_WARNING,
    FALLBACK_PREFIX,
    OWNER_ONLY_MESSAGES,
    RESERVED,
    MessageType,
    TaskState,
    TransitionGuard,
    legal_transitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW_SQL: Final = "datetime('now')"


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
_CONDITIONS: Final = {
    TransitionGuard.ALWAYS: "TRUE",
    TransitionGuard.CLAIM: "coalesce(NEW.session_id, '') <> ''",
    TransitionGuard.OWNED: OWNED,
    TransitionGuard.APPROVED: "OLD.approved = 1",
    TransitionGuard.STALE: is_stale("OLD"),
    TransitionGuard.WARNED: WAS_WARNING,
}


def allowed_transition(before: TaskState, task_id: str = "") -> str:
    """Return SQL for: NEW.state is a legal_transitions successor of this state."""
    successors: dict[str, list[str]] = {}
    for move in legal_transitions(before, task_id):
        successors.setdefault(_CONDITIONS[move.guard], []).append(move.after)
    alternatives = [f"({condition} AND NEW.state IN ({literals(after)}))" for condition, after in successors.items()]
    return f"coalesce({' OR '.join(alternatives)}, FALSE)" if alternatives else "FALSE"


# Side effects of a worker task's transition, computed from the old row and the row as it was written.
EFFECTS: Final = {
    "generation": f"NEW.generation + CASE WHEN {CLAIMED} OR {REOPENED} THEN 1 ELSE 0 END",
    "open_for_claim": f"CASE WHEN {REOPENED} THEN 1 ELSE 0 END",
    "approved": (
        "CASE WHEN OLD.state = 'needs_review' AND NEW.state = 'review_approved' THEN 1"
        f" WHEN {CLAIMED} OR {REOPENED} OR NEW.state IN ('error', 'needs_review', 'review_failed') THEN 0"
        " ELSE NEW.approved END"
    ),
    "error_tries": f"NEW.error_tries + CASE WHEN NEW.state = 'error' AND NOT ({IS_WARNING}) THEN 1 ELSE 0 END",
    "warnings": f"NEW.warnings + CASE WHEN NEW.state = 'error' AND {IS_WARNING} THEN 1 ELSE 0 END",
    "retry_count": f"CASE WHEN NEW.state = 'error' AND {IS_WARNING} THEN OLD.retry_count ELSE NEW.retry_count END",
    # An answered context warning is over: the next report is an error, even if it leaves last_error as it was.
    "last_error": f"CASE WHEN NEW.state = 'working' AND {IS_WARNING} THEN NULL ELSE NEW.last_error END",
    "session_id": f"CASE WHEN {REOPENED} THEN NULL ELSE NEW.session_id END",  # a former owner has to claim the task again
    "worked_by": "CASE WHEN NEW.state = 'watching' THEN NULL ELSE NEW.worked_by END",
    "completed_at": f"CASE WHEN NEW.state = 'complete' THEN coalesce(NEW.completed_at, {NOW_SQL}) ELSE NEW.completed_at END",
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
DECREASE_ERROR: Final = "rung: generation and error_tries are for life: they never become less"
MESSAGE_TYPE_ERROR: Final = f"rung: message_type is one of: {' '.join(MessageType)}"
NOT_OWNER_ERROR: Final = (
    "rung: the task is not this session's (any more): nothing was written, stop working on it;"
    f" {' '.join(OWNER_ONLY_MESSAGES)} come only from the session_id that has it"
)
