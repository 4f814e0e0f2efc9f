"""One thread that writes: what many callers hand over at once is committed at once, each item by itself."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from os import getpid
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.store.port import Busy, Fenced, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rung.store.port import Backend, Connection

BATCH: Final = 512
SPOOL: Final = 20_000  # items that wait while the store cannot take them
PAUSES: Final = (0.05, 0.2, 1.0, 5.0)  # between tries of a store that is in trouble


class Item(NamedTuple):
    """Something to write, and how to see whether it was written when a commit's outcome is unknown."""

    work: Callable[[Connection], Any]
    present: Callable[[Connection], bool]
    ticket: Ticket[Any] | None
    patient: bool  # may wait in the spool, its caller told that it goes on without it


class Writer:
    """Hands items to a thread of its own, which begins, does each in a savepoint, and commits them together."""

    def __init__(
        self,
        backend: Backend,
        tell: Callable[[str], object],
        finish: Callable[[Connection, list[Any]], object],
    ) -> None:
        self._backend = backend
        self._tell = tell
        self._finish = finish  # is given the results of a batch, before it is committed
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._spool: deque[Item] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._connection: Connection | None = None
        self.trouble = ""  # why the store does not take anything now; empty: it does
        self.dropped = 0

    def put(self, work: Callable[[Connection], Any], present: Callable[[Connection], bool]) -> Ticket[Any]:
        """Write this; the ticket is good when it is durable, and fails when it cannot be."""
        ticket: Ticket[Any] = Ticket()
        self._hand_over(Item(work, present, ticket, patient=False))
        return ticket

    def put_patiently(
        self, work: Callable[[Connection], Any], present: Callable[[Connection], bool], *, awaited: bool
    ) -> Ticket[Any] | None:
        """Write this as soon as it can be: while the store is in trouble it waits, and nobody else does."""
        ticket: Ticket[Any] | None = Ticket() if awaited else None
        self._hand_over(Item(work, present, ticket, patient=True))
        return ticket

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until all that was handed over is durable; False when that takes longer."""
        if self._thread is None:
            return True
        ticket = self.put(lambda _: None, lambda _: True)
        try:
            ticket.result(seconds)
        except Exception:  # in trouble, or too slow: either way it is not all durable
            return False
        return not self._spool

    def close(self, seconds: float = 10.0) -> None:
        """Write what is left, and end the thread."""
        thread = self._thread
        if thread is None or self._pid != getpid():
            return
        self._queue.put(None)
        thread.join(seconds)
        self._thread = None

    def _hand_over(self, item: Item) -> None:
        self._queue.put(item)
        if self._thread is None or self._pid != getpid():
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is not None and self._pid == getpid():
                return
            if self._pid not in {0, getpid()}:  # a fork: the thread and its connection stayed with the parent
                self._connection = None
            self._pid = getpid()
            self._thread = threading.Thread(target=self._work, name="rung-journal", daemon=True)
            self._thread.start()

    # -- in the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        tries = 0
        while True:
            pause = PAUSES[min(tries, len(PAUSES)) - 1] if self._spool else None
            batch, ending = self._next(pause)
            if batch or self._spool:
                tries = 0 if self._write(batch) else tries + 1
            if ending:
                self._drop_connection()
                return

    def _next(self, seconds: float | None) -> tuple[list[Item], bool]:
        """What was handed over meanwhile; waits for the first, at most so long."""
        batch: list[Item] = []
        try:
            item = self._queue.get(timeout=seconds)
            while item is not None:
                batch.append(item)
                if len(batch) >= BATCH:
                    return batch, False
                item = self._queue.get_nowait()
        except Empty:
            return batch, False
        return batch, True

    def _write(self, batch: list[Item]) -> bool:
        """Write the spool and the batch; False when the store is in trouble: then what can wait does."""
        waiting = [*self._spool, *batch]
        self._spool.clear()
        while waiting:
            try:
                self._commit(waiting[:BATCH])
            except Exception as error:  # whatever the store says: the work goes on without it
                self._drop_connection()
                self._in_trouble(error, waiting)
                return False
            waiting = waiting[BATCH:]
        if self.trouble:
            lost = f"; {self.dropped} were lost" if self.dropped else ""
            self._tell(f"the journal can be written again, and what had waited is in it{lost}")
            self.trouble, self.dropped = "", 0
        return True

    def _commit(self, items: list[Item]) -> None:
        connection = self._connected()
        done: list[tuple[Item, Any]] = []
        connection.begin()
        try:
            for item in items:
                self._one(connection, item, done)
            self._finish(connection, [result for _, result in done])
        except BaseException:
            connection.rollback()
            raise
        try:
            connection.commit()
        except Exception:
            # Nobody knows whether it happened: look, and only do again what did not.
            self._drop_connection()
            connection = self._connected()
            missing = [item for item, _ in done if not item.present(connection)]
            _succeed((item, result) for item, result in done if item not in missing)
            if missing:
                raise
            return
        _succeed(done)

    def _one(self, connection: Connection, item: Item, done: list[tuple[Item, Any]]) -> None:
        """One item in a savepoint: what is wrong with it is its own affair, unless the store is in trouble."""
        connection.execute("SAVEPOINT item")
        try:
            result = item.work(connection)
        except Busy:
            raise
        except (Exception, Fenced) as error:
            connection.execute("ROLLBACK TO SAVEPOINT item")
            connection.execute("RELEASE SAVEPOINT item")
            if item.ticket is not None and not item.ticket.done():
                item.ticket.set_exception(error)
            elif item.ticket is None:
                self._tell(f"an event could not be kept: {type(error).__name__}: {error}")
            return
        connection.execute("RELEASE SAVEPOINT item")
        done.append((item, result))

    def _in_trouble(self, error: Exception, items: list[Item]) -> None:
        reason = " ".join(str(error).split()) or type(error).__name__
        if not self.trouble:
            self._tell(f"the journal cannot be written ({reason}): the work goes on, events wait in memory")
        self.trouble = reason
        for item in items:
            if not item.patient:
                if item.ticket is not None and not item.ticket.done():
                    item.ticket.set_exception(Busy(reason))
                continue
            if len(self._spool) < SPOOL:
                self._spool.append(item)
            else:
                self.dropped += 1
            if item.ticket is not None and not item.ticket.done():
                item.ticket.set_result(None)  # nobody's work waits for a disk

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._backend.connect(write=True)
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it is given up either way
                connection.close()


def _succeed(done: Iterable[tuple[Item, Any]]) -> None:
    for item, result in done:
        if item.ticket is not None and not item.ticket.done():
            item.ticket.set_result(result)
