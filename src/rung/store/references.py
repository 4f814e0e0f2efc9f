"""Replacements of ids that a provider does not have, sealed: they contain answers of models and requests of clients.

Each one is a message, `reference/CALLER/ID`. The newest are kept, for as long as providers keep their responses.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import SealedElsewhere, StoreDamaged
from rung.core.domain.failures import short_hash
from rung.store.sealing import JournalKey

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from rung.store.backends.port import BackendConnection, Database, Readable

MAX_REFERENCES: Final = 5_000
KEEP_SECONDS: Final = 30 * 86_400.0
_PREFIX: Final = "reference/"
_RANGE: Final = "topic >= 'reference/' AND topic < 'reference0'"
_OLDEST_KEPT: Final = f"SELECT at FROM message WHERE {_RANGE} ORDER BY at DESC LIMIT 1 OFFSET ?"  # noqa: S608  # no input


class StoredReference(NamedTuple):
    """Replacement of an id of a caller, and when it was stored."""

    name: str  # caller and id, as `name_of` writes them
    replacement: Any
    at: float


def name_of(caller: str, id: str) -> str:  # noqa: A002  # the id of a response or an item
    """Return the name of a reference; it does not reveal the caller's credential."""
    return f"{short_hash(caller, 8)}/{id}"


def store_references(
    database: Database,
    found: Mapping[str, Any],
    at: float,
    most: int = MAX_REFERENCES,
    forgotten: Iterable[str] = (),
) -> None:
    """Store what stands for ids, by name, and delete `forgotten` ones and all but the newest `most`; return when durable."""
    key = JournalKey()
    rows = [(_PREFIX + name, json.dumps(key.seal(json.dumps(value), name)), at) for name, value in found.items()]

    def work(connection: BackendConnection) -> None:
        for row in rows:
            connection.execute(
                "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
                " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
                row,
            )
        for name in forgotten:
            connection.execute("DELETE FROM message WHERE topic = ?", (_PREFIX + name,))
        connection.execute(
            f"DELETE FROM message WHERE {_RANGE} AND (at < ? OR at < ({_OLDEST_KEPT}))",  # noqa: S608  # no input
            (at - KEEP_SECONDS, most - 1),
        )

    database.write(work, lambda connection: _is_present(connection, rows[0][0], at)).result()


def _is_present(connection: BackendConnection, topic: str, at: float) -> bool:
    return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (topic, at)))


def load_references(database: Readable, since: float, known: Container[str] = ()) -> list[StoredReference]:
    """Return the references stored since a time, the oldest first, without known ones and those of another key."""
    names = f"SELECT topic FROM message WHERE {_RANGE} AND at >= ?"  # noqa: S608  # no input
    if all(topic.removeprefix(_PREFIX) in known for (topic,) in database.read(names, (since,))):
        return []  # most often nothing is new, and bodies are large
    sql = f"SELECT topic, body, at FROM message WHERE {_RANGE} AND at >= ? ORDER BY at"  # noqa: S608  # no input
    key = JournalKey()
    found = []
    for topic, body, at in database.read(sql, (since,)):
        name = topic.removeprefix(_PREFIX)
        if name not in known:
            with suppress(SealedElsewhere, StoreDamaged):
                found.append(StoredReference(name, json.loads(key.unseal(json.loads(body), name)), at))
    return found
