"""Tables of a crew in PostgreSQL: trigger functions for the contract, and SQLite's time functions.

With `datetime` and `julianday` defined, the documented statements for workers run unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import (
    MAX_MESSAGE_BYTES,
    MAX_NAME_CHARS,
    MAX_TEXT_BYTES,
    RESERVED,
    TASK_ID_PATTERN,
    TaskState,
    illegal_transition_message,
)
from rung.store.backends.postgres import ADVISORY_LOCK_ID
from rung.store.crew import trigger_conditions
from rung.store.crew.schema import TABLES, initial_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIALECT: Final = {
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "real": "DOUBLE PRECISION",
    "now": "datetime('now')",
}
# A valid timestamp; anything else is NULL, as in SQLite. Without an offset it is UTC.
_TIME: Final = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d)?$"
_FUNCTIONS: Final = (
    rf"""CREATE FUNCTION crew_time(said TEXT) RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS $crew$
BEGIN
  IF said = 'now' THEN RETURN clock_timestamp(); END IF;
  IF said IS NULL OR said !~ '{_TIME}' THEN RETURN NULL; END IF;
  IF said ~ '(Z|[+-]\d\d:\d\d)$' THEN RETURN said::timestamptz; END IF;
  RETURN said::timestamp AT TIME ZONE 'UTC';
EXCEPTION WHEN data_exception THEN RETURN NULL;
END $crew$""",
    """CREATE FUNCTION julianday(said TEXT) RETURNS DOUBLE PRECISION LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT AS $crew$
BEGIN RETURN extract(epoch FROM crew_time(said))::double precision / 86400 + 2440587.5; END $crew$""",
    """CREATE FUNCTION datetime(said TEXT) RETURNS TEXT LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT AS $crew$
BEGIN RETURN to_char(crew_time(said) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'); END $crew$""",
)


def postgres_statements(key_digest: str) -> Iterator[str]:
    """Yield all statements that create the schema in PostgreSQL, for a crew whose key has this digest."""
    yield from _FUNCTIONS
    for table in TABLES:
        yield table.format(**_DIALECT)
    yield from initial_rows(key_digest)
    yield _function("crew_turn", _turn())
    yield _function("crew_begins", _begins())
    yield _function("crew_changes", _changes())
    yield _function("crew_deletes", _deletes())
    yield _function("crew_says", _says())
    yield _function("crew_said", _after_message_sql())
    tasks, messages = "ON orchestration_tasks", "ON orchestration_messages"
    yield _trigger("crew_turn_tasks", f"BEFORE INSERT OR UPDATE OR DELETE {tasks} FOR EACH STATEMENT", "crew_turn")
    yield _trigger("crew_turn_messages", f"BEFORE INSERT {messages} FOR EACH STATEMENT", "crew_turn")
    yield _trigger("crew_begins", f"BEFORE INSERT {tasks} FOR EACH ROW", "crew_begins")
    yield _trigger("crew_changes", f"BEFORE UPDATE {tasks} FOR EACH ROW", "crew_changes")
    yield _trigger("crew_deletes", f"BEFORE DELETE {tasks} FOR EACH ROW", "crew_deletes")
    yield _trigger("crew_says", f"BEFORE INSERT {messages} FOR EACH ROW", "crew_says")
    yield _trigger("crew_said", f"AFTER INSERT {messages} FOR EACH ROW", "crew_said")
    yield from _role_triggers()


def _function(name: str, body: str, declare: str = "given RECORD;") -> str:
    return (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $crew$\n"
        f"DECLARE {declare}\nBEGIN\n{body}\nEND $crew$"
    )


def _trigger(name: str, when: str, function: str) -> str:
    return f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()"


def _reject(condition: str, message: str) -> str:
    return f"IF {condition} THEN RAISE EXCEPTION USING MESSAGE = {trigger_conditions.literal(message)}; END IF;\n"


def _turn() -> str:
    """Serialize writers, as SQLite does: messages become visible in the order of their ids, without deadlocks."""
    return f"PERFORM pg_advisory_xact_lock({ADVISORY_LOCK_ID}, hashtext(current_schema()));\nRETURN NULL;"


