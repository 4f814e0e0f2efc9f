"""A journal in one SQLite file: written ahead, every commit synced, readable by its owner alone."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from rung.store.migrations import check_version, migrate
from rung.store.port import Busy, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.store.port import Row

APPLICATION: Final = 0x52554E47  # "RUNG": so that no other program's file is taken for a journal, or ours for theirs
SAFE: Final = (3, 51, 3)  # before it, a WAL file shared by processes can be corrupted
LEAST: Final = 512  # bytes of any database; SQLite takes a file of one byte for an empty one, and overwrites it
WAIT: Final = 5_000  # milliseconds for another process's commit
IDLE: Final = 4  # readers that are kept for whoever comes next: to open one costs more than most queries
WORDS: Final = {"strict": " STRICT", "real": "REAL", "whole": "INTEGER", "serial": "INTEGER PRIMARY KEY"}


class SqliteBackend:
    """One file. Other processes may have it open as well."""

    def __init__(self, path: str | Path, *, vfs: str | None = None) -> None:
        self.path = Path(path).expanduser()
        self.url = str(self.path)
        self._vfs = vfs
        self._checked = False
        self.doubtful = False  # a commit failed: what it wrote can perhaps be read, and yet is not on the disk
        self._idle: list[SqliteConnection] = []

    def connect(self, *, write: bool) -> SqliteConnection:
        """A connection; the first one looks whether the file is ours and sound, and brings it up to date."""
        import apsw

        if not write:
            return self._rested() or self._open(apsw.SQLITE_OPEN_READONLY, self._for_reading)
        fresh = self._prepare()
        if not fresh and not self._checked:
            with suppress(Busy):  # locked, or cut off in the middle of a write, which only a writer can take back
                self._open(apsw.SQLITE_OPEN_READONLY, lambda _: None).shut()  # what is not ours is refused untouched
        return self._open(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, self._for_writing)

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
            self._plain_file()
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            return not self.path.stat().st_size
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None

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

    def _open(self, flags: int, then: Callable[[SqliteConnection], object]) -> SqliteConnection:
        import apsw

        try:
            if not self._vfs and not self._plain_file():
                raise StoreError(f"{self.url}: there is no journal yet")
            raw = apsw.Connection(self.url, flags, self._vfs)
        except OSError as error:
            raise StoreError(f"{self.url}: {error.strerror}") from None
        except apsw.Error as error:
            raise StoreError(f"{self.url}: cannot be opened: {error}") from None
        connection = SqliteConnection(raw, self)
        try:
            self._look(connection)
            then(connection)
        except (apsw.Error, Busy, StoreError) as error:
            connection.shut()
            raise self._said(error) from None
        return connection

    def _said(self, error: Exception) -> Exception:
        """What is wrong with the file, in one line; somebody else's lock is nothing wrong."""
        import apsw

        cause: BaseException | None = error.__cause__ if isinstance(error, Busy) else error
        if isinstance(cause, apsw.NotADBError):
            return StoreError(f"{self.url}: is not a journal: it is no SQLite file")
        if isinstance(cause, apsw.CorruptError):
            return StoreError(f"{self.url}: is damaged: {cause}")
        if getattr(cause, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK:
            return error
        if isinstance(cause, apsw.Error) and not isinstance(cause, apsw.BusyError | apsw.LockedError):
            return StoreError(f"{self.url}: cannot be opened: {cause}")
        return error

    def _look(self, connection: SqliteConnection) -> None:
        """Is it ours, and sound?"""
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
            raise Busy("a commit failed, and somebody still reads what is in doubt")
        self.doubtful = False

    # -- readers that rest ----------------------------------------------------------------------------

    def _for_reading(self, connection: SqliteConnection) -> None:
        check_version(connection, self.url)
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
        if self._vfs or len(self._idle) >= IDLE or reader.raw.in_transaction:
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


class SqliteConnection:
    """apsw's connection with our words for its errors."""

    def __init__(self, raw: Any, backend: SqliteBackend) -> None:
        self.raw = raw
        self.pid = os.getpid()
        self.reads = False
        self.file: tuple[int, int] | None = None
        self.lock = threading.RLock()  # held while SQLite is at work, and from begin to commit: no fork then
        self._began = False
        self._backend = backend
        _watch_forks()
        _OPEN.add(self)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows."""
        try:
            with self.lock:
                return list(self.raw.execute(sql, _clean(values)))
        except _passing() as error:
            raise Busy(str(error)) from error

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        try:
            with self.lock:
                self.raw.executemany(sql, [_clean(row) for row in rows])
        except _passing() as error:
            raise Busy(str(error)) from error

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        self.lock.acquire()
        self._began = True
        try:
            self.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._ended()
            raise

    def commit(self) -> None:
        """Make it durable, in the file that is there."""
        try:
            self.execute("COMMIT")
        except Busy:
            self._backend.doubtful = True
            raise
        self._ended()
        if self.file is not None and self._backend.gone(self.file):
            raise Busy("the file was deleted or replaced")

    def rollback(self) -> None:
        """Take it back; SQLite may have done so already."""
        try:
            if self.raw.in_transaction:
                self.execute("ROLLBACK")
        finally:
            self._ended()

    def close(self) -> None:
        """Give it up; a reader rests until somebody reads again."""
        if not self.reads:
            self._backend.wake()
        elif self._backend.rest(self):
            return
        self.shut()

    def shut(self) -> None:
        """Close it for good; what is committed is, whatever goes wrong here."""
        import apsw

        with self.lock, suppress(apsw.Error):
            self.raw.close(force=True)
        self._ended()

    def shut_copy(self) -> None:
        """Close it in the child of a fork; but a transaction its own thread forked in is the parent's to end."""
        import apsw

        with suppress(apsw.Error):  # it was closed before
            if not self.raw.in_transaction:
                self.raw.close(force=True)

    def _ended(self) -> None:
        if self._began:
            self._began = False
            self.lock.release()


@lru_cache(maxsize=1)
def _passing() -> tuple[type[Exception], ...]:
    """What may pass, and is not the statement's own fault: a full disk, a lock, a disk in trouble."""
    import apsw

    return (
        apsw.FullError,
        apsw.IOError,
        apsw.BusyError,
        apsw.LockedError,
        apsw.CantOpenError,
        apsw.ReadOnlyError,
        apsw.PermissionsError,
        apsw.ProtocolError,
        apsw.NoMemError,
        apsw.CorruptError,  # not likely; but a file that is put back is as good as new
        apsw.NotADBError,
    )


def _clean(values: Sequence[Any]) -> Sequence[Any]:
    """The values without what the texts of a store cannot hold: NULs, and halves of surrogate pairs."""
    for value in values:
        if type(value) is str and ("\0" in value or not value.isascii()):
            return [_text(value) if type(value) is str else value for value in values]
    return values


def _text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# A fork copies SQLite's notes about which locks this process has, but not the locks: a child that opened the file
# beside such a copy would believe in locks it does not have, and could lose what it writes. So no fork happens
# while SQLite is at work in another thread, and in the child every copy is closed before anything else is done.

_OPEN: Final[WeakSet[SqliteConnection]] = WeakSet()
_HELD: Final[list[SqliteConnection]] = []
_FORKING: Final = threading.RLock()


@lru_cache(maxsize=1)
def _watch_forks() -> None:
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


def _before_fork() -> None:
    _FORKING.acquire()
    while fresh := [connection for connection in _OPEN.copy() if connection not in _HELD]:
        for connection in fresh:
            connection.lock.acquire()
            _HELD.append(connection)


def _in_parent() -> None:
    while _HELD:
        _HELD.pop().lock.release()
    _FORKING.release()


def _in_child() -> None:
    for connection in _HELD:
        connection.shut_copy()
    _in_parent()
