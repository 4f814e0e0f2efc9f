"""A connection to a crew's table: in a SQLite file of its own, in rollback-journal mode.

A foreign writer's SQLite may be one that corrupts a shared write-ahead log. In rollback mode all versions are safe
for several processes, so Python's own module will do where apsw is not there.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.domain.errors import IllegalTransition, StoreError, StoreUnavailable
from rung.store.backends.sqlite_connection import clean
from rung.store.backends.sqlite_drivers import PASSING, ApswDriver
from rung.store.crew import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rung.store.backends.port import Row

APPLICATION_ID: Final = 0x52554E43  # "RUNC": neither a journal nor another program's file is taken for a crew's table
MIN_FILE_BYTES: Final = 512  # bytes of any database
BUSY_TIMEOUT_MS: Final = 30_000  # milliseconds for others' commits: in this mode everybody waits for everybody
NO_TABLE: Final = "there is no crew's table yet: rung crew init --db {url}"


class CrewTransactions(Protocol):
    """What can do all of it, or nothing."""

    def begin(self) -> None:
        """Begin to write: nobody else does until it is over."""
        ...

    def commit(self) -> None:
        """Make it durable."""
        ...

    def rollback(self) -> None:
        """Take it back."""
        ...


class CrewConnection(CrewTransactions, Protocol):
    """What both stores' connections can do; used by one thread."""

    url: str

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, with `?` for values; its rows."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


@contextmanager
def transaction(connection: CrewTransactions) -> Iterator[None]:
    """All of it, or nothing."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


class SqliteCrewConnection:
    """One file, by apsw or by Python's own module."""

    def __init__(
        self,
        place: str,
        *,
        create: bool,
        clock: Callable[[], float] | None,
        use_stdlib: bool = False,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        self._wait_ms = busy_timeout_ms
        self.path = Path(place).expanduser()
        self.url = str(self.path)
        self._fresh = _prepare(self.path, create=create)
        self._driver = None if use_stdlib else _apsw()
        self.error: type[Exception] = sqlite3.Error if self._driver is None else self._driver.error
        try:
            self.raw: Any = self._opened()
        except self.error as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        try:
            self._set_up(create=create, clock=clock)
        except BaseException:
            self.close()
            raise

    def _opened(self) -> Any:
        if self._driver is not None:
            return self._driver.open(self.path, write=True).raw
        return sqlite3.connect(self.url, isolation_level=None, check_same_thread=False, timeout=self._wait_ms / 1_000)

    def _set_up(self, *, create: bool, clock: Callable[[], float] | None) -> None:
        try:
            self._execute(f"PRAGMA busy_timeout={self._wait_ms}")
            self._look()
            if self._execute("PRAGMA journal_mode") != [("delete",)]:
                self._execute("PRAGMA journal_mode=DELETE")
            self._execute("PRAGMA synchronous=FULL")
            if clock is not None:
                from rung.store.crew import sqlite_time

                sqlite_time.install_clock(self.raw, clock)
            if create:
                self._create()
        except self.error as error:
            raise self._wrong(error) from None
        if self._execute("PRAGMA application_id") != [(APPLICATION_ID,)]:
            raise StoreError(f"{self.url}: {NO_TABLE.format(url=self.url)}")
        version = self.execute("SELECT value FROM crew_facts WHERE name = 'version'")
        if version != [(str(schema.VERSION),)]:
            raise StoreError(f"{self.url}: is of another version of Rung ({version}); this one knows {schema.VERSION}")

    def _look(self) -> None:
        """Refuse another program's file. The tables are counted first: another process may create them meanwhile."""
        ((things,),) = self._execute("SELECT count(*) FROM sqlite_master")
        ((application,),) = self._execute("PRAGMA application_id")
        if things and application != APPLICATION_ID:
            raise StoreError(f"{self.url}: is not a crew's table: it is another program's SQLite file, or a journal")

    def _create(self) -> None:
        with transaction(self):
            if self._execute("PRAGMA application_id") != [(APPLICATION_ID,)]:  # of several who come at once, one makes it
                for statement in schema.sqlite_statements():
                    self._execute(statement)
                self._execute(f"PRAGMA application_id={APPLICATION_ID}")

    def _wrong(self, error: Exception) -> Exception:
        code = self._code(error) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.url}: is not a crew's table: it is no SQLite file")
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return StoreUnavailable(str(error))
        return StoreError(f"{self.url}: cannot be used: {error}")

    def _code(self, error: Exception) -> int:
        if self._driver is not None:
            return self._driver.code(error)
        return int(getattr(error, "sqlite_errorcode", 0) or 0)

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return list(self.raw.execute(sql, values))

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows. What the table refuses is an illegal move."""
        try:
            return self._execute(sql, clean(values))
        except self.error as error:
            raise self._ours(error) from None

    def _ours(self, error: Exception) -> Exception:
        code = self._code(error)
        if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
            said = str(error)
            return IllegalTransition(said[said.find("rung: ") + len("rung: ") :])
        return StoreUnavailable(str(error)) if code & 0xFF in PASSING else error

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make it durable."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Take it back; SQLite may have done so already."""
        if self.raw.in_transaction:
            with suppress(StoreUnavailable):
                self.execute("ROLLBACK")

    def close(self) -> None:
        """Give it up."""
        self.raw.close()


def _apsw() -> ApswDriver | None:
    try:
        return ApswDriver()
    except ImportError:
        return None


def _prepare(path: Path, *, create: bool) -> bool:
    """Is it a file of ours, or may it become one? What is there and is none is refused; a new one is its owner's alone."""
    url = str(path)
    try:
        if path.is_symlink():
            raise StoreError(f"{url}: is a symbolic link; name the file itself")
        if path.is_dir():
            raise StoreError(f"{url}: is a directory; name a file")
        if path.exists():
            if not path.is_file():
                raise StoreError(f"{url}: is no plain file")
            if 0 < path.stat().st_size < MIN_FILE_BYTES:
                raise StoreError(f"{url}: is not a crew's table: it is no SQLite file")
            if not os.access(path, os.R_OK | os.W_OK):
                raise StoreError(f"{url}: may not be read and written by this user")
            return False
        if not create:
            raise StoreError(f"{url}: {NO_TABLE.format(url=url)}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{url}: {error.strerror}") from None
    return True
