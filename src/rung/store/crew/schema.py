"""Tables of a crew, and the SQLite triggers that enforce its contract for every writer.

A foreign worker's SQLite may be years old. Its RAISE accepts only a literal message, so each state has its own trigger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import (
    CONDUCTOR,
    MAX_MESSAGE_BYTES,
    MAX_NAME_CHARS,
    MAX_TEXT_BYTES,
    RESERVED,
    STALE_SECONDS,
    WATCHDOG,
    TaskState,
    illegal_transition_message,
)
from rung.store.crew import trigger_conditions
from rung.store.crew.sql_sha256 import KEY_CHARS, sha256_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = 2
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
  note TEXT
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
  command TEXT NOT NULL
)""",
    """CREATE TABLE crew_restarts (
  id {serial},
  at TEXT NOT NULL,
  task_id TEXT NOT NULL,
  why TEXT NOT NULL
)""",
    "CREATE TABLE crew_facts (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
    "CREATE TABLE crew_conductor (key TEXT NOT NULL)",
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
_TASKS: Final = "ON orchestration_tasks"


def sqlite_statements(key_digest: str) -> Iterator[str]:
    """Yield all statements that create the schema in SQLite, for a crew whose key has this digest."""
    for table in TABLES:
        yield table.format(**_DIALECT)
    yield from initial_rows(key_digest)
    yield from _rejections()
    yield from _role_rejections()
    yield from _value_rejections()
    yield from _effects()


def initial_rows(key_digest: str) -> Iterator[str]:
    """Yield the statements that insert the rows of a new crew."""
    for name in (WATCHDOG, CONDUCTOR):
        yield f"INSERT INTO orchestration_tasks (task_id, state) VALUES ('{name}', 'watching')"
    for name, value in (("version", str(VERSION)), (trigger_conditions.KEY_DIGEST_FACT, key_digest)):
        yield f"INSERT INTO crew_facts (name, value) VALUES ('{name}', '{value}')"


def _reject(name: str, when: str, condition: str, message: str) -> str:
    return (
        f"CREATE TRIGGER crew_{name} BEFORE {when} WHEN {condition}\n"
        f"BEGIN SELECT RAISE(ABORT, {trigger_conditions.literal(message)}); END"
    )


def _rejections() -> Iterator[str]:
    state_update = f"UPDATE OF state {_TASKS}"
    for before in TaskState:
        condition = (
            f"OLD.state = '{before}' AND {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_worker('OLD')}"
        )
        yield _reject(
            f"from_{before}",
            state_update,
            f"{condition} AND NOT {trigger_conditions.allowed_transition(before)}",
            illegal_transition_message(before),
        )
        for name in RESERVED:
            condition = f"OLD.task_id = '{name}' AND OLD.state = '{before}' AND {trigger_conditions.STATE_CHANGED}"
            allowed = trigger_conditions.allowed_transition(before, name)
            label = f"{'conductor' if name == CONDUCTOR else 'watchdog'}_from_{before}"
            yield _reject(
                label, state_update, f"{condition} AND NOT {allowed}", illegal_transition_message(before, name)
            )
    yield (
        f"CREATE TRIGGER crew_claim_lost BEFORE {state_update} WHEN {trigger_conditions.is_worker('OLD')} AND {trigger_conditions.CLAIM_LOST}\n"
        "BEGIN SELECT RAISE(IGNORE); END"
    )
    session_update = f"UPDATE OF session_id {_TASKS}"
    owner_change = f"{trigger_conditions.is_worker('OLD')} AND {trigger_conditions.ILLEGAL_OWNER_CHANGE} AND NOT ({trigger_conditions.CLAIM_LOST})"
    decrease = "NEW.generation < OLD.generation OR NEW.error_tries < OLD.error_tries"
    duplicate = f"NOT ({trigger_conditions.is_fallback('NEW')}) AND EXISTS (SELECT 1 FROM orchestration_tasks WHERE task_id = NEW.task_id)"
    yield _reject("hands", session_update, owner_change, trigger_conditions.OWNER_CHANGE_ERROR)
    yield _reject(
        "fallback",
        state_update,
        f"{trigger_conditions.is_fallback('OLD')} AND {trigger_conditions.STATE_CHANGED}",
        trigger_conditions.FALLBACK_ERROR,
    )
    yield _reject(
        "renamed", f"UPDATE OF task_id {_TASKS}", "NEW.task_id <> OLD.task_id", trigger_conditions.RENAME_ERROR
    )
    yield _reject("less", f"UPDATE OF generation, error_tries {_TASKS}", decrease, trigger_conditions.DECREASE_ERROR)
    yield _reject(
        "begin", f"INSERT {_TASKS}", trigger_conditions.BAD_INITIAL_STATE, trigger_conditions.INITIAL_STATE_ERROR
    )
    yield _reject("again", f"INSERT {_TASKS}", duplicate, trigger_conditions.DUPLICATE_TASK_ERROR)
    yield _reject(
        "delete", f"DELETE {_TASKS}", f"NOT ({trigger_conditions.is_fallback('OLD')})", trigger_conditions.DELETE_ERROR
    )
    message_insert = "INSERT ON orchestration_messages"
    yield _reject(
        "message_type", message_insert, trigger_conditions.UNKNOWN_MESSAGE_TYPE, trigger_conditions.MESSAGE_TYPE_ERROR
    )
    yield _reject(
        "message_owner", message_insert, trigger_conditions.SENDER_NOT_OWNER, trigger_conditions.NOT_OWNER_ERROR
    )


