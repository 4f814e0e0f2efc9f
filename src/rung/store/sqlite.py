"""The journal in one SQLite file: WAL, every commit synced, readable by its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.store.migrations import check_version, migrate
from rung.store.port import Busy, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.port import Row

APPLICATION: Final = 0x52554E47  # "RUNG": so that no other program's file is taken for a journal, or ours for theirs
SAFE: Final = (3, 51, 3)  # before it, a WAL file shared by processes can be corrupted
WAIT: Final = 5_000  # milliseconds for another process's commit
WORDS: Final = {"strict": " STRICT", "real": "REAL", "whole": "INTEGER", "serial": "INTEGER PRIMARY KEY"}


class SqliteBackend:
    """One file. Other processes may have it open as well."""

    def __init__(self, path: str | Path, *, vfs: str | None = None) -> None:
        self.path = Path(path).expanduser()
        self.url = str(self.path)
        self._vfs = vfs
        self._checked = False

    def connect(self, *, write: bool) -> SqliteConnection:
        """A connection; the first one looks whether the file is ours and sound, and brings it up to date."""
        import apsw

        self._prepare(write=write)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
        umask = os.umask(0o077)
        try:
            raw = apsw.Connection(self.url, flags, self._vfs)
        except apsw.CantOpenError as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        finally:
            os.umask(umask)
        connection = SqliteConnection(raw)
        try:
            self._set_up(connection, write=write)
        except apsw.NotADBError:
            raw.close()
            raise StoreError(f"{self.url}: is not a journal: it is no SQLite file") from None
        except apsw.CorruptError as error:
            raw.close()
            raise StoreError(f"{self.url}: is damaged: {error}") from None
        except BaseException:
            raw.close()
            raise
        return connection

    def size(self) -> int:
        """Bytes of the file and its log."""
        return sum(file.stat().st_size for file in (self.path, Path(f"{self.path}-wal")) if file.exists())

    def _prepare(self, *, write: bool) -> None:
        """The directory and the file, for their owner alone."""
        if self._vfs:
            return
        try:
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.path.is_symlink():
                raise StoreError(f"{self.url}: is a symbolic link; name the file itself")
            if self.path.is_dir():
                raise StoreError(f"{self.url}: is a directory; name a file")
            if self.path.exists() and stat.S_IMODE(self.path.stat().st_mode) & 0o077 and write:
                self.path.chmod(0o600)
            if not write and not self.path.exists():
                raise StoreError(f"{self.url}: there is no journal yet")
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None

    def _set_up(self, connection: SqliteConnection, *, write: bool) -> None:
        connection.raw.set_busy_timeout(WAIT)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "foreign_keys=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        ((application,),) = connection.execute("PRAGMA application_id")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_schema")
        if application != APPLICATION and tables:
            raise StoreError(f"{self.url}: is not a journal: it is another program's SQLite file")
        if not self._checked:
            ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
            if verdict != "ok":
                raise StoreError(f"{self.url}: is damaged: {verdict}")
            self._checked = True
        if write:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_autocheckpoint=1000")
            migrate(connection, self.url, WORDS, mark=f"PRAGMA application_id={APPLICATION}")
        else:
            check_version(connection, self.url)
            connection.execute("PRAGMA query_only=ON")


class SqliteConnection:
    """apsw's connection with our words for its errors."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows."""
        import apsw

        try:
            return list(self.raw.execute(sql, tuple(values)))
        except (
            apsw.FullError,
            apsw.IOError,
            apsw.BusyError,
            apsw.LockedError,
            apsw.CantOpenError,
            apsw.ReadOnlyError,
        ) as error:
            raise Busy(str(error)) from error

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        import apsw

        try:
            self.raw.executemany(sql, rows)
        except (
            apsw.FullError,
            apsw.IOError,
            apsw.BusyError,
            apsw.LockedError,
            apsw.CantOpenError,
            apsw.ReadOnlyError,
        ) as error:
            raise Busy(str(error)) from error

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make it durable."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Take it back; SQLite may have done so already."""
        if self.raw.in_transaction:
            self.execute("ROLLBACK")

    def close(self) -> None:
        """Give it up."""
        self.raw.close(force=True)
