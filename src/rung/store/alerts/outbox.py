"""Notifications that a channel has not got yet: claimed by one process at a time, tried again after a while, then given up.

A claim has an end, so that a notification whose process died is sent by another one. It may be sent twice then; its id is the
same, and services with a deduplication key show it once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.alerts.notifications import Notification
from rung.store.fleet.database_clock import time_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rung.store.backends.port import BackendConnection, Database, Readable, Row

RETRY_SECONDS: Final = (5.0, 30.0, 120.0, 600.0)  # after each failed attempt; then it is given up
_ALL: Final = (
    "SELECT topic, body, at FROM message WHERE topic >= 'alert-send/' AND topic < 'alert-send0' ORDER BY at, topic"
)
_ENTRY: Final = "SELECT body FROM message WHERE topic = ?"
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)


class Claim(NamedTuple):
    """Notification that this process sends to a channel now; `attempt` counts from 1."""

    topic: str
    channel: str
    attempt: int
    notification: Notification


class _Waiting(NamedTuple):
    topic: str
    channel: str
    body: dict[str, Any]
    at: float


def queue_notification(connection: BackendConnection, channel: str, made: Notification, at: float) -> None:
    """Leave a notification for a channel, inside the transaction that decided it."""
    body = {"alert": made.alert, "entry": made.id, "attempts": 0, "due": at}
    connection.execute(_PUT, (f"alert-send/{channel}/{made.id}", json.dumps(body), at))


def has_due(journal: Readable, channels: Collection[str], now: float) -> bool:
    """Return whether a notification waits that one of these channels may get now."""
    return next(_due(journal.read(_ALL), channels, now), None) is not None


def claim_next(
    journal: Database, channels: Collection[str], holder: str, seconds: float, *, now: float | None = None
) -> Claim | None:
    """Become the process that sends the oldest due notification, for `seconds`; None if there is none."""

    def work(connection: BackendConnection) -> Claim | None:
        at = time_in(connection, now)
        for waiting in _due(connection.execute(_ALL), channels, at, holder):
            entry = connection.execute(_ENTRY, (f"alert-entry/{waiting.body['entry']}",))
            if not entry:  # older than the history
                connection.execute("DELETE FROM message WHERE topic = ?", (waiting.topic,))
                continue
            made = _readable(entry[0][0])
            if made is None:
                continue  # a newer process sends it
            body = {**waiting.body, "by": holder, "until": at + seconds}
            connection.execute(_PUT, (waiting.topic, json.dumps(body), waiting.at))
            return Claim(waiting.topic, waiting.channel, int(body["attempts"]) + 1, made)
        return None

    # An unknown outcome is claimed again: the claim is the same holder's.
    return journal.write(work, lambda _connection: False).result()


def _readable(body: str) -> Notification | None:
    """Return the notification of a row of the history; None if a newer version wrote it and this one cannot show it."""
    try:
        return Notification.from_json(json.loads(body))
    except (KeyError, TypeError, ValueError):
        return None


def _due(rows: Iterable[Row], channels: Collection[str], now: float, holder: str = "") -> Iterator[_Waiting]:
    """Yield what may be sent now, the oldest first. The end of an alert waits for its beginning."""
    begun: set[tuple[str, str]] = set()
    for topic, text, at in rows:
        channel, body = topic.split("/")[1], json.loads(text)
        before, key = len(begun), (channel, body["alert"])
        begun.add(key)
        is_free = body.get("until", 0.0) <= now or body.get("by") == holder
        if len(begun) > before and channel in channels and is_free and body["due"] <= now:
            yield _Waiting(topic, channel, body, at)


def record_delivery(journal: Database, claim: Claim, holder: str, error: str = "", *, now: float | None = None) -> None:
    """Record that a claimed notification was sent, or why not; then it is tried again later, or given up."""

    def work(connection: BackendConnection) -> None:
        at = time_in(connection, now)
        rows = connection.execute("SELECT body, at FROM message WHERE topic = ?", (claim.topic,))
        body = json.loads(rows[0][0]) if rows else {}
        if body.get("by") != holder or int(body["attempts"]) != claim.attempt - 1:
            return  # another process has taken it over
        is_last = claim.attempt > len(RETRY_SECONDS)
        if error and not is_last:
            due = at + RETRY_SECONDS[claim.attempt - 1]
            waiting = {**body, "attempts": claim.attempt, "due": due, "by": "", "until": 0.0}
            connection.execute(_PUT, (claim.topic, json.dumps(waiting), rows[0][1]))
        else:
            connection.execute("DELETE FROM message WHERE topic = ?", (claim.topic,))
        state = "sent" if not error else "failed" if is_last else "waiting"
        _note_delivery(connection, claim, {"state": state, "attempts": claim.attempt, "at": at, "error": error})

    def present(connection: BackendConnection) -> bool:
        rows = connection.execute("SELECT body FROM message WHERE topic = ?", (claim.topic,))
        return not rows or int(json.loads(rows[0][0])["attempts"]) >= claim.attempt

    journal.write(work, present).result()


def _note_delivery(connection: BackendConnection, claim: Claim, delivery: dict[str, Any]) -> None:
    """Record a delivery in the history of its notification."""
    topic = f"alert-entry/{claim.notification.id}"
    rows = connection.execute("SELECT body, at FROM message WHERE topic = ?", (topic,))
    if rows:
        entry = json.loads(rows[0][0])
        entry["deliveries"] = {**entry.get("deliveries", {}), claim.channel: delivery}
        connection.execute(_PUT, (topic, json.dumps(entry), rows[0][1]))
