"""PostgreSQL back end, for several machines. A commit is durable on the server before it is acknowledged."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet, finalize

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.store.backends.migrations import LATEST_VERSION, check_version, migrate, schema_version
from rung.store.backends.text_values import storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import Row

DEFAULT_SCHEMA: Final = "rung"  # unless the URL's options set a search_path
MAX_IDLE_READERS: Final = 4  # kept open for the next query
ADVISORY_LOCK_ID: Final = (
    0x52554E47  # "RUNG": first half of the advisory lock's key; the second is a hash of the schema
)
INSUFFICIENT_PRIVILEGE: Final = "42501"  # SQLSTATE
SQL_TYPES: Final = {
    "strict": "",
    "real": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
# A dead server is detected within a minute instead of the operating system's two hours.
CONNECT_DEFAULTS: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "fallback_application_name": "rung",
}
# A client that hangs or is cut off in mid-transaction blocks all other writers. The server ends its session long before the
# leases of runs expire, which nobody can renew meanwhile.
MAX_IDLE_IN_TRANSACTION_SECONDS: Final = 5
WRITER_SETTINGS: Final = (
    f"SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '{MAX_IDLE_IN_TRANSACTION_SECONDS}s';"
    # A host that vanished sends no end of its connection. The server asks for it after seconds instead of two hours.
    " SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '10s';"
    " SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
READER_SETTINGS: Final = "SET default_transaction_read_only = on; SET statement_timeout = '30s'"


class PostgresBackend:
    """One schema of one database, which any number of processes and machines may share."""

    def __init__(self, url: str, *, writer_settings: str = WRITER_SETTINGS) -> None:
        self._writer_settings = writer_settings
        self._options = _options(url)
        self.url = _without_password(self._options)
        self.schema = _schema(str(self._options.get("options", "")), self.url)
        self._idle: list[PostgresConnection] = []
        finalize(self, _close_idle, self._idle)

    def connect(self, *, write: bool) -> PostgresConnection:
        """Open a connection; a writable one migrates the schema. Readers come from the pool when possible."""
        import psycopg

        if not write and (idle := self._take_idle()):
            return idle
        raw = None
        try:
            raw = psycopg.connect(**{**CONNECT_DEFAULTS, **self._options}, autocommit=True, client_encoding="UTF8")
            connection = PostgresConnection(raw, self.schema, self._idle, is_reader=not write)
            self._set_up(connection, write=write)
        except psycopg.Error as error:
            if raw is not None:
                raw.close()
            raise StoreError(f"{self.url}: {_one_line(error)}") from None
        except BaseException:
            if raw is not None:
                raw.close()
            raise
        return connection

    def size(self) -> int:
        """Return the size in bytes of the schema's tables and indexes."""
        reader = self.connect(write=False)
        try:
            ((size,),) = reader.execute(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            )
        finally:
            reader.close()
        return int(size)

    def _take_idle(self) -> PostgresConnection | None:
        """Return an idle reader whose server responds and whose schema version is current; None when there is none."""
        import psycopg

        while True:
            try:
                reader = self._idle.pop()
            except IndexError:
                return None
            if reader.pid == os.getpid():  # a connection from before a fork belongs to the parent
                with suppress(StoreUnavailable, psycopg.Error):
                    if reader.execute("SELECT version FROM rung_schema") == [(LATEST_VERSION,)]:
                        return reader
                reader.raw.close()

    def _set_up(self, connection: PostgresConnection, *, write: bool) -> None:
        raw = connection.raw
        encoding = raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.url}: the database's encoding is {encoding}; a journal needs UTF8")
        raw.adapters.register_loader("numeric", _number_loader())
        raw.execute(f"SET search_path TO {self.schema}; {self._writer_settings if write else READER_SETTINGS}")
        if write:
            self._migrate(connection)
        elif schema_version(connection) == 0:
            raise StoreError(f"{self.url}: there is no journal yet (schema {self.schema})")
        else:
            check_version(connection, self.url)

    def _migrate(self, connection: PostgresConnection) -> None:
        """Create or migrate the schema; a role without the right to is told who has it."""
        try:
            self._ensure_schema(connection)
            migrate(connection, self.url, SQL_TYPES)
        except StoreUnavailable as error:
            if getattr(error.__cause__, "sqlstate", "") != INSUFFICIENT_PRIVILEGE:
                raise
            raise StoreError(
                f"{self.url}: {error}; this role may not create or migrate the schema {self.schema}:"
                " its owner does, with `rung fleet init`"
            ) from None

    def _ensure_schema(self, connection: PostgresConnection) -> None:
        """Create the schema when it is missing. IF NOT EXISTS alone needs the CREATE right even when it exists."""
        missing = f"SELECT 1 WHERE to_regnamespace('{self.schema}') IS NULL"
        if connection.execute(missing):
            connection.begin()  # the lock: of two concurrent CREATE SCHEMA statements, one fails
            try:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
                connection.commit()
            except BaseException:
                connection.rollback()
                raise


