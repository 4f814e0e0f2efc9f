"""A journal in PostgreSQL: for several machines. Each commit is on the server's disk before it counts."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet, finalize

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.store.backends.migrations import LATEST, check_version, migrate, version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import Row

SCHEMA: Final = "rung"  # where the URL's options name no other
IDLE: Final = 4  # readers that are kept for whoever comes next
LOCK: Final = 0x52554E47  # "RUNG": the first half of our advisory lock's number; the other is the schema's
WORDS: Final = {
    "strict": "",
    "real": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
# A server that vanished is noticed within a minute, not within the system's two hours.
DEFAULTS: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "fallback_application_name": "rung",
}
WRITER: Final = (
    "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '60s';"  # whoever hangs does not hold us all up
    " SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
READER: Final = "SET default_transaction_read_only = on; SET statement_timeout = '30s'"


class PostgresBackend:
    """One schema of one database. Other processes, here and elsewhere, may use it as well."""

    def __init__(self, url: str, *, writer_settings: str = WRITER) -> None:
        self._writer_settings = writer_settings
        self._options = _options(url)
        self.url = _without_password(self._options)
        self.schema = _schema(str(self._options.get("options", "")), self.url)
        self._idle: list[PostgresConnection] = []
        finalize(self, _shut, self._idle)

    def connect(self, *, write: bool) -> PostgresConnection:
        """A connection; one that may write brings the schema up to date, whoever comes first."""
        import psycopg

        if not write and (rested := self._rested()):
            return rested
        raw = None
        try:
            raw = psycopg.connect(**{**DEFAULTS, **self._options}, autocommit=True, client_encoding="UTF8")
            connection = PostgresConnection(raw, self.schema, self._idle, reads=not write)
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
        """Bytes of the tables in its schema, with their indexes."""
        reader = self.connect(write=False)
        try:
            ((size,),) = reader.execute(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            )
        finally:
            reader.close()
        return int(size)

    def _rested(self) -> PostgresConnection | None:
        """A reader that somebody gave back, if its server still answers and its schema is still the one we know."""
        import psycopg

        while True:
            try:
                reader = self._idle.pop()
            except IndexError:
                return None
            if reader.pid == os.getpid():  # one from before a fork is the parent's
                with suppress(StoreUnavailable, psycopg.Error):
                    if reader.execute("SELECT version FROM rung_schema") == [(LATEST,)]:
                        return reader
                reader.raw.close()

    def _set_up(self, connection: PostgresConnection, *, write: bool) -> None:
        raw = connection.raw
        encoding = raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.url}: the database's encoding is {encoding}; a journal needs UTF8")
        raw.adapters.register_loader("numeric", _number_loader())
        raw.execute(f"SET search_path TO {self.schema}; {self._writer_settings if write else READER}")
        if write:
            self._own_schema(connection)
            migrate(connection, self.url, WORDS)
        elif version(connection) == 0:
            raise StoreError(f"{self.url}: there is no journal yet (schema {self.schema})")
        else:
            check_version(connection, self.url)

    def _own_schema(self, connection: PostgresConnection) -> None:
        """Make it where it is missing. Not by IF NOT EXISTS alone: that needs the right to make one where one is."""
        missing = f"SELECT 1 WHERE to_regnamespace('{self.schema}') IS NULL"
        if connection.execute(missing):
            connection.begin()  # two who make it at once would break one of them
            try:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
                connection.commit()
            except BaseException:
                connection.rollback()
                raise


class PostgresConnection:
    """psycopg's connection with our words for its errors and our way to write a query."""

    def __init__(self, raw: Any, schema: str, idle: list[PostgresConnection], *, reads: bool) -> None:
        self.raw = raw
        self.pid = os.getpid()
        _watch_forks()
        _OPEN.add(self)
        self._idle = idle  # where a reader rests when it is given up
        self._reads = reads
        self._held: list[str] = []  # savepoint commands, which nobody waits for: sent with the next statement
        # Event numbers are given when a row is inserted, and seen when it is committed. Were two transactions to
        # insert at once, a reader that follows by `seq > last` could see 8 before 7, and never see 7. So writers
        # take turns, as SQLite's do, and what one reads before it writes is still true when it writes. The lock
        # belongs to the transaction: it goes with it, even when its process dies. And READ COMMITTED, whatever the
        # database's default is: any other level would go on seeing what was there before the lock was ours.
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
            f" SELECT pg_advisory_xact_lock({LOCK}, hashtext('{schema}'))"
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows."""
        if sql.startswith(("SAVEPOINT ", "RELEASE SAVEPOINT ")):
            self._held.append(sql)
            return []
        import psycopg

        try:
            self._send_held()
            cursor = self.raw.execute(_translated(sql), _clean(values)) if values else self.raw.execute(sql)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise _ours(error) from error

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        import psycopg

        try:
            self._send_held()
            if rows:
                self.raw.cursor().executemany(_translated(sql), [_clean(row) for row in rows])
        except psycopg.Error as error:
            raise _ours(error) from error

    def _send_held(self) -> None:
        if self._held:
            held, self._held = "; ".join(self._held), []
            self.raw.execute(held)

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        try:
            self.execute(self._begin)
        except BaseException:
            self.rollback()
            raise

    def commit(self) -> None:
        """Make it durable. An error here means: nobody knows."""
        import psycopg

        self._held.clear()
        try:
            said = self.raw.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            raise _ours(error) from error
        if said != "COMMIT":  # so the server answers after an error that somebody swallowed
            raise StoreUnavailable(f"nothing was committed: the server says {said}")

    def rollback(self) -> None:
        """Take it back; a lost connection has done so already."""
        from psycopg.pq import TransactionStatus

        self._held.clear()
        if self.raw.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            with suppress(StoreUnavailable):
                self.execute("ROLLBACK")

    def close(self) -> None:
        """Give it up; a reader rests until somebody reads again."""
        from psycopg.pq import TransactionStatus

        sound = self.raw.info.transaction_status == TransactionStatus.IDLE
        if self._reads and sound and len(self._idle) < IDLE:
            self._idle.append(self)
            return
        if not self._reads:  # whoever writes no more seldom reads on
            _shut(self._idle)
        self.raw.close()


def _shut(idle: list[PostgresConnection]) -> None:
    """Close readers that rest; not those of a parent process."""
    with suppress(IndexError):
        while True:
            reader = idle.pop()
            if reader.pid == os.getpid():
                reader.raw.close()


# -- values and errors --------------------------------------------------------------------------------


def _clean(values: Sequence[Any]) -> Sequence[Any]:
    """The values without what PostgreSQL's texts cannot hold: NULs, and halves of surrogate pairs."""
    for value in values:
        if type(value) is str and ("\0" in value or not value.isascii()):
            return [_text(value) if type(value) is str else value for value in values]
    return values


