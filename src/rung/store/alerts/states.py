"""States of alerts, their history, and the notifications that wait to be sent, as messages of the journal.

`alert-state/RULE/SCOPE` is the state of a rule, `alert-entry/ID` a row of the history, `alert-send/CHANNEL/ID` a notification
that a channel has not got yet. A change writes all three in one transaction, after it has evaluated the stored state
again: of several processes on one journal one decides, and one that dies afterwards leaves what it decided to the others.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.alerts.evaluation import AlertChange, AlertState, evaluate
from rung.core.alerts.notifications import Notification, new_notification
from rung.store.alerts.outbox import queue_notification
from rung.store.fleet.database_clock import time_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.alerts.evaluation import Evaluation, Reading
    from rung.core.alerts.rules import AlertRule, AlertSettings
    from rung.store.backends.port import BackendConnection, Database, Readable, Row

    Query = Callable[[str, Sequence[Any]], list[Row]]  # inside or outside a transaction

KEEP_SECONDS: Final = 90 * 86_400.0  # of the history
MAX_ENTRIES: Final = 1_000  # that one query returns
_STATE: Final = "alert-state/"
_ENTRY: Final = "alert-entry/"
_ONE: Final = "SELECT body FROM message WHERE topic = ?"
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)
_FORGET: Final = "DELETE FROM message WHERE topic >= 'alert-entry/' AND topic < 'alert-entry0' AND at < ?"


class AlertEntry(NamedTuple):
    """Row of the history: a change of an alert or a test, and what became of its notifications by channel."""

    notification: Notification
    is_silenced: bool
    deliveries: Mapping[str, Mapping[str, Any]]  # state (waiting, sent, failed), attempts, at, error


def load_state(journal: Readable, rule: str, scope: str = "") -> AlertState:
    """Return the state of a rule; that of a rule which never fired if there is none."""
    return _state(journal.read, rule, scope)


def load_scopes(journal: Readable, rule: str) -> dict[str, AlertState]:
    """Return the states of a rule in the crews that it was evaluated in, by scope; without that of the journal."""
    topic = _state_topic(rule, "")
    rows = journal.read(
        "SELECT topic, body FROM message WHERE topic > ? AND topic < ? ORDER BY topic", (topic, topic[:-1] + "0")
    )
    return {name.removeprefix(topic): AlertState.from_json(json.loads(body)) for name, body in rows}


def record(
    journal: Database, rule: AlertRule, settings: AlertSettings, reading: Reading, *, scope: str = "", now: float | None
) -> Evaluation:
    """Evaluate a rule against its stored state, and store what follows, in one transaction."""
    fresh_id = f"{rule.name}-{secrets.token_hex(8)}"
    stored = ""

    def work(connection: BackendConnection) -> Evaluation:
        nonlocal stored
        at = time_in(connection, now)
        state = _state(connection.execute, rule.name, scope)
        done = evaluate(rule, reading, state, at, fresh_id)
        if not done.is_new:
            return done
        change = done.change or done.notify
        assert change is not None  # noqa: S101  # `is_new` says so
        made = new_notification(rule, change.value, done.state.alert, reading, at, scope=scope, url=settings.dashboard)
        before = None if done.change is not None else entry_in(connection, made.id)  # it fired in a silence
        made = made if before is None else before.notification
        stored = json.dumps(done.state.to_json())
        connection.execute(_PUT, (_state_topic(rule.name, scope), stored, at))
        connection.execute(_FORGET, (at - KEEP_SECONDS,))
        channels = _channels(rule, settings, done.notify)
        put_entry(connection, AlertEntry(made, done.notify is None, dict.fromkeys(channels, WAITING)))
        for channel in channels:
            queue_notification(connection, channel, made, at)
        return done

    def present(connection: BackendConnection) -> bool:
        rows = connection.execute(_ONE, (_state_topic(rule.name, scope),))
        return bool(stored) and bool(rows) and rows[0][0] == stored

    return journal.write(work, present).result()


def _channels(rule: AlertRule, settings: AlertSettings, notify: AlertChange | None) -> list[str]:
    if notify is None:
        return []
    return [name for name in rule.channels if notify is AlertChange.FIRED or settings.channels[name].resolved]


def silence(journal: Database, rule: str, seconds: float, *, now: float | None = None) -> float:
    """Hold the notifications of a rule back for some seconds, in all scopes; 0 ends a silence. Return until when."""
    until = 0.0

    def work(connection: BackendConnection) -> float:
        nonlocal until
        at = time_in(connection, now)
        until = at + seconds
        state = replace(_state(connection.execute, rule, ""), silenced_until=until)
        connection.execute(_PUT, (_state_topic(rule, ""), json.dumps(state.to_json()), at))
        return until

    def present(connection: BackendConnection) -> bool:
        return _state(connection.execute, rule, "").silenced_until == until

    return journal.write(work, present).result()


def record_test(journal: Database, notification: Notification, deliveries: Mapping[str, Mapping[str, Any]]) -> None:
    """Add a test to the history."""
    entry = AlertEntry(notification, False, deliveries)
    journal.write(
        lambda connection: put_entry(connection, entry),
        lambda connection: bool(connection.execute(_ONE, (_ENTRY + notification.id,))),
    ).result()


def history(journal: Readable, *, rule: str | None = None, limit: int = 100) -> list[AlertEntry]:
    """Return the latest changes and tests, the newest first."""
    rows = journal.read(
        "SELECT body FROM message WHERE topic >= 'alert-entry/' AND topic < 'alert-entry0' ORDER BY at DESC, topic LIMIT ?",
        (MAX_ENTRIES,),
    )
    found = (_readable_entry(body) for (body,) in rows)
    return [entry for entry in found if entry is not None and rule in (None, entry.notification.rule)][:limit]


def _readable_entry(body: str) -> AlertEntry | None:
    """Return a stored row; None for one that a newer version wrote and this one cannot show."""
    try:
        return read_entry(body)
    except (KeyError, TypeError, ValueError):
        return None


def entry_in(connection: BackendConnection, entry: str) -> AlertEntry | None:
    """Return a row of the history inside a transaction."""
    rows = connection.execute(_ONE, (_ENTRY + entry,))
    return read_entry(rows[0][0]) if rows else None


def put_entry(connection: BackendConnection, entry: AlertEntry) -> None:
    """Write a row of the history."""
    at = entry.notification.at
    body = {**entry.notification.to_json(), "silenced": entry.is_silenced, "deliveries": dict(entry.deliveries)}
    connection.execute(_PUT, (_ENTRY + entry.notification.id, json.dumps(body), at))


def read_entry(body: str) -> AlertEntry:
    """Return a stored row of the history."""
    values = json.loads(body)
    return AlertEntry(Notification.from_json(values), bool(values.get("silenced")), values.get("deliveries") or {})


def _state(query: Query, rule: str, scope: str) -> AlertState:
    """Return the state in a scope; a silence of the rule holds in all of them."""
    rows = {one: query(_ONE, (_state_topic(rule, one),)) for one in {"", scope}}
    states = {one: AlertState.from_json(json.loads(found[0][0])) for one, found in rows.items() if found}
    whole = states.get("", AlertState())
    return replace(states.get(scope, AlertState()), silenced_until=whole.silenced_until)


def _state_topic(rule: str, scope: str) -> str:
    return f"{_STATE}{rule}/{scope}"


WAITING: Final[Mapping[str, Any]] = {"state": "waiting", "attempts": 0}
