"""Commits one batch of write items in one transaction. An error of one item does not fail the others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import LeaseLost, StoreUnavailable
from rung.store.backends.durable_future import notify_waiters

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.backends.port import BackendConnection, DurableFuture, StoreBackend


class WriteItem(NamedTuple):
    """One write, and the check whether it was committed when the outcome of a commit is unknown."""

    work: Callable[[BackendConnection], Any]
    present: Callable[[BackendConnection], bool]
    future: DurableFuture[Any] | None
    buffered: bool  # may wait in the spool while the store is unavailable; its caller is released at once


class BatchCommitter:
    """Transactions of the writer's thread, on one connection that it opens when it needs one.

    `execute` runs all items of a batch and returns one result per item. `derive` updates the read models from the results,
    in the same transaction. `on_rollback` is called when a transaction or a part of it is undone.
    """

    def __init__(
        self,
        backend: StoreBackend,
        warn: Callable[[str], object],
        execute: Callable[[BackendConnection, list[WriteItem]], list[Any]],
        derive: Callable[[BackendConnection, list[Any]], object],
        on_rollback: Callable[[], object],
    ) -> None:
        self._backend = backend
        self._warn = warn
        self._execute = execute
        self._derive = derive
        self._on_rollback = on_rollback
        self._connection: BackendConnection | None = None
        self.commits = 0

    def commit(self, items: list[WriteItem]) -> None:
        """Write the items and resolve their futures; raise if the store is unavailable."""
        connection = self._connected()
        done: list[tuple[WriteItem, Any]] = []
        try:
            try:
                connection.begin()
                results = self._execute(connection, items)
                self._derive(connection, results)
                done = list(zip(items, results, strict=True))
            except StoreUnavailable:
                raise
            except (Exception, LeaseLost):  # again, one by one: an error of one item must not fail the others
                connection.rollback()
                self._on_rollback()
                connection.begin()
                done = []
                for item in items:
                    self._execute_one(connection, item, done)
        except BaseException:
            connection.rollback()
            raise
        try:
            connection.commit()
        except Exception:
            # The outcome is unknown, but a commit is atomic: all items are present, or none.
            self.drop_connection()
            connection = self._connected()
            if not all(item.present(connection) for item, _ in done):
                raise
        self.commits += 1
        resolved = [
            item.future for item, result in done if item.future is not None and item.future.resolve_silently(result)
        ]
        notify_waiters(resolved)

    def _execute_one(self, connection: BackendConnection, item: WriteItem, done: list[tuple[WriteItem, Any]]) -> None:
        """Execute one item in a savepoint; its error fails only its own future, unless the store is unavailable."""
        connection.execute("SAVEPOINT item")
        try:
            result = item.work(connection)
        except StoreUnavailable:
            raise
        except (Exception, LeaseLost) as error:
            connection.execute("ROLLBACK TO SAVEPOINT item")
            connection.execute("RELEASE SAVEPOINT item")
            self._on_rollback()
            if not resolve(item, error) and not isinstance(error, LeaseLost):  # no caller receives the error
                self._warn(f"an event could not be written: {type(error).__name__}: {error}")
            return
        connection.execute("RELEASE SAVEPOINT item")
        done.append((item, result))
        self._derive_one(connection, result)

    def _derive_one(self, connection: BackendConnection, result: Any) -> None:
        """Update the read models from one item; when that fails, the item itself is still written."""
        connection.execute("SAVEPOINT reading")
        try:
            self._derive(connection, [result])
        except StoreUnavailable:
            raise
        except Exception as error:
            connection.execute("ROLLBACK TO SAVEPOINT reading")
            self._on_rollback()
            message = " ".join(str(error).split())
            self._warn(f"{result} is written, but missing from the reports: {type(error).__name__}: {message}")
        connection.execute("RELEASE SAVEPOINT reading")

    def forget_connection(self) -> None:
        """Forget the connection without closing it: after a fork it is the parent's."""
        self._connection = None

    def _connected(self) -> BackendConnection:
        if self._connection is None:
            self._connection = self._backend.connect(write=True)
        return self._connection

    def drop_connection(self) -> None:
        """Close the connection; the next commit opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it is discarded either way
                connection.close()


def release(item: WriteItem, reason: str) -> None:
    """Resolve the future of an item that is not written: no recovery waits for a disk."""
    resolve(item, None if item.buffered else StoreUnavailable(reason))


def resolve(item: WriteItem, result: Any) -> bool:
    """Resolve an item's future with a result or an exception; return False when nothing receives it."""
    if item.future is None:
        return False
    if isinstance(result, BaseException):
        return item.future.set_exception(result)
    return item.future.set_result(result)
