"""The journal: every event of every recovery, kept before anything is done about it, and what is read off it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal


def open_journal(where: str | Path, **settings: Any) -> Journal:
    """The journal at a path (SQLite) or a `postgresql://` URL."""
    from rung.store.journal.journal import Journal

    if str(where).startswith(("postgresql://", "postgres://")):
        from rung.store.backends.postgres import PostgresBackend

        return Journal(PostgresBackend(str(where)), **settings)
    from rung.store.backends.sqlite import SqliteBackend

    return Journal(SqliteBackend(where), **settings)