class PostgresConnection:
    """psycopg connection that accepts `?` placeholders and raises StoreUnavailable for transient errors."""

    def __init__(self, raw: Any, schema: str, idle: list[PostgresConnection], *, is_reader: bool) -> None:
        self.raw = raw
        self.pid = os.getpid()
        _register_fork_hook()
        _OPEN.add(self)
        self._idle = idle  # the pool to which a closed reader returns
        self._is_reader = is_reader
        self._pending_savepoints: list[
            str
        ] = []  # savepoint commands, sent with the next statement to save a round trip
        # Sequence numbers are assigned on insert but visible on commit. If two transactions inserted concurrently,
        # a reader that follows by `seq > last` could see 8 before 7 and never see 7. Therefore an advisory lock
        # serialises writers, as in SQLite, and what a transaction reads stays true until it writes. The lock ends
        # with the transaction, even when the process dies. READ COMMITTED is required, whatever the database's
        # default: a stricter level would keep the snapshot from before the lock was acquired.
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
            f" SELECT pg_advisory_xact_lock({ADVISORY_LOCK_ID}, hashtext('{schema}'))"
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        if sql.startswith(("SAVEPOINT ", "RELEASE SAVEPOINT ")):
            self._pending_savepoints.append(sql)
            return []
        import psycopg

        try:
            self._send_savepoints()
            cursor = self.raw.execute(_to_psycopg(sql), storable(values)) if values else self.raw.execute(sql)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise _to_store_error(error) from error

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        import psycopg

        try:
            self._send_savepoints()
            if len(rows) > 1:
                self.raw.cursor().executemany(_to_psycopg(sql), [storable(row) for row in rows[:-1]])
            if rows:  # not in a pipeline, after which the server would not end a session that hangs
                self.raw.execute(_to_psycopg(sql), storable(rows[-1]))
        except psycopg.Error as error:
            raise _to_store_error(error) from error

    def _send_savepoints(self) -> None:
        if self._pending_savepoints:
            commands, self._pending_savepoints = "; ".join(self._pending_savepoints), []
            self.raw.execute(commands)

    def begin(self) -> None:
        """Begin a write transaction; the advisory lock excludes all other writers until it ends."""
        try:
            self.execute(self._begin)
        except BaseException:
            self.rollback()
            raise

    def commit(self) -> None:
        """Commit durably. After an error the outcome is unknown."""
        import psycopg

        self._pending_savepoints.clear()
        try:
            status = self.raw.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            raise _to_store_error(error) from error
        if status != "COMMIT":  # the server rolled back, after an error that was swallowed
            raise StoreUnavailable(f"nothing was committed: the server reports {status}")

    def rollback(self) -> None:
        """Roll back; a lost connection already has."""
        from psycopg.pq import TransactionStatus

        self._pending_savepoints.clear()
        if self.raw.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            with suppress(StoreUnavailable):
                self.execute("ROLLBACK")

    def close(self) -> None:
        """Close it; a healthy reader returns to the pool."""
        from psycopg.pq import TransactionStatus

        is_healthy = self.raw.info.transaction_status == TransactionStatus.IDLE
        if self._is_reader and is_healthy and len(self._idle) < MAX_IDLE_READERS:
            self._idle.append(self)
            return
        if not self._is_reader:  # a process that stops writing seldom reads on
            _close_idle(self._idle)
        self.raw.close()


