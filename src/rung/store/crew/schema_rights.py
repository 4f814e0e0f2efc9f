"""SQLite triggers for the rights of the conductor, and for the ids, types and sizes of what is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import MAX_MESSAGE_BYTES, MAX_NAME_CHARS, MAX_TEXT_BYTES
from rung.store.crew import trigger_conditions
from rung.store.crew.sql_sha256 import KEY_CHARS, sha256_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS: Final = "ON orchestration_tasks"


def reject(name: str, when: str, condition: str, message: str) -> str:
    """Return a trigger that refuses the statement, with a message."""
    return (
        f"CREATE TRIGGER crew_{name} BEFORE {when} WHEN {condition}\n"
        f"BEGIN SELECT RAISE(ABORT, {trigger_conditions.literal(message)}); END"
    )


def role_rejections() -> Iterator[str]:
    """Yield the triggers that tell the conductor from a worker by the crew's key."""
    rules, signed_in = trigger_conditions, trigger_conditions.SIGNED_IN
    digest = f"(SELECT value FROM crew_facts WHERE name = '{rules.KEY_DIGEST_FACT}')"
    is_key = f"coalesce(length(NEW.key) = {KEY_CHARS} AND {sha256_sql('NEW.key')} = {digest}, FALSE)"
    yield reject("sign_in", "INSERT ON crew_conductor", f"NOT {is_key}", rules.SIGN_IN_ERROR)
    yield reject("term", "INSERT ON crew_conductor", rules.STALE_TERM, rules.STALE_TERM_ERROR)
    yield reject("key_kept", "UPDATE ON crew_conductor", "NEW.key <> ''", rules.SIGN_IN_ERROR)
    yield "CREATE TRIGGER crew_signed_in AFTER INSERT ON crew_conductor BEGIN UPDATE crew_conductor SET key = ''; END"
    yield reject("add", f"INSERT {TASKS}", rules.TASK_INSERT, rules.TASK_INSERT_ERROR)
    columns = ", ".join(rules.GUARDED_COLUMNS)
    yield reject("columns", f"UPDATE OF {columns} {TASKS}", rules.ILLEGAL_COLUMN_CHANGE, rules.COLUMN_ERROR)
    yield reject("reserved", f"UPDATE {TASKS}", rules.RESERVED_ROW_CHANGE, rules.RESERVED_ROW_ERROR)
    yield reject("forged", "INSERT ON orchestration_messages", rules.FORGED_MESSAGE, rules.FORGED_MESSAGE_ERROR)
    for table in rules.CONDUCTOR_TABLES:
        for event in ("INSERT", "UPDATE", "DELETE"):
            yield reject(f"{table}_{event}", f"{event} ON {table}", f"NOT {signed_in}", rules.CONDUCTOR_TABLE_ERROR)
    yield reject("lease_term", "UPDATE ON crew_lease", rules.TERM_KEPT, rules.TERM_ERROR)
    for event in ("INSERT", "DELETE"):
        yield reject(f"lease_{event.lower()}", f"{event} ON crew_lease", "TRUE", rules.LEASE_ROW_ERROR)


def value_rejections() -> Iterator[str]:
    """Yield the triggers for ids, types and sizes: SQLite's columns take any value of any size."""
    rules = trigger_conditions
    yield reject("id", f"INSERT {TASKS}", f"NOT ({rules.is_fallback('NEW')} OR {_IS_ID})", rules.TASK_ID_ERROR)
    is_text = " AND ".join(_is_text(f"NEW.{name}", MAX_TEXT_BYTES) for name in rules.WORKER_TEXTS)
    valid = f"{is_text} AND {_is_name('NEW.session_id')} AND typeof(NEW.retry_count) IN ('integer', 'null')"
    columns = ", ".join(("retry_count", *rules.WORKER_TEXTS))
    for when in ("INSERT", f"UPDATE OF {columns}"):
        label = when[:6].lower()
        yield reject(f"value_{label}", f"{when} {TASKS}", f"NOT ({valid})", rules.VALUE_ERROR)
        yield reject(f"session_{label}", f"{when} {TASKS}", rules.RESERVED_SESSION, rules.RESERVED_SESSION_ERROR)
    messages = "orchestration_messages"
    valid = (
        f"{_is_text('NEW.message', MAX_MESSAGE_BYTES)} AND {_is_text('NEW.task_id', MAX_TEXT_BYTES)}"
        f" AND {_is_text('NEW.timestamp', MAX_TEXT_BYTES)} AND {_is_name('NEW.from_session')}"
    )
    yield reject("message_value", f"INSERT ON {messages}", f"NOT ({valid})", rules.VALUE_ERROR)
    yield reject("message_update", f"UPDATE ON {messages}", "TRUE", rules.KEPT_MESSAGE_ERROR)
    yield reject("message_delete", f"DELETE ON {messages}", "TRUE", rules.KEPT_MESSAGE_ERROR)
    # The id of a new row is -1 here, unless it is given.
    replaced = f"NEW.id > 0 AND EXISTS (SELECT 1 FROM {messages} WHERE id = NEW.id)"
    yield reject("message_replace", f"INSERT ON {messages}", replaced, rules.KEPT_MESSAGE_ERROR)
    # A message with a huge id would hide all later ones from a reader that asks for those after the last one.
    ahead = f"NEW.id < 1 OR NEW.id > 1 + coalesce((SELECT max(id) FROM {messages} WHERE id < NEW.id), 0)"
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
