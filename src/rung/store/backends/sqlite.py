"""A journal in one SQLite file: written ahead, every commit synced, readable by its owner alone."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import JournalReadOnly, StoreError, StoreUnavailable
from rung.store.backends.migrations import check_version, migrate
from rung.store.backends.sqlite_connection import SqliteConnection
from rung.store.backends.sqlite_drivers import WAIT, driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.backends.sqlite_drivers import SqliteDriver

APPLICATION: Final = 0x52554E47  # "RUNG": so that no other program's file is taken for a journal, or ours for theirs
LEAST: Final = 512  # bytes of any database; SQLite takes a file of one byte for an empty one, and overwrites it
IDLE: Final = 4  # readers that are kept for whoever comes next: to open one costs more than most queries
# Bytes up to which a file's every page is looked at when it is opened: about a tenth of a second. Of a larger one
# SQLite itself sees whether its end is missing; what a crash leaves behind it puts right by the log's checksums; what
# a disk breaks is found when it is read, and by `rung journal check`, which reads it all. To look through gigabytes
# at every command would only teach people to do without the journal.
LOOKED_THROUGH: Final = 64 * 1024 * 1024
WORDS: Final = {"strict": " STRICT", "real": "REAL", "whole": "INTEGER", "serial": "INTEGER PRIMARY KEY"}


class SqliteBackend:
    """One file. Other processes may have it open as well, unless Python's own driver must do."""

    def __init__(
        self,
        path: str | Path,
        *,
        vfs: str | None = None,
        by: SqliteDriver | None = None,
        wait: int = WAIT,
        looked_through: int = LOOKED_THROUGH,
    ) -> None:
        self.path = Path(path).expanduser()
        self.url = str(self.path)
        self.driver = by or driver()
        self._vfs = vfs
        self._wait = wait
        self._looked_through = looked_through
        self._checked = False
        self.doubtful = False  # a commit failed: what it wrote can perhaps be read, and yet is not on the disk
        self._idle: list[SqliteConnection] = []

    def connect(self, *, write: bool) -> SqliteConnection:
        """A connection; the first one looks whether the file is ours and sound, and brings it up to date."""
        if not write:
            return self._rested() or self._reader()
        fresh = self._prepare()
        if not fresh and not self._checked and not self.driver.holds(self.path):
            with suppress(
                StoreUnavailable
            ):  # locked, or cut off in the middle of a write, which only a writer can take back
                self._open(lambda _: None, write=False).shut()  # what is not ours is refused untouched
        return self._open(self._for_writing, write=True)

    def _reader(self) -> SqliteConnection:
        try:
            if not self._vfs:
                self._writable()
        except JournalReadOnly:
            # SQLite reads a journal through an index beside it. Where it may not make one, and there is no log
            # that it would need one for, the file is all there is.
            return self._open(self._for_reading, write=False, frozen=not _bytes(f"{self.path}-wal"))
        # Without other processes the reader is the one connection there is: it has to be able to write.
        return self._open(self._for_reading, write=not self.driver.shared)

    def size(self) -> int:
        """Bytes of the file and its log."""
        return sum(file.stat().st_size for file in (self.path, Path(f"{self.path}-wal")) if file.exists())

    # -- opening --------------------------------------------------------------------------------------

    def _prepare(self) -> bool:
        """The directory and the file, for their owner alone; True where there was none, or nothing in it.

        The log and its index take the file's mode. An existing file is not opened here: to close it again would
        free the locks of every connection this process has to it.
        """
        if self._vfs:
            return True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._plain_file():
                self._writable()
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            return not self.path.stat().st_size
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None

    def _writable(self) -> None:
        """May we write it? A file that one may only read can still be looked at."""
        if not os.access(self.path, os.R_OK):
            return  # it is not there, or something else is wrong with it
        if not os.access(self.path, os.W_OK):
            raise JournalReadOnly(f"{self.url}: can be read, but not written")
        if not os.access(self.path.parent, os.W_OK | os.X_OK):  # its log stands beside it
            raise JournalReadOnly(f"{self.url}: can be read, but not written: nothing can be made in its directory")

    def _plain_file(self) -> bool:
        """Is it there? What is there and is no file is refused."""
        if self.path.is_symlink():
            raise StoreError(f"{self.url}: is a symbolic link; name the file itself")
        if self.path.is_dir():
            raise StoreError(f"{self.url}: is a directory; name a file")
        there = self.path.exists()
        if there and not self.path.is_file():
            raise StoreError(f"{self.url}: is no plain file")
        if there and 0 < self.path.stat().st_size < LEAST:
            raise StoreError(f"{self.url}: is not a journal: it is no SQLite file")
        return there

    def _open(
        self, then: Callable[[SqliteConnection], object], *, write: bool, frozen: bool = False
    ) -> SqliteConnection:
        try:
            if not self._vfs and not self._plain_file():
                raise StoreError(f"{self.url}: there is no journal yet")
            opened = self.driver.open(self.path, write=write, vfs=self._vfs, frozen=frozen)
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None
        except self.driver.error as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        connection = SqliteConnection(opened, self)
        try:
            self._look(connection)
            then(connection)
        except (self.driver.error, StoreUnavailable, StoreError) as error:
            connection.shut()
            raise self._said(error) from None
        return connection

    def _said(self, error: Exception) -> Exception:
        """What is wrong with the file, in one line; somebody else's lock is nothing wrong."""
        cause: BaseException | None = error.__cause__ if isinstance(error, StoreUnavailable) else error
        extended = self.driver.code(cause)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.url}: is not a journal: it is no SQLite file")
        if code == sqlite3.SQLITE_CORRUPT:
            return StoreError(f"{self.url}: is damaged: {cause}")
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            if self.driver.shared:
                return error
            return StoreError(
                f"{self.url}: another process has it; without apsw only one can use it at a time: pip install apsw"
            )
        if not code or extended == sqlite3.SQLITE_READONLY_ROLLBACK:
            return error
        return StoreError(f"{self.url}: cannot be opened: {cause}")

    def _look(self, connection: SqliteConnection) -> None:
        """Is it ours, and sound?"""
        for pragma in (
            f"busy_timeout={self._wait}",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "foreign_keys=ON",
            "mmap_size=0",
        ):
            connection.execute(f"PRAGMA {pragma}")
        # Counted first: another process may create the tables and the application id meanwhile, in one transaction.
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_schema")
        ((application,),) = connection.execute("PRAGMA application_id")
        if application != APPLICATION and tables:
            raise StoreError(f"{self.url}: is not a journal: it is another program's SQLite file")
        if not self._checked:
            if _bytes(self.url) <= self._looked_through:
                ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
                if verdict != "ok":
                    raise StoreError(f"{self.url}: is damaged: {' '.join(str(verdict).split())}")
            self._checked = True

    def _for_writing(self, connection: SqliteConnection) -> None:
        if not self._vfs and stat.S_IMODE(self.path.stat().st_mode) & 0o077:
            with suppress(OSError):  # of another user, who let us write in it
                self.path.chmod(0o600)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=1000")
        if self.doubtful:
            self._make_sure(connection)
        migrate(connection, self.url, WORDS, mark=f"PRAGMA application_id={APPLICATION}")
        connection.file = None if self._vfs else self._file()

    def _make_sure(self, connection: SqliteConnection) -> None:
        """After a sync that failed, the log can be read but may never reach the disk: write it all elsewhere."""
        ((blocked, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if blocked:
            raise StoreUnavailable("a commit failed, and somebody still reads what is in doubt")
        self.doubtful = False

    # -- readers that rest ----------------------------------------------------------------------------

    def _for_reading(self, connection: SqliteConnection) -> None:
        check_version(connection, self.url)
        if self.driver.shared:
            connection.execute("PRAGMA query_only=ON")
        connection.file = self._file()
        connection.reads = True

    def _rested(self) -> SqliteConnection | None:
        """A reader that somebody gave back, if the file is still the same and its schema the one we know."""
        while True:
            try:
                reader = self._idle.pop()
            except IndexError:
                return None
            if reader.pid == os.getpid():  # one from before a fork was closed by it
                try:
                    if reader.file == self._file():
                        check_version(reader, self.url)
                        return reader
                except BaseException:
                    reader.shut()
                    raise
                reader.shut()

    def rest(self, reader: SqliteConnection) -> bool:
        """Keep it for whoever reads next?"""
        if self._vfs or not self.driver.shared or len(self._idle) >= IDLE or reader.raw.in_transaction:
            return False
        self._idle.append(reader)
        return True

    def wake(self) -> None:
        """Close the readers that rest: whoever closes the file last also clears away its log."""
        with suppress(IndexError):
            while True:
                self._idle.pop().shut()

    def gone(self, file: tuple[int, int]) -> bool:
        """Is this no longer the file that is there? What is written to it nobody will read."""
        try:
            found = os.lstat(self.url)
        except PermissionError:  # nobody can tell, and it is still open
            return False
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != file

    def _file(self) -> tuple[int, int] | None:
        """Which file is there: another one may have been put in its place."""
        try:
            found = self.path.lstat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _bytes(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
