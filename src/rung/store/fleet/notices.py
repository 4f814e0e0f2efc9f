"""Notices to a webhook: of several services on one journal, one sends each.

The message `notice/ITEM` says who sends it, or that it was sent. A service that dies while it sends leaves it to another.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.store.fleet.database_clock import time_in

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

SEND_SECONDS: Final = 60.0  # more than a request to a webhook may take
KEEP_SECONDS: Final = 30 * 86_400.0  # an item is no longer in the inbox then
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)
_FORGET: Final = "DELETE FROM message WHERE topic >= 'notice/' AND topic < 'notice0' AND at < ?"


class NoticeState(StrEnum):
    """Who sends a notice."""

    MINE = "mine"
    SENDING = "sending"  # another service is about to send it
    SENT = "sent"


def claim_notice(journal: Journal, item: str, holder: str, now: float | None = None) -> NoticeState:
    """Become the service that sends the notice of an item, unless another one is, or it was sent."""

    def work(connection: BackendConnection) -> NoticeState:
        at, stored = time_in(connection, now), _stored(connection, item)
        if stored.get("sent"):
            return NoticeState.SENT
        if stored.get("by", holder) != holder and at < float(stored["until"]):
            return NoticeState.SENDING
        connection.execute(_FORGET, (at - KEEP_SECONDS,))
        connection.execute(_PUT, (_topic(item), json.dumps({"by": holder, "until": at + SEND_SECONDS}), at))
        return NoticeState.MINE

    def present(connection: BackendConnection) -> bool:
        return _stored(connection, item).get("by") == holder

    return journal.write(work, present).result()


def settle_notice(journal: Journal, item: str, holder: str, *, sent: bool, now: float | None = None) -> None:
    """Say that the notice was sent, or leave it to any service."""

    def work(connection: BackendConnection) -> None:
        if sent:
            connection.execute(_PUT, (_topic(item), json.dumps({"sent": True}), time_in(connection, now)))
        elif _stored(connection, item).get("by") == holder:
            connection.execute("DELETE FROM message WHERE topic = ?", (_topic(item),))

    journal.write(work, lambda connection: _stored(connection, item).get("by") != holder).result()


def _stored(connection: BackendConnection, item: str) -> dict[str, Any]:
    rows = connection.execute("SELECT body FROM message WHERE topic = ?", (_topic(item),))
    return dict(json.loads(rows[0][0])) if rows else {}


def _topic(item: str) -> str:
    return f"notice/{item}"
