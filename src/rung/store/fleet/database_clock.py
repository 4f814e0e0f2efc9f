"""Clock of the database, which all executors of a fleet share: the clocks of their hosts may differ.

SQLite has no server: its processes are on one machine and share that machine's clock.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rung.store.backends.postgres import PostgresBackend, PostgresConnection

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

# Not now(): that is the start of the transaction, which may have waited for the write lock since.
_CLOCK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


def time_in(connection: BackendConnection, now: float | None = None) -> float:
    """Return `now`, or the time on the clock of the database that a write transaction is in."""
    if now is not None:
        return now
    return float(connection.execute(_CLOCK)[0][0]) if isinstance(connection, PostgresConnection) else time.time()


def time_of(journal: Journal, now: float | None = None) -> float:
    """Return `now`, or the time on the clock of the journal's database."""
    if now is not None:
        return now
    return float(journal.read(_CLOCK)[0][0]) if isinstance(journal.backend, PostgresBackend) else time.time()
