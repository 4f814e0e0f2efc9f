"""Tables of a crew, and the SQLite triggers that enforce its contract for every writer.

A foreign worker's SQLite may be years old. Its RAISE accepts only a literal message, so each state has its own trigger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import (
    CONDUCTOR,
    RESERVED,
    STALE_SECONDS,
    WATCHDOG,
    TaskState,
    illegal_transition_message,
)
from rung.store.crew import trigger_conditions
from rung.store.crew.schema_rights import TASKS, reject, role_rejections, value_rejections

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = 3
_STATES: Final = trigger_conditions.literals(TaskState)

# {serial}, {real} and {now} differ between SQLite and PostgreSQL.
TABLES: Final = (
    f"""CREATE TABLE orchestration_tasks (
  task_id TEXT PRIMARY KEY NOT NULL,
  state TEXT NOT NULL CHECK (state IN ({_STATES})),
  instruction_path TEXT,
  session_id TEXT,
  worked_by TEXT,
  started_at TEXT,
  completed_at TEXT,
  report_path TEXT,
  retry_count INTEGER DEFAULT 0,
  last_heartbeat TEXT,
  last_error TEXT,
  generation INTEGER NOT NULL DEFAULT 0,
  open_for_claim INTEGER NOT NULL DEFAULT 1,
  error_tries INTEGER NOT NULL DEFAULT 0,
  approved INTEGER NOT NULL DEFAULT 0,
  checkpoint INTEGER,
  review_cycles INTEGER NOT NULL DEFAULT 0,
  reviews_approved INTEGER NOT NULL DEFAULT 0,
  checkpoints INTEGER NOT NULL DEFAULT 0,
  stale_after {{real}} NOT NULL DEFAULT {STALE_SECONDS:g},
  title TEXT,
  depends_on TEXT,
  priority INTEGER NOT NULL DEFAULT 0,
  command TEXT,
  workdir TEXT,
  writes TEXT,
  progress TEXT,
  progress_at TEXT,
  redispatches INTEGER NOT NULL DEFAULT 0,
  warnings INTEGER NOT NULL DEFAULT 0,
  history TEXT,
  plan_mark TEXT,
  phase INTEGER NOT NULL DEFAULT 1,
  outcome TEXT,
  note TEXT,
  moved_at TEXT,
  moved_message INTEGER NOT NULL DEFAULT 0
)""",
    """CREATE TABLE orchestration_messages (
  id {serial} CHECK (id > 0),
  task_id TEXT,
  from_session TEXT,
  message TEXT,
  message_type TEXT NOT NULL,
  timestamp TEXT DEFAULT {now}
)""",
    """CREATE TABLE crew_processes (
  session_id TEXT PRIMARY KEY NOT NULL,
  task_id TEXT NOT NULL,
  launched_at TEXT NOT NULL,
  ended_at TEXT,
  exit_code INTEGER,
  command TEXT NOT NULL,
  machine TEXT NOT NULL
)""",
    """CREATE TABLE crew_restarts (
  id {serial},
  at TEXT NOT NULL,
  task_id TEXT NOT NULL,
  why TEXT NOT NULL
)""",
    "CREATE TABLE crew_facts (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
    "CREATE TABLE crew_conductor (key TEXT NOT NULL, term INTEGER)",
    """CREATE TABLE crew_lease (
  term INTEGER NOT NULL,
  holder TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  process TEXT NOT NULL,
  since TEXT NOT NULL,
  expires {real} NOT NULL
)""",
    "CREATE INDEX idx_messages_task_time ON orchestration_messages (task_id, timestamp)",
    "CREATE INDEX idx_messages_type ON orchestration_messages (message_type)",
    "CREATE INDEX idx_messages_task_type ON orchestration_messages (task_id, message_type)",
    "CREATE INDEX idx_tasks_state_heartbeat ON orchestration_tasks (state, last_heartbeat)",
    "CREATE INDEX idx_tasks_state_outcome ON orchestration_tasks (state, outcome)",
    "CREATE INDEX idx_restarts_at ON crew_restarts (at)",
    "CREATE INDEX idx_processes_ended ON crew_processes (ended_at)",
    "CREATE INDEX idx_processes_task ON crew_processes (task_id)",
)
_DIALECT: Final = {"serial": "INTEGER PRIMARY KEY", "real": "REAL", "now": "CURRENT_TIMESTAMP"}


def version_problem(version: str) -> str:
    """Return what is wrong with tables of this schema version, and what to do; empty for the current one."""
    if version == str(VERSION):
        return ""
    if version.isdecimal() and int(version) > VERSION:
        return f"was made by a newer version of Rung (schema {version}; this one reads {VERSION}): upgrade Rung"
    return (
        f"was made by an older version of Rung (schema {version or 'unknown'}; this one reads {VERSION}), and crew databases are not"
        " migrated: finish the crew with that version, or run its plan with a new --db"
    )


def sqlite_statements(key_digest: str) -> Iterator[str]:
    """Yield all statements that create the schema in SQLite, for a crew whose key has this digest."""
    for table in TABLES:
        yield table.format(**_DIALECT)
    yield from initial_rows(key_digest)
    yield from _rejections()
    yield from role_rejections()
    yield from value_rejections()
    yield from _effects()


def initial_rows(key_digest: str) -> Iterator[str]:
    """Yield the statements that insert the rows of a new crew."""
    for name in (WATCHDOG, CONDUCTOR):
        yield f"INSERT INTO orchestration_tasks (task_id, state) VALUES ('{name}', 'watching')"
    yield "INSERT INTO crew_lease (term, holder, host, pid, process, since, expires) VALUES (0, '', '', 0, '', '', 0)"
    for name, value in (("version", str(VERSION)), (trigger_conditions.KEY_DIGEST_FACT, key_digest)):
        yield f"INSERT INTO crew_facts (name, value) VALUES ('{name}', '{value}')"


def _rejections() -> Iterator[str]:
    state_update = f"UPDATE OF state {TASKS}"
    for before in TaskState:
        condition = (
            f"OLD.state = '{before}' AND {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_worker('OLD')}"
        )
        yield reject(
            f"from_{before}",
            state_update,
            f"{condition} AND NOT {trigger_conditions.allowed_transition(before)}",
            illegal_transition_message(before),
        )
        for name in RESERVED:
            condition = f"OLD.task_id = '{name}' AND OLD.state = '{before}' AND {trigger_conditions.STATE_CHANGED}"
            allowed = trigger_conditions.allowed_transition(before, name)
            label = f"{'conductor' if name == CONDUCTOR else 'watchdog'}_from_{before}"
            yield reject(
                label, state_update, f"{condition} AND NOT {allowed}", illegal_transition_message(before, name)
            )
    yield (
        f"CREATE TRIGGER crew_claim_lost BEFORE {state_update} WHEN {trigger_conditions.is_worker('OLD')} AND {trigger_conditions.CLAIM_LOST}\n"
        "BEGIN SELECT RAISE(IGNORE); END"
    )
    session_update = f"UPDATE OF session_id {TASKS}"
    owner_change = f"{trigger_conditions.is_worker('OLD')} AND {trigger_conditions.ILLEGAL_OWNER_CHANGE} AND NOT ({trigger_conditions.CLAIM_LOST})"
    decrease = "NEW.generation < OLD.generation OR NEW.error_tries < OLD.error_tries"
    duplicate = f"NOT ({trigger_conditions.is_fallback('NEW')}) AND EXISTS (SELECT 1 FROM orchestration_tasks WHERE task_id = NEW.task_id)"
    yield reject("hands", session_update, owner_change, trigger_conditions.OWNER_CHANGE_ERROR)
    yield reject(
        "fallback",
        state_update,
        f"{trigger_conditions.is_fallback('OLD')} AND {trigger_conditions.STATE_CHANGED}",
        trigger_conditions.FALLBACK_ERROR,
    )
    yield reject("renamed", f"UPDATE OF task_id {TASKS}", "NEW.task_id <> OLD.task_id", trigger_conditions.RENAME_ERROR)
    yield reject("less", f"UPDATE OF generation, error_tries {TASKS}", decrease, trigger_conditions.DECREASE_ERROR)
    yield reject(
        "begin", f"INSERT {TASKS}", trigger_conditions.BAD_INITIAL_STATE, trigger_conditions.INITIAL_STATE_ERROR
    )
    yield reject(
        "checkpoints", state_update, trigger_conditions.CHECKPOINTS_LEFT, trigger_conditions.CHECKPOINTS_LEFT_ERROR
    )
    yield reject("again", f"INSERT {TASKS}", duplicate, trigger_conditions.DUPLICATE_TASK_ERROR)
    yield reject(
        "delete", f"DELETE {TASKS}", f"NOT ({trigger_conditions.is_fallback('OLD')})", trigger_conditions.DELETE_ERROR
    )
    message_insert = "INSERT ON orchestration_messages"
    yield reject(
        "message_type", message_insert, trigger_conditions.UNKNOWN_MESSAGE_TYPE, trigger_conditions.MESSAGE_TYPE_ERROR
    )
    yield reject(
        "message_owner", message_insert, trigger_conditions.SENDER_NOT_OWNER, trigger_conditions.NOT_OWNER_ERROR
    )


def _effects() -> Iterator[str]:
    this_row = "WHERE task_id = NEW.task_id"
    columns = ", ".join(f"{name} = {value}" for name, value in trigger_conditions.EFFECTS.items())
    yield (
        f"CREATE TRIGGER crew_moved AFTER UPDATE OF state {TASKS} WHEN {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_worker('OLD')}\n"
        f"BEGIN UPDATE orchestration_tasks SET {columns} {this_row}; END"
    )
    yield (
        f"CREATE TRIGGER crew_moved_itself AFTER UPDATE OF state {TASKS}"
        f" WHEN {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_reserved('OLD')}\n"
        f"BEGIN UPDATE orchestration_tasks SET last_heartbeat = {trigger_conditions.EFFECTS['last_heartbeat']} {this_row}; END"
    )
    yield (
        f"CREATE TRIGGER crew_ahead AFTER UPDATE OF last_heartbeat {TASKS} WHEN {trigger_conditions.HEARTBEAT_IN_FUTURE}\n"
        f"BEGIN UPDATE orchestration_tasks SET last_heartbeat = {trigger_conditions.NOW_SQL} {this_row}; END"
    )
    number = "CAST(substr(NEW.message, 12) AS INTEGER)"
    named = "upper(substr(NEW.message, 1, 80)) GLOB 'CHECKPOINT [0-9]*:*'"
    named_checkpoint = f"CASE WHEN {named} THEN {number} ELSE coalesce(checkpoint, 0) END"
    yield (
        "CREATE TRIGGER crew_review AFTER INSERT ON orchestration_messages WHEN NEW.message_type = 'review_request'\n"
        f"BEGIN UPDATE orchestration_tasks SET {trigger_conditions.review_requested(named_checkpoint)} {this_row}; END"
    )