def _role_rejections() -> Iterator[str]:
    """Yield the triggers that tell the conductor from a worker by the crew's key."""
    rules, signed_in = trigger_conditions, trigger_conditions.SIGNED_IN
    digest = f"(SELECT value FROM crew_facts WHERE name = '{rules.KEY_DIGEST_FACT}')"
    is_key = f"coalesce(length(NEW.key) = {KEY_CHARS} AND {sha256_sql('NEW.key')} = {digest}, FALSE)"
    yield _reject("sign_in", "INSERT ON crew_conductor", f"NOT {is_key}", rules.SIGN_IN_ERROR)
    yield _reject("key_kept", "UPDATE ON crew_conductor", "NEW.key <> ''", rules.SIGN_IN_ERROR)
    yield "CREATE TRIGGER crew_signed_in AFTER INSERT ON crew_conductor BEGIN UPDATE crew_conductor SET key = ''; END"
    yield _reject("add", f"INSERT {_TASKS}", rules.TASK_INSERT, rules.TASK_INSERT_ERROR)
    columns = ", ".join(rules.GUARDED_COLUMNS)
    yield _reject("columns", f"UPDATE OF {columns} {_TASKS}", rules.ILLEGAL_COLUMN_CHANGE, rules.COLUMN_ERROR)
    yield _reject("reserved", f"UPDATE {_TASKS}", rules.RESERVED_ROW_CHANGE, rules.RESERVED_ROW_ERROR)
    yield _reject("forged", "INSERT ON orchestration_messages", rules.FORGED_MESSAGE, rules.FORGED_MESSAGE_ERROR)
    for table in rules.CONDUCTOR_TABLES:
        for event in ("INSERT", "UPDATE", "DELETE"):
            yield _reject(f"{table}_{event}", f"{event} ON {table}", f"NOT {signed_in}", rules.CONDUCTOR_TABLE_ERROR)


