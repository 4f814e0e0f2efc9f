"""SQLite back end: one file in WAL mode, every commit synced, readable only by its owner."""

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
from rung.store.backends.sqlite_drivers import BUSY_TIMEOUT_MS, default_driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.backends.sqlite_drivers import SqliteDriver

APPLICATION_ID: Final = 0x52554E47  # "RUNG": tells a journal from another program's SQLite file
MIN_DATABASE_BYTES: Final = 512  # SQLite treats a smaller file as empty and overwrites it
MAX_IDLE_READERS: Final = 4  # kept open for the next query: opening one costs more than most queries
# Files up to this size are checked completely when they are opened, which takes about 0.1 seconds. In larger files
# SQLite itself detects a missing end, crashes are repaired by the WAL's checksums, and disk corruption is found when
# a page is read or by `rung journal check`. Checking gigabytes at every command would make the journal unusable.
QUICK_CHECK_MAX_BYTES: Final = 64 * 1024 * 1024
SQL_TYPES: Final = {"strict": " STRICT", "real": "REAL", "whole": "INTEGER", "serial": "INTEGER PRIMARY KEY"}


class SqliteBackend:
    """One SQLite file, which processes may share unless the standard driver is used."""

    def __init__(
        self,
        path: str | Path,
        *,
        vfs: str | None = None,
        driver: SqliteDriver | None = None,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        quick_check_max_bytes: int = QUICK_CHECK_MAX_BYTES,
    ) -> None:
        self.path = Path(path).expanduser()
        self.url = str(self.path)
        self.driver = driver or default_driver()
        self._vfs = vfs
        self._busy_timeout_ms = busy_timeout_ms
        self._quick_check_max_bytes = quick_check_max_bytes
        self._checked = False
        self.commit_in_doubt = False  # a commit failed: its data may be readable although it is not on disk
        self._idle: list[SqliteConnection] = []

    def connect(self, *, write: bool) -> SqliteConnection:
        """Open a connection; the first one checks the file, the first writable one migrates the schema."""
        if not write:
            return self._take_idle() or self._open_reader()
        is_new = self._create_file()
        if not is_new and not self._checked and not self.driver.has_exclusive(self.path):
            # StoreUnavailable: the file is locked, or a write was interrupted that only a writer can roll back.
            with suppress(StoreUnavailable):
                self._open(lambda _: None, write=False).close_now()  # reject a foreign file without modifying it
        return self._open(self._set_up_writer, write=True)

    def _open_reader(self) -> SqliteConnection:
        try:
            if not self._vfs:
                self._check_writable()
        except JournalReadOnly:
            # SQLite needs a shared-memory index next to the file to read the WAL. When it may not create one and
            # the WAL is empty, the file alone is complete.
            return self._open(self._set_up_reader, write=False, immutable=not _size(f"{self.path}-wal"))
        # With the standard driver the reader is the process's only connection, so it must be writable.
        return self._open(self._set_up_reader, write=not self.driver.shared)

    def size(self) -> int:
        """Return the size in bytes of the file and its WAL."""
        return sum(file.stat().st_size for file in (self.path, Path(f"{self.path}-wal")) if file.exists())

    # -- opening --------------------------------------------------------------------------------------

    def _create_file(self) -> bool:
        """Create the directory and the file with owner-only permissions; return whether the file is empty.

        The WAL and its index inherit the file's mode. An existing file is not opened here: closing it would
        release the POSIX locks of every connection of this process to it.
        """
        if self._vfs:
            return True
        try:
            is_there = self._check_plain_file()
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if is_there:
                self._check_writable()
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            return not self.path.stat().st_size
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None

    def _check_writable(self) -> None:
        """Raise JournalReadOnly when the file can be read but not written."""
        if not os.access(self.path, os.R_OK):
            return  # missing or unreadable: opening it reports the reason
        if not os.access(self.path, os.W_OK):
            raise JournalReadOnly(f"{self.url}: is read-only")
        if not os.access(self.path.parent, os.W_OK | os.X_OK):  # the WAL is created next to it
            raise JournalReadOnly(f"{self.url}: is read-only: its directory is not writable")

    def _check_plain_file(self) -> bool:
        """Return whether the file exists; raise StoreError when the path is not a regular file."""
        if "\0" in self.url:
            raise StoreError(f"{self.url!r}: a path cannot contain a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in self.url):
            raise StoreError(f"{self.url!r}: SQLite needs a path in UTF-8")
        if self.path.is_symlink():
            raise StoreError(f"{self.url}: is a symbolic link; name the file itself")
        if self.path.is_dir():
            raise StoreError(f"{self.url}: is a directory; name a file")
        exists = self.path.exists()
        if exists and not self.path.is_file():
            raise StoreError(f"{self.url}: is not a regular file")
        if exists and 0 < self.path.stat().st_size < MIN_DATABASE_BYTES:
            raise StoreError(f"{self.url}: is not a journal: not an SQLite file")
        return exists

    def _open(
        self, set_up: Callable[[SqliteConnection], object], *, write: bool, immutable: bool = False
    ) -> SqliteConnection:
        try:
            if not self._vfs and not self._check_plain_file():
                raise StoreError(f"{self.url}: there is no journal yet")
            opened = self.driver.open(self.path, write=write, vfs=self._vfs, immutable=immutable)
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None
        except self.driver.error as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        connection = SqliteConnection(opened, self)
        try:
            self._check_file(connection)
            set_up(connection)
        except (self.driver.error, StoreUnavailable, StoreError) as error:
            connection.close_now()
            raise self._explain(error) from None
        return connection

    def _explain(self, error: Exception) -> Exception:
        """Return a StoreError that names the file's problem in one line; a lock of another process stays transient."""
        cause: BaseException | None = error.__cause__ if isinstance(error, StoreUnavailable) else error
        extended = self.driver.code(cause)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.url}: is not a journal: not an SQLite file")
        if code == sqlite3.SQLITE_CORRUPT:
            return StoreError(f"{self.url}: is damaged: {cause}")
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            if self.driver.shared:
                return error
            return StoreError(f"{self.url}: is locked by another process; sharing it requires apsw: pip install apsw")
        if not code or extended == sqlite3.SQLITE_READONLY_ROLLBACK:
            return error
        return StoreError(f"{self.url}: cannot be opened: {cause}")

    def _check_file(self, connection: SqliteConnection) -> None:
        """Set the connection's pragmas; raise StoreError when the file is not a journal or is damaged."""
        for pragma in (
            f"busy_timeout={self._busy_timeout_ms}",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "foreign_keys=ON",
            "mmap_size=0",
        ):
            connection.execute(f"PRAGMA {pragma}")
        # Counted first: another process may create the tables and the application id meanwhile, in one transaction.
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_schema")
        ((application,),) = connection.execute("PRAGMA application_id")
        if application != APPLICATION_ID and tables:
            raise StoreError(f"{self.url}: is not a journal: another program's SQLite file")
        if not self._checked:
            if _size(self.url) <= self._quick_check_max_bytes:
                ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
                if verdict != "ok":
                    raise StoreError(f"{self.url}: is damaged: {' '.join(str(verdict).split())}")
            self._checked = True

    def _set_up_writer(self, connection: SqliteConnection) -> None:
        if not self._vfs and stat.S_IMODE(self.path.stat().st_mode) & 0o077:
            with suppress(OSError):  # owned by another user, who granted write access
                self.path.chmod(0o600)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=1000")
        if self.commit_in_doubt:
            self._checkpoint_in_doubt(connection)
        migrate(connection, self.url, SQL_TYPES, last_statement=f"PRAGMA application_id={APPLICATION_ID}")
        connection.file_id = None if self._vfs else self._file_id()

    def _checkpoint_in_doubt(self, connection: SqliteConnection) -> None:
        """Checkpoint the WAL after a failed sync: its pages are readable but may never reach the disk."""
        ((blocked, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if blocked:
            raise StoreUnavailable("a commit failed, and a reader still uses the WAL whose outcome is unknown")
        self.commit_in_doubt = False

    # -- idle readers ---------------------------------------------------------------------------------

    def _set_up_reader(self, connection: SqliteConnection) -> None:
        check_version(connection, self.url)
        if self.driver.shared:
            connection.execute("PRAGMA query_only=ON")
        connection.file_id = self._file_id()
        connection.is_reader = True

    def _take_idle(self) -> SqliteConnection | None:
        """Return an idle reader of the current file and schema version; None when there is none."""
        while True:
            try:
                reader = self._idle.pop()
            except IndexError:
                return None
            if reader.pid == os.getpid():  # the fork hook closed connections from before a fork
                try:
                    if reader.file_id == self._file_id():
                        check_version(reader, self.url)
                        return reader
                except BaseException:
                    reader.close_now()
                    raise
                reader.close_now()

    def recycle(self, reader: SqliteConnection) -> bool:
        """Keep a reader for the next query; return False when it must be closed."""
        if self._vfs or not self.driver.shared or len(self._idle) >= MAX_IDLE_READERS or reader.raw.in_transaction:
            return False
        self._idle.append(reader)
        return True

    def close_idle(self) -> None:
        """Close the idle readers: the last connection to close also removes the WAL."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close_now()

    def was_replaced(self, file: tuple[int, int]) -> bool:
        """Return whether the path no longer is this file: what is written to the old one is lost."""
        try:
            current = os.lstat(self.url)
        except PermissionError:  # unknown, and the file is still open
            return False
        except OSError:
            return True
        return (current.st_dev, current.st_ino) != file

    def _file_id(self) -> tuple[int, int] | None:
        """Return the device and inode of the file, which change when it is replaced."""
        try:
            current = self.path.lstat()
        except OSError:
            return None
        return current.st_dev, current.st_ino


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
