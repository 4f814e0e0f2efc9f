"""An open crew table, with the operations of all roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain.errors import ConfigError
from rung.store.crew.conductor_lease import LeaseCommands
from rung.store.crew.conductor_queries import ConductorQueries
from rung.store.crew.connection import SqliteCrewConnection
from rung.store.crew.patient_connection import PatientConnection
from rung.store.crew.table_patience import MAX_PAUSE_SECONDS, patiently

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from rung.store.crew.connection import CrewConnection


class CrewTable(LeaseCommands, ConductorQueries):
    """A crew's table. Used by one thread; `clone` opens another connection for another thread."""

    def __init__(self, connection: CrewConnection, reconnect: Callable[[], CrewConnection]) -> None:
        self.connection = connection
        self.location = connection.url
        self._reconnect = reconnect

    @classmethod
    def open(
        cls,
        location: str,
        *,
        create: bool = False,
        clock: Callable[[], float] | None = None,
        patience: float = 0.0,
        longest_pause: float = MAX_PAUSE_SECONDS,
        log: Callable[[str], None] = lambda _: None,
    ) -> CrewTable:
        """Open the table at a path (SQLite) or a `postgresql://` URL; `clock` simulates time, on SQLite only.

        `patience` is for how many seconds it waits for a table that is away, instead of raising StoreUnavailable;
        `longest_pause` is the longest one between two tries.
        """

        def connect_patiently(*, create: bool = False) -> CrewConnection:
            if not patience:
                return connect(create=create)
            opened = patiently(lambda: connect(create=create), log, patience, longest_pause=longest_pause)
            return PatientConnection(opened, patience, log, longest_pause)

        def connect(*, create: bool = False) -> CrewConnection:
            if not str(location).startswith(("postgresql://", "postgres://")):
                return SqliteCrewConnection(str(location), create=create, clock=clock)
            if clock is not None:
                raise ConfigError("clock", clock, "None with PostgreSQL, which uses the server's time")
            from rung.store.crew.connection_postgres import PostgresCrewConnection

            return PostgresCrewConnection(str(location), create=create)

        return cls(connect_patiently(create=create), connect_patiently)

    def clone(self) -> CrewTable:
        """Open the table again, for another thread, with the fence of this one."""
        clone = CrewTable(self._reconnect(), self._reconnect)
        clone.fence(self._term, self._lease_seconds)
        return clone

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
