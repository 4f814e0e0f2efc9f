"""The two ways to SQLite: apsw, which several processes may use at once, and Python's own module, for one alone.

Python's is linked to the system's SQLite, and those before 3.51.3 can corrupt a log that processes share. So it is
the way out where apsw cannot be imported, and there it keeps everybody else away: one connection for the whole
process in SQLite's exclusive mode, which needs no shared index, and at which every other process finds the file locked.
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

SAFE: Final = (3, 51, 3)  # before it, a log shared by processes can be corrupted
STRICT: Final = (3, 37, 0)  # before it there are no strict tables
WAIT: Final = 5_000  # milliseconds for another process's commit
# What may pass, and is not the statement's own fault: a full disk, a lock, a disk in trouble. A damaged file is
# not likely to; but one that is put back is as good as new.
PASSING: Final = frozenset(
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
    """A connection of a driver's, and the lock under which it is used."""

    raw: Any
    lock: Any  # an RLock, whose type has no name


class SqliteDriver(Protocol):
    """What SQLite is reached by."""

    error: type[Exception]  # of all its errors
    shared: bool  # by all processes; otherwise this one alone has the file, with one connection

    def open(self, path: Path, *, write: bool, vfs: str | None = None, frozen: bool = False) -> OpenedDatabase:
        """A connection. `frozen`: nobody can change the file, and nothing can be made beside it."""
        ...

    def holds(self, path: Path) -> bool:
        """Has this process the file to itself already?"""
        ...

    def close(self, opened: OpenedDatabase) -> None:
        """Give it up."""
        ...

    def code(self, error: BaseException | None) -> int:
        """SQLite's extended result code; 0: it is none of its errors."""
        ...


@lru_cache(maxsize=1)
def driver() -> SqliteDriver:
    """The one by apsw, where that is; otherwise Python's own, which is said once."""
    try:
        found: SqliteDriver = ApswDriver()
    except ImportError:
        found = StandardDriver()
        with suppress(RuntimeWarning):  # warnings may be errors; this is none
            warnings.warn(
                "rung: apsw cannot be imported: the journal is kept by Python's own sqlite3, for this process alone"
                " (pip install apsw)",
                RuntimeWarning,
                stacklevel=2,
            )
    return found


class ApswDriver:
    """SQLite as apsw bundles it."""

    shared = True

    def __init__(self) -> None:
        import apsw

        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < SAFE:
            raise ImportError("apsw is there, but its SQLite is too old for several processes")
        self.apsw = apsw
        self.error: type[Exception] = apsw.Error
        self._codes: dict[type, int] = {type(apsw.exceptionfor(code)): code for code in PASSING}

    def open(self, path: Path, *, write: bool, vfs: str | None = None, frozen: bool = False) -> OpenedDatabase:
        """A connection of its own."""
        apsw = self.apsw
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
        if frozen:
            return OpenedDatabase(apsw.Connection(_frozen(path), flags | apsw.SQLITE_OPEN_URI, vfs), threading.RLock())
        return OpenedDatabase(apsw.Connection(str(path), flags, vfs), threading.RLock())

    def holds(self, path: Path) -> bool:
        """Nobody has a file to itself."""
        del path
        return False

    def close(self, opened: OpenedDatabase) -> None:
        """Close it."""
        opened.raw.close(force=True)

    def code(self, error: BaseException | None) -> int:
        """SQLite's extended result code; an error that was raised under SQLite has none, but a class."""
        return int(getattr(error, "extendedresult", 0) or self._codes.get(type(error), 0))


class StandardDriver:
    """SQLite as Python has it: one connection for each file, which nobody else may use meanwhile."""

    shared = False
    error: type[Exception] = sqlite3.Error

    def __init__(self) -> None:
        if sqlite3.sqlite_version_info < STRICT:
            raise StoreError(
                f"a journal needs apsw, or SQLite 3.37; here is {sqlite3.sqlite_version}: pip install apsw"
            )
        self._turn = threading.Lock()
        self._open: dict[str, tuple[OpenedDatabase, int]] = {}  # and how many use it
        os.register_at_fork(after_in_child=self._in_child)

    def open(self, path: Path, *, write: bool, vfs: str | None = None, frozen: bool = False) -> OpenedDatabase:
        """The process's connection; the first one takes the file for itself."""
        del vfs
        name = os.path.realpath(path)
        with self._turn:
            known = self._open.get(name)
            if known is not None:
                self._open[name] = (known[0], known[1] + 1)
                return known[0]
            opened = OpenedDatabase(_connection(name, write=write, frozen=frozen), threading.RLock())
            if write:
                opened.raw.execute("PRAGMA locking_mode=EXCLUSIVE")
                self._open[name] = (opened, 1)
            return opened

    def holds(self, path: Path) -> bool:
        """Has this process the file to itself already?"""
        return os.path.realpath(path) in self._open

    def close(self, opened: OpenedDatabase) -> None:
        """Close it when nobody in this process uses it any more: then others may have the file."""
        with self._turn:
            for name, (known, users) in self._open.items():
                if known is opened:
                    if users > 1:
                        self._open[name] = (known, users - 1)
                        return
                    del self._open[name]
                    break
        opened.raw.close()

    def code(self, error: BaseException | None) -> int:
        """SQLite's extended result code."""
        return int(getattr(error, "sqlite_errorcode", 0) or 0)

    def _in_child(self) -> None:
        """The file is the parent's. To close our copy would clear away the log under its hands: it is never closed."""
        import ctypes

        for opened, _ in self._open.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(opened.raw))
        self._open = {}
        self._turn = threading.Lock()


def _connection(name: str, *, write: bool, frozen: bool) -> sqlite3.Connection:
    uri = _frozen(name) if frozen else f"file:{quote(name)}?mode={'rwc' if write else 'ro'}"
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT / 1_000, cached_statements=256
    )


def _frozen(path: Path | str) -> str:
    return f"file:{quote(os.path.realpath(path))}?mode=ro&immutable=1"