def _role_triggers() -> Iterator[str]:
    """Yield the triggers that tell the conductor from a worker by the crew's key, and keep messages as they were."""
    rules = trigger_conditions
    is_key = f"encode(sha256(convert_to(NEW.key, 'UTF8')), 'hex') = (SELECT value FROM crew_facts WHERE name = '{rules.KEY_DIGEST_FACT}')"
    yield _function(
        "crew_signs_in",
        f"{_reject(f'NOT coalesce({is_key}, FALSE)', rules.SIGN_IN_ERROR)}"
        f"{_reject(rules.STALE_TERM, rules.STALE_TERM_ERROR)}NEW.key := '';\nRETURN NEW;",
    )
    yield _trigger("crew_signs_in", "BEFORE INSERT OR UPDATE ON crew_conductor FOR EACH ROW", "crew_signs_in")
    yield _function("crew_signs_out", "DELETE FROM crew_conductor;\nRETURN NULL;")
    yield (
        "CREATE CONSTRAINT TRIGGER crew_signs_out AFTER INSERT ON crew_conductor DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION crew_signs_out()"
    )
    yield _function("crew_conducts", f"{_reject(f'NOT {rules.SIGNED_IN}', rules.CONDUCTOR_TABLE_ERROR)}RETURN NULL;")
    for table in rules.CONDUCTOR_TABLES:
        yield _trigger(f"{table}_role", f"BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}", "crew_conducts")
    yield _function("crew_lease_term", f"{_reject(rules.TERM_KEPT, rules.TERM_ERROR)}RETURN NEW;")
    yield _trigger("crew_lease_term", "BEFORE UPDATE ON crew_lease FOR EACH ROW", "crew_lease_term")
    yield _function("crew_lease_row", f"{_reject('TRUE', rules.LEASE_ROW_ERROR)}RETURN NULL;")
    yield _trigger("crew_lease_row", "BEFORE INSERT OR DELETE OR TRUNCATE ON crew_lease", "crew_lease_row")
    yield _function("crew_keeps", f"{_reject('TRUE', rules.KEPT_MESSAGE_ERROR)}RETURN NULL;")
    yield _trigger("crew_keeps", "BEFORE UPDATE OR DELETE OR TRUNCATE ON orchestration_messages", "crew_keeps")
    yield _trigger("crew_keeps_tasks", "BEFORE TRUNCATE ON orchestration_tasks", "crew_keeps")


def _is_text(value: str, max_bytes: int) -> str:
    return f"coalesce(octet_length({value}), 0) <= {max_bytes}"


def _is_name(value: str) -> str:
    return f"coalesce({value} ~ '^[^[:cntrl:][:space:]]{{0,{MAX_NAME_CHARS}}}$', TRUE)"


_VALID_TASK: Final = (
    " AND ".join(_is_text(f"NEW.{name}", MAX_TEXT_BYTES) for name in trigger_conditions.WORKER_TEXTS)
    + f" AND {_is_name('NEW.session_id')}"
)
_VALID_MESSAGE: Final = (
    f"{_is_text('NEW.message', MAX_MESSAGE_BYTES)} AND {_is_text('NEW.task_id', MAX_TEXT_BYTES)}"
    f" AND {_is_text('NEW.timestamp', MAX_TEXT_BYTES)} AND {_is_name('NEW.from_session')}"
)
_VALUES: Final = (
    (f"NOT ({_VALID_TASK})", trigger_conditions.VALUE_ERROR),
    (trigger_conditions.RESERVED_SESSION, trigger_conditions.RESERVED_SESSION_ERROR),
)


def _begins() -> str:
    rules = trigger_conditions
    is_id = f"({rules.is_fallback('NEW')} OR NEW.task_id ~ '^{TASK_ID_PATTERN}$')"
    conditions = (
        (rules.BAD_INITIAL_STATE, rules.INITIAL_STATE_ERROR),
        (f"NOT {is_id}", rules.TASK_ID_ERROR),
        (rules.TASK_INSERT, rules.TASK_INSERT_ERROR),
        *_VALUES,
    )
    return "".join(_reject(*one) for one in conditions) + "RETURN NEW;"


