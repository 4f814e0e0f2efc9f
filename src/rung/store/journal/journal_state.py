"""State of a journal for a diagnosis: read without migrating or changing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.store.backends.migrations import schema_version

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, StoreBackend

BUSY_TIMEOUT_MS: Final = 500
_LAST_EVENT: Final = "SELECT at FROM event ORDER BY seq DESC LIMIT 1"


class JournalState(NamedTuple):
    """Schema version, size, and the time of the last event; None if there is none."""

    schema: int
    size_bytes: int
    last_event_at: float | None


def journal_state(where: str) -> JournalState:
    """Return the state of an existing journal. Raises StoreError or StoreUnavailable if it cannot be read."""
    backend = _backend(where)
    connection = backend.connect(write=False)
    try:
        return JournalState(schema_version(connection), backend.size(), _last_event_at(connection))
    finally:
        connection.close()


def _backend(where: str) -> StoreBackend:
    if where.startswith(("postgresql://", "postgres://")):
        from rung.store.backends.postgres import PostgresBackend

        return PostgresBackend(where)
    from rung.store.backends.sqlite import SqliteBackend

    return SqliteBackend(where, busy_timeout_ms=BUSY_TIMEOUT_MS)


def _last_event_at(connection: BackendConnection) -> float | None:
    rows = connection.execute(_LAST_EVENT)
    return float(rows[0][0]) if rows else None
