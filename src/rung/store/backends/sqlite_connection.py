"""SQLite connection: maps transient errors to StoreUnavailable, and is safe across forks."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from rung.core.domain.errors import StoreDamaged, StoreUnavailable
from rung.store.backends.sqlite_drivers import TRANSIENT_CODES
from rung.store.backends.text_values import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Row
    from rung.store.backends.sqlite_drivers import OpenedDatabase, SqliteDriver


class SqlitePool(Protocol):
    """Owner of the connections to one file."""

    driver: SqliteDriver
    commit_in_doubt: bool  # a commit failed: its data may be readable although it is not on disk

    def recycle(self, reader: SqliteConnection) -> bool:
        """Keep a reader for the next query; return False when it must be closed."""
        ...

    def close_idle(self) -> None:
        """Close the idle readers."""
        ...

    def was_replaced(self, file: tuple[int, int]) -> bool:
        """Return whether the file was deleted or replaced."""
        ...


class SqliteConnection:
    """Connection of a driver to one database file."""

    def __init__(self, opened: OpenedDatabase, backend: SqlitePool) -> None:
        self.raw = opened.raw
        self.pid = os.getpid()
        self.is_reader = False
        self.file_id: tuple[int, int] | None = None
        self.lock = opened.lock  # held while SQLite runs, and from begin to commit: blocks forks meanwhile
        self._opened = opened
        self._in_transaction = False
        self._backend = backend
        _register_fork_hooks()
        _OPEN.add(self)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            with self.lock:
                if self.is_reader and not self._backend.driver.shared:
                    return self._execute_read_only(sql, values)
                return list(self.raw.execute(sql, storable(values)))
        except self._backend.driver.error as error:
            raise self._to_store_error(error) from error
        except UnicodeDecodeError:
            raise StoreDamaged("a stored text is not UTF-8; `rung journal check` counts such events") from None

    def _execute_read_only(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """Run one statement read-only on the process's only connection, which also writes."""
        self.raw.execute("PRAGMA query_only=ON")
        try:
            return list(self.raw.execute(sql, storable(values)))
        finally:
            self.raw.execute("PRAGMA query_only=OFF")

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        try:
            with self.lock:
                self.raw.executemany(sql, rows if _all_storable(rows) else [storable(row) for row in rows])
        except self._backend.driver.error as error:
            raise self._to_store_error(error) from error

    def _to_store_error(self, error: Exception) -> Exception:
        return StoreUnavailable(str(error)) if self._backend.driver.code(error) & 0xFF in TRANSIENT_CODES else error

    def begin(self) -> None:
        """Begin a write transaction; it excludes all other writers until it ends."""
        self.lock.acquire()
        self._in_transaction = True
        try:
            self.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._release_lock()
            raise

    def commit(self) -> None:
        """Commit durably; raise StoreUnavailable when the file was deleted or replaced meanwhile."""
        try:
            self.execute("COMMIT")
        except StoreUnavailable:
            self._backend.commit_in_doubt = True
            raise
        self._release_lock()
        if self.file_id is not None and self._backend.was_replaced(self.file_id):
            raise StoreUnavailable("the file was deleted or replaced")

    def rollback(self) -> None:
        """Roll back; SQLite may already have."""
        try:
            if self.raw.in_transaction:
                self.execute("ROLLBACK")
        finally:
            self._release_lock()

    def close(self) -> None:
        """Close it; a reader returns to the pool."""
        if not self.is_reader:
            self._backend.close_idle()
        elif self._backend.recycle(self):
            return
        self.close_now()

    def close_now(self) -> None:
        """Close it for good; errors are ignored because everything committed is durable."""
        driver = self._backend.driver
        with self.lock, suppress(driver.error):
            driver.close(self._opened)
        self._release_lock()

    def close_close_copies(self) -> None:
        """Close it in a forked child, unless its thread forked inside a transaction: the parent ends that."""
        driver = self._backend.driver
        if driver.shared:
            with suppress(driver.error):  # already closed
                if not self.raw.in_transaction:
                    driver.close(self._opened)

    def _release_lock(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self.lock.release()


def _all_storable(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether no text of these rows needs replacements; one check on the joined texts is fastest."""
    texts = "".join([value for row in rows for value in row if type(value) is str])
    return texts.isascii() and "\0" not in texts


# A fork copies SQLite's records of the locks of this process, but not the locks. A child that opened the file next to
# such a copy would assume locks that it does not have, and could lose writes. Therefore a fork waits until SQLite is
# idle in all threads, and the child closes every copy before it does anything else.

_OPEN: Final[WeakSet[SqliteConnection]] = WeakSet()
_LOCKED: Final[list[SqliteConnection]] = []
_FORK_LOCK: Final = threading.RLock()


@lru_cache(maxsize=1)
def _register_fork_hooks() -> None:
    os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_close_copies)


def _lock_all() -> None:
    _FORK_LOCK.acquire()
    while unlocked := [connection for connection in _OPEN.copy() if connection not in _LOCKED]:
        for connection in unlocked:
            connection.lock.acquire()
            _LOCKED.append(connection)


def _unlock_all() -> None:
    while _LOCKED:
        _LOCKED.pop().lock.release()
    _FORK_LOCK.release()


def _close_copies() -> None:
    for connection in _LOCKED:
        connection.close_close_copies()
    _unlock_all()