def _text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_PARTS: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\?")


@lru_cache(maxsize=1024)
def _translated(sql: str) -> str:
    """The query with psycopg's placeholders: `%s` for each `?` that is not part of a text."""
    return _PARTS.sub(lambda part: "%s" if part[0] == "?" else part[0], sql.replace("%", "%%"))


@lru_cache(maxsize=1)
def _number_loader() -> type:
    """What reads the sums of whole numbers: as SQLite gives them, not as decimals."""
    from psycopg.adapt import Loader

    class Number(Loader):
        def load(self, data: Any) -> int | float:
            text = bytes(data)
            return int(text) if text.lstrip(b"-").isdigit() else float(text)

    return Number


def _ours(error: Exception) -> Exception:
    """Busy for what may pass: a lost connection, a lock, a full disk, a standby, rights that somebody can give."""
    import psycopg

    state = getattr(error, "sqlstate", None) or ""
    passes = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state.startswith("54")
    return StoreUnavailable(_one_line(error)) if passes or state in {"25006", "25P03", "42501"} else error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__


# After a fork both processes have the socket: a child that closed its copy would end the parent's connection.

_OPEN: Final[WeakSet[PostgresConnection]] = WeakSet()
_PARENTS: Final[list[PostgresConnection]] = []


@lru_cache(maxsize=1)
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=lambda: _PARENTS.extend(_OPEN))


# -- the URL ------------------------------------------------------------------------------------------


def _options(url: str) -> dict[str, Any]:
    """The URL's parts. What is said about a bad one never repeats it: there may be a password in any part."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise StoreError("a journal in PostgreSQL: needs psycopg: pip install 'rung[postgres]'") from None
    try:
        options: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        options = {"host": "@"}
    parts = [str(options.get(name, "")) for name in ("host", "dbname", "user")]
    ports = str(options.get("port", "")).replace(",", "")
    if any("@" in part for part in parts) or (ports and not ports.isdigit()):
        raise StoreError("postgresql://…: is no URL; in a password, write @ / : ? # and % as %40 %2F %3A %3F %23 %25")
    return options


def _without_password(options: Mapping[str, Any]) -> str:
    user, host, port, name = (str(options.get(part, "")) for part in ("user", "host", "port", "dbname"))
    return f"postgresql://{user}{'@' * bool(user)}{host}{':' * bool(port)}{port}/{name}"


def _schema(options: str, url: str) -> str:
    """The first schema of the search path in the URL's options; it becomes a part of statements, so it is looked at."""
    found = re.search(r"search_path\s*=\s*([^\s,]+)", options)
    name = found[1] if found else SCHEMA
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
        raise StoreError(f"{url}: the schema's name may have small letters, digits and _ in it, not {name!r}")
    return name