def _deletes() -> str:
    is_task = f"NOT ({trigger_conditions.is_fallback('OLD')})"
    return f"{_reject(is_task, trigger_conditions.DELETE_ERROR)}RETURN OLD;"


def _changes() -> str:
    decrease = "NEW.generation < OLD.generation OR NEW.error_tries < OLD.error_tries"
    return (
        f"{_reject('NEW.task_id <> OLD.task_id', trigger_conditions.RENAME_ERROR)}"
        f"{_reject(trigger_conditions.RESERVED_ROW_CHANGE, trigger_conditions.RESERVED_ROW_ERROR)}"
        f"{_reject(trigger_conditions.ILLEGAL_COLUMN_CHANGE, trigger_conditions.COLUMN_ERROR)}"
        f"{''.join(_reject(*one) for one in _VALUES)}"
        f"{_reject(decrease, trigger_conditions.DECREASE_ERROR)}"
        f"IF {trigger_conditions.HEARTBEAT_IN_FUTURE} THEN NEW.last_heartbeat := {trigger_conditions.NOW_SQL}; END IF;\n"
        f"IF {trigger_conditions.is_worker('OLD')} THEN\n{_worker_changes()}"
        f"ELSIF {trigger_conditions.STATE_CHANGED} THEN\n"
        f"{_reject(trigger_conditions.is_fallback('OLD'), trigger_conditions.FALLBACK_ERROR)}{_own_moves()}"
        f"NEW.last_heartbeat := {trigger_conditions.EFFECTS['last_heartbeat']};\n"
        "END IF;\nRETURN NEW;"
    )


def _worker_changes() -> str:
    moves = "".join(
        f"WHEN '{before}' THEN {_reject(f'NOT {trigger_conditions.allowed_transition(before)}', illegal_transition_message(before))}"
        for before in TaskState
    )
    effects = "".join(
        f"NEW.{name} := {value.replace('NEW.', 'given.')};\n" for name, value in trigger_conditions.EFFECTS.items()
    )
    return (
        f"IF {trigger_conditions.CLAIM_LOST} THEN RETURN NULL; END IF;\n"
        f"IF {trigger_conditions.STATE_CHANGED} THEN CASE OLD.state\n{moves}END CASE; END IF;\n"
        f"{_reject(trigger_conditions.CHECKPOINTS_LEFT, trigger_conditions.CHECKPOINTS_LEFT_ERROR)}"
        f"{_reject(trigger_conditions.ILLEGAL_OWNER_CHANGE, trigger_conditions.OWNER_CHANGE_ERROR)}"
        f"IF {trigger_conditions.STATE_CHANGED} THEN\ngiven := NEW;\n{effects}END IF;\n"
    )


def _own_moves() -> str:
    return "".join(
        _reject(
            f"OLD.task_id = '{name}' AND OLD.state = '{before}' AND NOT {trigger_conditions.allowed_transition(before, name)}",
            illegal_transition_message(before, name),
        )
        for name in RESERVED
        for before in TaskState
    )


def _says() -> str:
    rules = trigger_conditions
    conditions = (
        (rules.UNKNOWN_MESSAGE_TYPE, rules.MESSAGE_TYPE_ERROR),
        (rules.FORGED_MESSAGE, rules.FORGED_MESSAGE_ERROR),
        (rules.SENDER_NOT_OWNER, rules.NOT_OWNER_ERROR),
        (f"NOT ({_VALID_MESSAGE})", rules.VALUE_ERROR),
    )
    return (
        "".join(_reject(*one) for one in conditions)
        + f"NEW.timestamp := coalesce(NEW.timestamp, {rules.NOW_SQL});\nRETURN NEW;"
    )


def _after_message_sql() -> str:
    number = r"substring(NEW.message FROM '^[Cc][Hh][Ee][Cc][Kk][Pp][Oo][Ii][Nn][Tt] (\d{1,9})[^:]*:')::integer"
    return (
        "IF NEW.message_type = 'review_request' THEN\n"
        f"UPDATE orchestration_tasks SET {trigger_conditions.review_requested(f'coalesce({number}, checkpoint, 0)')}"
        " WHERE task_id = NEW.task_id;\n"
        "END IF;\nRETURN NULL;"
    )
