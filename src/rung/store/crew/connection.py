"""SQLite connection to a crew's table: a separate file in rollback-journal mode.

Foreign workers bring their own SQLite, and versions before 3.51.3 can corrupt a shared write-ahead log. In rollback
mode all versions are safe for several processes, so the standard `sqlite3` module suffices where apsw is missing.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.domain.errors import IllegalTransition, StoreError, StoreUnavailable
from rung.store.backends.sqlite_drivers import TRANSIENT_CODES, ApswDriver
from rung.store.backends.text_values import storable
from rung.store.crew import conductor_key, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rung.store.backends.port import Row

APPLICATION_ID: Final = 0x52554E43  # "RUNC": tells a crew's table from a journal or another program's file
MIN_FILE_BYTES: Final = 512  # of any SQLite database
BUSY_TIMEOUT_MS: Final = 30_000  # in rollback mode every commit locks the whole file
NO_FILE: Final = "no such file; rung crew run creates it beside its plan, and rung crew init --db {url} an empty one"
NO_TABLE: Final = "there is no crew table yet; create it with: rung crew init --db {url}"


class CrewTransactions(Protocol):
    """A connection with write transactions."""

    def begin(self) -> None:
        """Begin a write transaction; blocks other writers."""
        ...

    def commit(self) -> None:
        """Commit durably."""
        ...

    def rollback(self) -> None:
        """Roll back."""
        ...


class CrewConnection(CrewTransactions, Protocol):
    """Interface of both backends' connections; used by one thread."""

    url: str

    def verify(self, *, full: bool = False) -> None:
        """Raise StoreError if the triggers that enforce the contract were changed."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement with `?` placeholders and return its rows."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@contextmanager
def transaction(connection: CrewTransactions) -> Iterator[None]:
    """Run the block in one transaction: commit on success, roll back on any exception."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


