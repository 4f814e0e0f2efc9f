"""Recorded calls: what is needed to make a failed call again, sealed under this account's key, for a limited time.

One message `call/SESSION/INCIDENT` each, with the session's name as a digest. Only the way in and the end of its time are
readable without the key. The last few of a session are kept.
"""

from __future__ import annotations

import json
import time
from binascii import b2a_base64
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from rung.store import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

GATEWAY: Final = "gateway"
COMMAND: Final = "run"
MAX_PER_SESSION: Final = 5
_SWEEP_SECONDS: Final = 3_600.0  # between two deletions of expired calls by one process
_ALL: Final = ("call/", "call0")  # the range of their topics
_sweeps: Final[WeakKeyDictionary[Journal, float]] = WeakKeyDictionary()  # when a journal was swept last


class RecordedCall(NamedTuple):
    """Call of an incident: its way in, and what that way in needs to make it again."""

    way_in: str
    content: Mapping[str, Any]


def command_table(words: Sequence[str], folder: str, path: str, host: str, given: bytes) -> dict[str, Any]:
    """Return the content of a recorded command of `rung`: its words, directory, search path, machine and standard input."""
    text = b2a_base64(given, newline=False).decode()
    return {"words": list(words), "folder": folder, "path": path, "host": host, "given": text}


def record_call(
    journal: Journal, session: str, incident: str, call: RecordedCall, keep_seconds: float, now: float | None = None
) -> None:
    """Record the call of an incident. Blocks until it is durable."""
    at = time.time() if now is None else now
    topic = _topic(session, incident)
    sealed = journal.key.seal(json.dumps(dict(call.content)), _place(incident))
    body = json.dumps({"way_in": call.way_in, "until": at + keep_seconds, "sealed": sealed})

    def work(connection: BackendConnection) -> None:
        connection.execute(
            "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
            " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
            (topic, body, at),
        )
        _delete_surplus(connection, session)

    journal.write(
        work, lambda connection: bool(connection.execute("SELECT 1 FROM message WHERE topic = ?", (topic,)))
    ).result()
    forget_expired(journal, keep_seconds, at)


def forget_expired(journal: Journal, keep_seconds: float, now: float) -> None:
    """Delete the calls whose time is over; does nothing if this process did so a while ago."""
    if now - _sweeps.get(journal, 0.0) > _SWEEP_SECONDS:
        _sweeps[journal] = now
        journal.write(
            lambda connection: connection.execute(
                "DELETE FROM message WHERE topic >= ? AND topic < ? AND at < ?", (*_ALL, now - keep_seconds)
            ),
            lambda _: False,
        ).result()


def recorded_way_in(journal: Journal, session: str, incident: str, now: float | None = None) -> str:
    """Return the way in of an incident's recorded call; empty if none is kept. Needs no key."""
    body = _find(journal, session, incident, now)
    return "" if body is None else str(body["way_in"])


def recorded_call(journal: Journal, session: str, incident: str, now: float | None = None) -> RecordedCall | None:
    """Return the recorded call of an incident; None if none is kept. Raises SealedElsewhere under another key."""
    body = _find(journal, session, incident, now)
    if body is None:
        return None
    return RecordedCall(body["way_in"], json.loads(journal.key.unseal(body["sealed"], _place(incident))))


def forget_call(connection: BackendConnection, session: str, incident: str) -> None:
    """Delete the recorded call of an incident that is pruned."""
    connection.execute("DELETE FROM message WHERE topic = ?", (_topic(session, incident),))


def _find(journal: Journal, session: str, incident: str, now: float | None) -> dict[str, Any] | None:
    body = messages.latest(journal, _topic(session, incident))
    at = time.time() if now is None else now
    return body if isinstance(body, dict) and body["until"] > at else None


def _delete_surplus(connection: BackendConnection, session: str) -> None:
    start = f"call/{_digest(session)}/"
    connection.execute(
        "DELETE FROM message WHERE topic >= ? AND topic < ? AND topic NOT IN ("
        "SELECT topic FROM message WHERE topic >= ? AND topic < ? ORDER BY at DESC LIMIT ?)",
        (start, start[:-1] + "0", start, start[:-1] + "0", MAX_PER_SESSION),
    )


def _topic(session: str, incident: str) -> str:
    return f"call/{_digest(session)}/{incident}"


def _digest(session: str) -> str:
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _place(incident: str) -> str:
    return f"incident {incident!r}, call"
