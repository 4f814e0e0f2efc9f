"""The table a crew shares, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain.errors import ConfigError
from rung.store.crew.conductor_commands import ConductorCommands
from rung.store.crew.conductor_queries import ConductorQueries
from rung.store.crew.connection import SqliteCrewConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from rung.store.crew.connection import CrewConnection


class CrewTable(ConductorCommands, ConductorQueries):
    """A crew's table. Used by one thread; `clone` gives another thread its own."""

    def __init__(self, connection: CrewConnection, again: Callable[[], CrewConnection]) -> None:
        self.connection = connection
        self.location = connection.url
        self._again = again

    @classmethod
    def open(cls, place: str, *, create: bool = False, clock: Callable[[], float] | None = None) -> CrewTable:
        """The table at a path (SQLite) or a `postgresql://` URL; `clock`: simulated time, on SQLite alone."""

        def connect(*, create: bool = False) -> CrewConnection:
            if not str(place).startswith(("postgresql://", "postgres://")):
                return SqliteCrewConnection(str(place), create=create, clock=clock)
            if clock is not None:
                raise ConfigError("clock", clock, "nothing, in PostgreSQL: its time is the server's")
            from rung.store.crew.connection_postgres import PostgresCrewConnection

            return PostgresCrewConnection(str(place), create=create)

        return cls(connect(create=create), connect)

    def clone(self) -> CrewTable:
        """The same table, for another thread."""
        return CrewTable(self._again(), self._again)

    def close(self) -> None:
        """Give it up."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