class SqliteCrewConnection:
    """Connection to one SQLite file, by apsw or the standard `sqlite3`."""

    def __init__(
        self,
        path: str,
        *,
        create: bool,
        clock: Callable[[], float] | None,
        use_stdlib: bool = False,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        self._wait_ms = busy_timeout_ms
        self._verified_version = -1  # of the schema
        self.path = Path(path).expanduser()
        self.url = str(self.path)
        _prepare(self.path, create=create)
        self._driver = None if use_stdlib else _apsw()
        self.error: type[Exception] = sqlite3.Error if self._driver is None else self._driver.error
        try:
            self.raw: Any = self._open()
        except self.error as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        try:
            self._set_up(create=create, clock=clock)
        except BaseException:
            self.close()
            raise

    def _open(self) -> Any:
        if self._driver is not None:
            return self._driver.open(self.path, write=True).raw
        raw = sqlite3.connect(self.url, isolation_level=None, check_same_thread=False, timeout=self._wait_ms / 1_000)
        raw.text_factory = _decode
        return raw

    def _set_up(self, *, create: bool, clock: Callable[[], float] | None) -> None:
        try:
            self._execute(f"PRAGMA busy_timeout={self._wait_ms}")
            self._reject_foreign_file()
            if self._execute("PRAGMA journal_mode") != [("delete",)]:
                self._execute("PRAGMA journal_mode=DELETE")
            self._execute("PRAGMA synchronous=FULL")
            self._execute("PRAGMA secure_delete=ON")  # the crew's key passes through a table
            if clock is not None:
                from rung.store.crew import sqlite_time

                sqlite_time.install_clock(self.raw, clock)
            if create:
                self._create()
        except self.error as error:
            raise self._setup_error(error) from None
        if self._execute("PRAGMA application_id") != [(APPLICATION_ID,)]:
            raise StoreError(f"{self.url}: {NO_TABLE.format(url=self.url)}")
        version = self.execute("SELECT value FROM crew_facts WHERE name = 'version'")
        if problem := schema.version_problem(str(version[0][0]) if version else ""):
            raise StoreError(f"{self.url}: {problem}")

    def _reject_foreign_file(self) -> None:
        """Reject another program's file. Count the tables before reading the id: another process may be creating them."""
        ((tables,),) = self._execute("SELECT count(*) FROM sqlite_master")
        ((application,),) = self._execute("PRAGMA application_id")
        if tables and application != APPLICATION_ID:
            raise StoreError(f"{self.url}: is not a crew table: it is another program's SQLite file, or a journal")

    def _create(self) -> None:
        with transaction(self):
            if self._execute("PRAGMA application_id") != [
                (APPLICATION_ID,)
            ]:  # another process may have created it first
                for statement in schema.sqlite_statements(conductor_key.create_key()):
                    self._execute(statement)
                self._execute(f"PRAGMA application_id={APPLICATION_ID}")

    def _setup_error(self, error: Exception) -> Exception:
        code = self._error_code(error) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.url}: is not a crew table: it is not a SQLite file")
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return StoreUnavailable(str(error))
        return StoreError(f"{self.url}: cannot be used: {error}")

    def _error_code(self, error: Exception) -> int:
        if self._driver is not None:
            return self._driver.code(error)
        return int(getattr(error, "sqlite_errorcode", 0) or 0)

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self.raw.execute(sql, values)
        try:
            return list(cursor)
        except UnicodeDecodeError:  # a foreign writer stored a text that is not UTF-8
            return self._execute_as_bytes(sql, values, len(cursor.description))

    def _execute_as_bytes(self, sql: str, values: Sequence[Any], columns: int) -> list[Row]:
        names = [f"c{number}" for number in range(columns)]
        as_bytes = ", ".join(
            f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in names
        )
        rows = self.raw.execute(f"WITH found({', '.join(names)}) AS ({sql}) SELECT {as_bytes} FROM found", values)
        return [tuple(_decode(value) if isinstance(value, bytes) else value for value in row) for row in rows]

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows; a trigger's rejection raises IllegalTransition."""
        try:
            return self._execute(sql, storable(values))
        except self.error as error:
            raise self._translate(error) from None

    def _translate(self, error: Exception) -> Exception:
        code = self._error_code(error)
        if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
            message = str(error)
            return IllegalTransition(message[message.find("rung: ") + len("rung: ") :])
        return StoreUnavailable(str(error)) if code & 0xFF in TRANSIENT_CODES else error

    def verify(self, *, full: bool = False) -> None:
        """Raise StoreError if tables or triggers were changed since they were created, by anybody who can write the file.

        Not `full`: compare only if the schema's version has changed. Nothing else changes what this connection executes.
        """
        ((version,),) = self._execute("PRAGMA schema_version")
        if version == self._verified_version and not full:
            return
        found = {one for (one,) in self._execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if changed := sorted(one.split()[2] for one in _expected_schema() ^ found):
            raise StoreError(
                f"{self.url}: its tables or triggers were changed by another program: {', '.join(changed)}"
            )
        self._verified_version = version

    def begin(self) -> None:
        """Begin a write transaction; blocks other writers."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit durably."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back, unless SQLite has done so already."""
        if self.raw.in_transaction:
            with suppress(StoreUnavailable):
                self.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


@cache
def _expected_schema() -> frozenset[str]:
    return frozenset(one for one in schema.sqlite_statements("") if one.startswith("CREATE"))


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _apsw() -> ApswDriver | None:
    try:
        return ApswDriver()
    except ImportError:
        return None


def _prepare(path: Path, *, create: bool) -> None:
    """Reject paths that cannot be a crew table; with `create`, make a new file readable by its owner only."""
    url = str(path)
    try:
        if any("\ud800" <= character <= "\udfff" for character in url):
            raise StoreError(f"{url!r}: SQLite needs a path in UTF-8")
        if path.is_symlink():
            raise StoreError(f"{url}: is a symbolic link; name the file itself")
        if path.is_dir():
            raise StoreError(f"{url}: is a directory; name a file")
        if path.exists():
            if not path.is_file():
                raise StoreError(f"{url}: is not a regular file")
            if 0 < path.stat().st_size < MIN_FILE_BYTES:
                raise StoreError(f"{url}: is not a crew table: it is not a SQLite file")
            if not os.access(path, os.R_OK | os.W_OK):
                raise StoreError(f"{url}: this user has no read and write permission")
            return
        if not create:
            raise StoreError(f"{url}: {NO_FILE.format(url=url)}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{url}: {error.strerror}") from None
