"""Store: the journal of recovery events, its back ends, the read models derived from it, and all SQL queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal


def open_journal(where: str | Path, **settings: Any) -> Journal:
    """Open the journal at a path (SQLite) or a `postgresql://` URL."""
    from rung.store.journal.journal import Journal

    if str(where).startswith(("postgresql://", "postgres://")):
        from rung.store.backends.postgres import PostgresBackend

        return Journal(PostgresBackend(str(where)), **settings)
    from rung.store.backends.sqlite import SqliteBackend

    return Journal(SqliteBackend(where), **settings)