def _close_idle(idle: list[PostgresConnection]) -> None:
    """Close idle readers, except those inherited from a parent process."""
    with suppress(IndexError):
        while True:
            reader = idle.pop()
            if reader.pid == os.getpid():
                reader.raw.close()


# -- values and errors --------------------------------------------------------------------------------


_LITERALS_AND_PLACEHOLDERS: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\?")


@lru_cache(maxsize=1024)
def _to_psycopg(sql: str) -> str:
    """Replace each `?` outside of literals by psycopg's `%s`."""
    return _LITERALS_AND_PLACEHOLDERS.sub(lambda part: "%s" if part[0] == "?" else part[0], sql.replace("%", "%%"))


@lru_cache(maxsize=1)
def _number_loader() -> type:
    """Return a psycopg loader that reads NUMERIC (sums of integers) as int or float, like SQLite."""
    from psycopg.adapt import Loader

    class Number(Loader):
        def load(self, data: Any) -> int | float:
            text = bytes(data)
            return int(text) if text.lstrip(b"-").isdigit() else float(text)

    return Number


def _to_store_error(error: Exception) -> Exception:
    """Return StoreUnavailable for transient errors: lost connection, lock, full disk, standby, missing rights."""
    import psycopg

    state = getattr(error, "sqlstate", None) or ""
    is_transient = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state.startswith("54")
    return (
        StoreUnavailable(_one_line(error))
        if is_transient or state in {"25006", "25P03", INSUFFICIENT_PRIVILEGE}
        else error
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__


# After a fork both processes share the socket: closing it in the child would end the parent's connection.

_OPEN: Final[WeakSet[PostgresConnection]] = WeakSet()
_INHERITED: Final[list[PostgresConnection]] = []


@lru_cache(maxsize=1)
def _register_fork_hook() -> None:
    os.register_at_fork(after_in_child=lambda: _INHERITED.extend(_OPEN))


# -- the URL ------------------------------------------------------------------------------------------


def _options(url: str) -> dict[str, Any]:
    """Parse the URL. The error never quotes it: any part may contain a password."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise StoreError("a journal in PostgreSQL needs psycopg: pip install 'rung[postgres]'") from None
    try:
        options: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        options = {"host": "@"}
    parts = [str(options.get(name, "")) for name in ("host", "dbname", "user")]
    ports = str(options.get("port", "")).replace(",", "")
    if any("@" in part for part in parts) or (ports and not ports.isdigit()):
        raise StoreError("postgresql://…: invalid URL; in a password, write @ / : ? # and % as %40 %2F %3A %3F %23 %25")
    return options


def _without_password(options: Mapping[str, Any]) -> str:
    user, host, port, name = (str(options.get(part, "")) for part in ("user", "host", "port", "dbname"))
    return f"postgresql://{user}{'@' * bool(user)}{host}{':' * bool(port)}{port}/{name}"


def _schema(options: str, url: str) -> str:
    """Return the first schema of the URL's search_path, validated because it becomes part of SQL statements."""
    match = re.search(r"search_path\s*=\s*([^\s,]+)", options)
    name = match[1] if match else DEFAULT_SCHEMA
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
        raise StoreError(f"{url}: invalid schema name {name!r}: only lower-case letters, digits and _ are allowed")
    return name
