"""Tokens of sessions, added up in the journal: one message `usage/SESSION` each. Estimates are made from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.call_costs import SessionUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.store.backends.port import BackendConnection, Database, Readable, Row

_TOPIC: Final = "usage/"


def session_usage(journal: Readable, session: str) -> SessionUsage:
    """Return the usage of a session; zero if none is recorded."""
    return _read(journal.read, session)


def add_usage(journal: Database, used: Mapping[str, SessionUsage], now: float) -> None:
    """Add to the usage of sessions; several processes may share a journal."""

    def work(connection: BackendConnection) -> None:
        for session, more in used.items():
            total = _read(connection.execute, session).plus(more)
            connection.execute(
                "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
                " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
                (_TOPIC + session, json.dumps(total), now),
            )

    def present(connection: BackendConnection) -> bool:
        topic = _TOPIC + next(iter(used))
        return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (topic, now)))

    if used:
        journal.write(work, present).result()


def _read(query: Callable[[str, Sequence[Any]], list[Row]], session: str) -> SessionUsage:
    rows = query("SELECT body FROM message WHERE topic = ?", (_TOPIC + session,))
    counts = json.loads(rows[0][0]) if rows else []  # fewer of an older version, more of a newer one
    return SessionUsage(*counts[: len(SessionUsage._fields)])