def _value_rejections() -> Iterator[str]:
    """Yield the triggers for ids, types and sizes: SQLite's columns take any value of any size."""
    rules = trigger_conditions
    yield _reject("id", f"INSERT {_TASKS}", f"NOT ({rules.is_fallback('NEW')} OR {_IS_ID})", rules.TASK_ID_ERROR)
    is_text = " AND ".join(_is_text(f"NEW.{name}", MAX_TEXT_BYTES) for name in rules.WORKER_TEXTS)
    valid = f"{is_text} AND {_is_name('NEW.session_id')} AND typeof(NEW.retry_count) IN ('integer', 'null')"
    columns = ", ".join(("retry_count", *rules.WORKER_TEXTS))
    for when in ("INSERT", f"UPDATE OF {columns}"):
        label = when[:6].lower()
        yield _reject(f"value_{label}", f"{when} {_TASKS}", f"NOT ({valid})", rules.VALUE_ERROR)
        yield _reject(f"session_{label}", f"{when} {_TASKS}", rules.RESERVED_SESSION, rules.RESERVED_SESSION_ERROR)
    messages = "orchestration_messages"
    valid = (
        f"{_is_text('NEW.message', MAX_MESSAGE_BYTES)} AND {_is_text('NEW.task_id', MAX_TEXT_BYTES)}"
        f" AND {_is_text('NEW.timestamp', MAX_TEXT_BYTES)} AND {_is_name('NEW.from_session')}"
    )
    yield _reject("message_value", f"INSERT ON {messages}", f"NOT ({valid})", rules.VALUE_ERROR)
    yield _reject("message_update", f"UPDATE ON {messages}", "TRUE", rules.KEPT_MESSAGE_ERROR)
    yield _reject("message_delete", f"DELETE ON {messages}", "TRUE", rules.KEPT_MESSAGE_ERROR)
    replaced = f"EXISTS (SELECT 1 FROM {messages} WHERE id = NEW.id)"
    yield _reject("message_replace", f"INSERT ON {messages}", replaced, rules.KEPT_MESSAGE_ERROR)
    # A message with a huge id would hide all later ones from a reader that asks for those after the last one.
    ahead = f"NEW.id > 1 + coalesce((SELECT max(id) FROM {messages} WHERE id < NEW.id), 0)"
    yield (
        f"CREATE TRIGGER crew_message_id AFTER INSERT ON {messages} WHEN {ahead}\n"
        f"BEGIN SELECT RAISE(ABORT, {rules.literal(rules.KEPT_MESSAGE_ERROR)}); END"
    )


# `length` of a text ends at its first NUL, that of its bytes does not; the two are equal for ASCII without NULs.
_IS_ID: Final = (
    "coalesce(length(NEW.task_id) = length(CAST(NEW.task_id AS BLOB)) AND length(NEW.task_id) <= 100"
    " AND NEW.task_id GLOB '[A-Za-z0-9]*' AND NEW.task_id NOT GLOB '*[^A-Za-z0-9._-]*', FALSE)"
)


def _is_text(value: str, max_bytes: int) -> str:
    return f"typeof({value}) IN ('text', 'null') AND coalesce(length(CAST({value} AS BLOB)), 0) <= {max_bytes}"


def _is_name(value: str) -> str:
    is_clean = f"{value} NOT GLOB '*[' || char(1) || '-' || char(32) || char(127) || ']*'"
    return f"{_is_text(value, 4 * MAX_NAME_CHARS)} AND coalesce(instr({value}, char(0)) = 0 AND {is_clean}, TRUE)"


def _effects() -> Iterator[str]:
    this_row = "WHERE task_id = NEW.task_id"
    columns = ", ".join(f"{name} = {value}" for name, value in trigger_conditions.EFFECTS.items())
    yield (
        f"CREATE TRIGGER crew_moved AFTER UPDATE OF state {_TASKS} WHEN {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_worker('OLD')}\n"
        f"BEGIN UPDATE orchestration_tasks SET {columns} {this_row}; END"
    )
    yield (
        f"CREATE TRIGGER crew_moved_itself AFTER UPDATE OF state {_TASKS}"
        f" WHEN {trigger_conditions.STATE_CHANGED} AND {trigger_conditions.is_reserved('OLD')}\n"
        f"BEGIN UPDATE orchestration_tasks SET last_heartbeat = {trigger_conditions.EFFECTS['last_heartbeat']} {this_row}; END"
    )
    yield (
        f"CREATE TRIGGER crew_ahead AFTER UPDATE OF last_heartbeat {_TASKS} WHEN {trigger_conditions.HEARTBEAT_IN_FUTURE}\n"
        f"BEGIN UPDATE orchestration_tasks SET last_heartbeat = {trigger_conditions.NOW_SQL} {this_row}; END"
    )
    number = "CAST(substr(NEW.message, 12) AS INTEGER)"
    named = "upper(substr(NEW.message, 1, 80)) GLOB 'CHECKPOINT [0-9]*:*'"
    checkpoint = f"CASE WHEN {named} THEN {number} ELSE coalesce(checkpoint, 0) END"
    yield (
        "CREATE TRIGGER crew_review AFTER INSERT ON orchestration_messages WHEN NEW.message_type = 'review_request'\n"
        "BEGIN UPDATE orchestration_tasks SET review_cycles = CASE WHEN coalesce(checkpoint, -1) ="
        f" {checkpoint} THEN review_cycles + 1 ELSE 1 END, checkpoint = {checkpoint} {this_row}; END"
    )
