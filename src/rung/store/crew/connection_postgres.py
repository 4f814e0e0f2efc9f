"""A connection to a crew's table in PostgreSQL: for crews on several machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import IllegalTransition, StoreError
from rung.store.backends.postgres import WRITER, PostgresBackend, PostgresConnection
from rung.store.crew import schema
from rung.store.crew.connection import transaction
from rung.store.crew.schema_postgres import postgres_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Row

_THERE: Final = "SELECT to_regclass('orchestration_tasks') IS NOT NULL AND to_regclass('crew_facts') IS NOT NULL"


class PostgresCrewConnection:
    """One schema of one database; a journal may be in it, too."""

    def __init__(self, url: str, *, create: bool) -> None:
        backend = _Backend(url, create=create)
        self.url = backend.url
        self._inner = backend.connect(write=True)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows. What the table refuses is an illegal move."""
        import psycopg

        try:
            return self._inner.execute(sql, [str(value) if isinstance(value, str) else value for value in values])
        except psycopg.errors.RaiseException as error:
            raise IllegalTransition((error.diag.message_primary or "").removeprefix("rung: ")) from None

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        self._inner.begin()

    def commit(self) -> None:
        """Make it durable."""
        self._inner.commit()

    def rollback(self) -> None:
        """Take it back."""
        self._inner.rollback()

    def close(self) -> None:
        """Give it up."""
        self._inner.close()


class _Backend(PostgresBackend):
    """The journal's way to a server, to another kind of tables."""

    def __init__(self, url: str, *, create: bool) -> None:
        super().__init__(url)
        self._create = create

    def _set_up(self, connection: PostgresConnection, *, write: bool) -> None:
        del write
        encoding = connection.raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.url}: the database's encoding is {encoding}; a crew's table needs UTF8")
        connection.raw.execute(f"SET search_path TO {self.schema}; {WRITER}")
        if self._create:
            self._own_schema(connection)
            self._make(connection)
        if not _there(connection):
            raise StoreError(f"{self.url}: there is no crew's table yet: rung crew init --db with this URL")
        version = connection.execute("SELECT value FROM crew_facts WHERE name = 'version'")
        if version != [(str(schema.VERSION),)]:
            raise StoreError(f"{self.url}: is of another version of Rung ({version}); this one knows {schema.VERSION}")

    def _make(self, connection: PostgresConnection) -> None:
        with transaction(connection):
            if not _there(connection):  # of several who come at once, one makes it
                for statement in postgres_statements():
                    connection.execute(statement)


def _there(connection: PostgresConnection) -> bool:
    return connection.execute(_THERE) == [(True,)]
