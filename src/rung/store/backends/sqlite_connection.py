"""A connection to a journal's file: our words for SQLite's errors, and nothing of it is left to a fork."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from rung.core.domain.errors import StoreUnavailable
from rung.store.backends.sqlite_drivers import PASSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Row
    from rung.store.backends.sqlite_drivers import OpenedDatabase, SqliteDriver


class Pool(Protocol):
    """Owner of the connections to one file."""

    driver: SqliteDriver
    doubtful: bool  # a commit failed: what it wrote may not be on the disk

    def rest(self, reader: SqliteConnection) -> bool:
        """Keep a reader for the next query; False when there is no room."""
        ...

    def wake(self) -> None:
        """Close the readers that were kept."""
        ...

    def gone(self, file: tuple[int, int]) -> bool:
        """Whether the file was deleted or replaced."""
        ...


class SqliteConnection:
    """A driver's connection with our words for its errors."""

    def __init__(self, opened: OpenedDatabase, backend: Pool) -> None:
        self.raw = opened.raw
        self.pid = os.getpid()
        self.reads = False
        self.file: tuple[int, int] | None = None
        self.lock = opened.lock  # held while SQLite is at work, and from begin to commit: no fork then
        self._opened = opened
        self._began = False
        self._backend = backend
        _watch_forks()
        _OPEN.add(self)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows."""
        try:
            with self.lock:
                if self.reads and not self._backend.driver.shared:
                    return self._only_read(sql, values)
                return list(self.raw.execute(sql, clean(values)))
        except self._backend.driver.error as error:
            raise self._ours(error) from error

    def _only_read(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """On the one connection of the process, which also writes."""
        self.raw.execute("PRAGMA query_only=ON")
        try:
            return list(self.raw.execute(sql, clean(values)))
        finally:
            self.raw.execute("PRAGMA query_only=OFF")

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        try:
            with self.lock:
                self.raw.executemany(sql, rows if _all_clean(rows) else [clean(row) for row in rows])
        except self._backend.driver.error as error:
            raise self._ours(error) from error

    def _ours(self, error: Exception) -> Exception:
        return StoreUnavailable(str(error)) if self._backend.driver.code(error) & 0xFF in PASSING else error

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
        except StoreUnavailable:
            self._backend.doubtful = True
            raise
        self._ended()
        if self.file is not None and self._backend.gone(self.file):
            raise StoreUnavailable("the file was deleted or replaced")

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
        driver = self._backend.driver
        with self.lock, suppress(driver.error):
            driver.close(self._opened)
        self._ended()

    def shut_copy(self) -> None:
        """Close it in the child of a fork; but a transaction its own thread forked in is the parent's to end."""
        driver = self._backend.driver
        if driver.shared:
            with suppress(driver.error):  # it was closed before
                if not self.raw.in_transaction:
                    driver.close(self._opened)

    def _ended(self) -> None:
        if self._began:
            self._began = False
            self.lock.release()


def _all_clean(rows: Sequence[Sequence[Any]]) -> bool:
    """Do all texts of these rows hold what they can? Mostly: looked at once, not one by one."""
    texts = "".join([value for row in rows for value in row if type(value) is str])
    return texts.isascii() and "\0" not in texts


def clean(values: Sequence[Any]) -> Sequence[Any]:
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
