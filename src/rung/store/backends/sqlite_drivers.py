"""SQLite drivers: apsw for files shared by processes, and the standard `sqlite3` module for a single process.

The standard module uses the system's SQLite, and versions before 3.51.3 can corrupt a WAL file shared by processes.
It is the fallback when apsw cannot be imported. It then excludes other processes: one connection for the whole
process in SQLite's exclusive locking mode, which needs no shared-memory index and keeps the file locked.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from rung.core.domain.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

MIN_SHARED_WAL_VERSION: Final = (3, 51, 3)  # older versions can corrupt a WAL file shared by processes
MIN_STRICT_VERSION: Final = (3, 37, 0)  # older versions have no STRICT tables
BUSY_TIMEOUT_MS: Final = 5_000  # wait for another process's commit
# Errors of the environment, not of the statement: full disk, lock, I/O error. A corrupt file is included because an
# operator may restore it from a backup.
TRANSIENT_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)


class OpenedDatabase(NamedTuple):
    """Open connection of a driver, and the lock that guards it."""

    raw: Any
    lock: Any  # an RLock; its type has no public name


class SqliteDriver(Protocol):
    """Driver that opens SQLite files."""

    error: type[Exception]  # base class of its errors
    shared: bool  # files may be used by several processes; otherwise by one process with one connection

    def open(self, path: Path, *, write: bool, vfs: str | None = None, immutable: bool = False) -> OpenedDatabase:
        """Open a connection. `immutable`: the file cannot change, and no file can be created next to it."""
        ...

    def has_exclusive(self, path: Path) -> bool:
        """Return whether this process already has the file open exclusively."""
        ...

    def close(self, opened: OpenedDatabase) -> None:
        """Close the connection."""
        ...

    def code(self, error: BaseException | None) -> int:
        """Return SQLite's extended result code; 0 when it is not an error of this driver."""
        ...


@lru_cache(maxsize=1)
def default_driver() -> SqliteDriver:
    """Return the apsw driver; without apsw, warn once and return the standard driver."""
    try:
        chosen: SqliteDriver = ApswDriver()
    except ImportError:
        chosen = StandardDriver()
        with suppress(RuntimeWarning):  # warnings may be turned into errors; this must not be one
            warnings.warn(
                "rung: apsw cannot be imported: the journal uses Python's sqlite3 and is limited to this process"
                " (pip install apsw)",
                RuntimeWarning,
                stacklevel=2,
            )
    return chosen


class ApswDriver:
    """Driver on the SQLite that apsw bundles."""

    shared = True

    def __init__(self) -> None:
        import apsw

        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < MIN_SHARED_WAL_VERSION:
            raise ImportError("the SQLite that apsw bundles is too old to be shared by processes")
        self.apsw = apsw
        self.error: type[Exception] = apsw.Error
        self._codes: dict[type, int] = {type(apsw.exceptionfor(code)): code for code in TRANSIENT_CODES}

    def open(self, path: Path, *, write: bool, vfs: str | None = None, immutable: bool = False) -> OpenedDatabase:
        """Open a new connection."""
        apsw = self.apsw
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
        if immutable:
            return OpenedDatabase(
                apsw.Connection(_immutable_uri(path), flags | apsw.SQLITE_OPEN_URI, vfs), threading.RLock()
            )
        return OpenedDatabase(apsw.Connection(str(path), flags, vfs), threading.RLock())

    def has_exclusive(self, path: Path) -> bool:
        """Return False: files are always shared."""
        del path
        return False

    def close(self, opened: OpenedDatabase) -> None:
        """Close the connection."""
        opened.raw.close(force=True)

    def code(self, error: BaseException | None) -> int:
        """Return SQLite's extended result code; errors raised in a VFS have no code, so their class decides."""
        return int(getattr(error, "extendedresult", 0) or self._codes.get(type(error), 0))


class StandardDriver:
    """Driver on Python's `sqlite3`: one connection per file, which excludes other processes."""

    shared = False
    error: type[Exception] = sqlite3.Error

    def __init__(self) -> None:
        if sqlite3.sqlite_version_info < MIN_STRICT_VERSION:
            raise StoreError(f"a journal needs apsw or SQLite 3.37; found {sqlite3.sqlite_version}: pip install apsw")
        self._lock = threading.Lock()
        self._open: dict[str, tuple[OpenedDatabase, int]] = {}  # with the number of users
        os.register_at_fork(after_in_child=self._abandon_in_child)

    def open(self, path: Path, *, write: bool, vfs: str | None = None, immutable: bool = False) -> OpenedDatabase:
        """Return the process's connection to a file; the first call opens it exclusively."""
        del vfs
        name = os.path.realpath(path)
        with self._lock:
            shared = self._open.get(name)
            if shared is not None:
                self._open[name] = (shared[0], shared[1] + 1)
                return shared[0]
            opened = OpenedDatabase(_connection(name, write=write, immutable=immutable), threading.RLock())
            if write:
                opened.raw.execute("PRAGMA locking_mode=EXCLUSIVE")
                self._open[name] = (opened, 1)
            return opened

    def has_exclusive(self, path: Path) -> bool:
        """Return whether this process already has the file open exclusively."""
        return os.path.realpath(path) in self._open

    def close(self, opened: OpenedDatabase) -> None:
        """Close the connection when its last user in this process is done; this unlocks the file."""
        with self._lock:
            for name, (shared, users) in self._open.items():
                if shared is opened:
                    if users > 1:
                        self._open[name] = (shared, users - 1)
                        return
                    del self._open[name]
                    break
        opened.raw.close()

    def code(self, error: BaseException | None) -> int:
        """Return SQLite's extended result code."""
        return int(getattr(error, "sqlite_errorcode", 0) or 0)

    def _abandon_in_child(self) -> None:
        """Leak the inherited connections: closing one would delete the WAL file that the parent still uses."""
        import ctypes

        for opened, _ in self._open.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(opened.raw))
        self._open = {}
        self._lock = threading.Lock()


def _connection(name: str, *, write: bool, immutable: bool) -> sqlite3.Connection:
    uri = _immutable_uri(name) if immutable else f"file:{quote(name)}?mode={'rwc' if write else 'ro'}"
    return sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_TIMEOUT_MS / 1_000,
        cached_statements=256,
    )


def _immutable_uri(path: Path | str) -> str:
    return f"file:{quote(os.path.realpath(path))}?mode=ro&immutable=1"
