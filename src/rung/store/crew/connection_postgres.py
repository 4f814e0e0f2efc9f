"""PostgreSQL connection to a crew's table, for crews on several machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import IllegalTransition, StoreError, StoreUnavailable
from rung.store.backends.postgres import WRITER_SETTINGS, PostgresBackend, PostgresConnection
from rung.store.crew import conductor_key, schema
from rung.store.crew.connection import transaction
from rung.store.crew.schema_postgres import postgres_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Row

# A stopped client that is in a transaction blocks all writers of the crew. Its transactions are short.
_CREW_SETTINGS: Final = f"{WRITER_SETTINGS}; SET idle_in_transaction_session_timeout = '10s'"
_HAS_TABLES: Final = "SELECT to_regclass('orchestration_tasks') IS NOT NULL AND to_regclass('crew_facts') IS NOT NULL"


class PostgresCrewConnection:
    """Connection to one schema of one database; a journal may share the schema.

    A lost connection is opened again by the next statement, unless a transaction was lost with it.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self._backend = _CrewBackend(url, create=create)
        self.url = self._backend.url
        self._inner = self._connect()
        self._in_transaction = False

    def _connect(self) -> PostgresConnection:
        try:
            return self._backend.connect(write=True)
        except StoreError as error:
            if _is_away(str(error)):
                raise StoreUnavailable(str(error)) from None
            raise

    def _reopen_if_lost(self) -> None:
        if self._inner.raw.closed and not self._in_transaction:
            try:
                self._inner = self._connect()
            except StoreError as error:
                raise StoreUnavailable(str(error)) from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows; a trigger's rejection raises IllegalTransition."""
        import psycopg

        self._reopen_if_lost()
        try:
            return self._inner.execute(sql, [str(value) if isinstance(value, str) else value for value in values])
        except psycopg.errors.RaiseException as error:
            raise IllegalTransition((error.diag.message_primary or "").removeprefix("rung: ")) from None

    def verify(self, *, full: bool = False) -> None:
        """Do nothing: only the owner of the tables can change their triggers; workers connect as another role."""

    def begin(self) -> None:
        """Begin a write transaction; blocks other writers."""
        self._reopen_if_lost()
        self._inner.begin()
        self._in_transaction = True

    def commit(self) -> None:
        """Commit durably."""
        self._inner.commit()
        self._in_transaction = False

    def rollback(self) -> None:
        """Roll back."""
        self._in_transaction = False
        self._inner.rollback()

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


def _is_away(message: str) -> bool:
    """Return whether a failure to connect passes: no server answers yet, or it starts, stops or has no free connection.

    libpq gives no code for it. A server that answers and refuses says FATAL: a password, a role or a database is wrong.
    """
    text = message.lower()
    passing = ("the database system is", "terminating connection", "too many clients", "connection slots")
    return "connection" in text and ("fatal:" not in text or any(phrase in text for phrase in passing))


class _CrewBackend(PostgresBackend):
    """The journal's PostgreSQL backend, set up for a crew's tables."""

    def __init__(self, url: str, *, create: bool) -> None:
        super().__init__(url)
        self._create = create

    def _set_up(self, connection: PostgresConnection, *, write: bool) -> None:
        del write
        encoding = connection.raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.url}: the database encoding is {encoding}; a crew table needs UTF8")
        connection.raw.execute(f"SET search_path TO {self.schema}; {_CREW_SETTINGS}")
        if self._create:
            self._ensure_schema(connection)
            self._create_tables(connection)
        if not _has_tables(connection):
            raise StoreError(
                f"{self.url}: there is no crew table yet; create it with: rung crew init --db and this URL"
            )
        version = connection.execute("SELECT value FROM crew_facts WHERE name = 'version'")
        if problem := schema.version_problem(str(version[0][0]) if version else ""):
            raise StoreError(f"{self.url}: {problem}")

    def _create_tables(self, connection: PostgresConnection) -> None:
        with transaction(connection):
            if not _has_tables(connection):  # another process may have created it first
                for statement in postgres_statements(conductor_key.create_key()):
                    connection.execute(statement)


def _has_tables(connection: PostgresConnection) -> bool:
    return connection.execute(_HAS_TABLES) == [(True,)]
