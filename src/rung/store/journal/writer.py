"""One thread that writes: what many callers hand over at once is committed at once, each item by itself."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import LeaseLost, StoreUnavailable
from rung.store.backends.durable_future import tell
from rung.store.backends.port import DurableFuture
from rung.store.journal.fork_and_exit import attend

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.backends.port import BackendConnection, StoreBackend

BATCH: Final = 512
SPOOL: Final = 20_000  # items that wait while the store cannot take them
NOTES: Final = 100_000  # good calls that wait to be written; more than that nobody can keep up with
LINGER: Final = 0.05  # seconds in which good calls gather: nobody waits for them, and to wake a thread costs
PAUSES: Final = (0.05, 0.2, 1.0, 5.0)  # between tries of a store that is in trouble


class WriteItem(NamedTuple):
    """Something to write, and how to see whether it was written when a commit's outcome is unknown."""

    work: Callable[[BackendConnection], Any]
    present: Callable[[BackendConnection], bool]
    ticket: DurableFuture[Any] | None
    patient: bool  # may wait in the spool, its caller told that it goes on without it


class _Wake:
    """There are notes."""


STIR: Final = _Wake()


class Writer:
    """Hands items to a thread of its own, which begins, does them, and commits them together."""

    def __init__(
        self,
        backend: StoreBackend,
        tell: Callable[[str], object],
        do: Callable[[BackendConnection, list[WriteItem]], list[Any]],
        finish: Callable[[BackendConnection, list[Any]], object],
        undone: Callable[[], object] = lambda: None,
        unfold: Callable[[Any], WriteItem] | None = None,
        *,
        room: int = NOTES,
        spool: int = SPOOL,
    ) -> None:
        self._backend = backend
        self._tell = tell
        self._do = do  # all items of a batch: what comes of each
        self._finish = finish  # is given the results of a batch, before it is committed
        self._undone = undone  # is told when what was done in a batch was taken back
        self._unfold = unfold  # makes an item of a note
        self.trouble = ""  # why the store does not take anything now; empty: it does
        self._told = False  # that something waits; whoever must know at once is given an error instead
        self.dropped = 0
        self.room = room
        self._spool_size = spool
        self.missed = 0  # good calls there was no room for
        self._fresh()

    def _fresh(self) -> None:
        self._queue: SimpleQueue[WriteItem | _Wake | None] = SimpleQueue()
        self._notes: deque[Any] = deque()  # of good calls, to be unfolded here
        self._taken = 0  # notes, so far
        self._stirred = False  # the thread knows, or is about to see, that there are notes
        self._busy = False  # it has just written something
        self._batch: list[WriteItem] = []  # taken from the queue to be written
        self._spool: deque[WriteItem] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: BackendConnection | None = None

    def put(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[Any]:
        """Write this; the ticket is good when it is durable, and fails when it cannot be."""
        return self._put(work, present, patient=False)

    def enqueue_buffered(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[Any]:
        """Write this as soon as it can be: while the store is in trouble it waits, and nobody else does."""
        return self._put(work, present, patient=True)

    def _put(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool], *, patient: bool
    ) -> DurableFuture[Any]:
        ticket: DurableFuture[Any] = DurableFuture()
        self._hand_over(WriteItem(work, present, ticket, patient))
        return ticket

    def enqueue_lazy(self, note: Any, *, always: bool = False) -> None:
        """Write what this unfolds to, some time soon: the cheapest way to hand anything over, and nobody waits."""
        notes = self._notes
        if len(notes) >= self.room and not always:
            self.missed += 1
            return
        notes.append(note)
        if not self._stirred:
            self._stirred = True
            self._hand_over(STIR)

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until all that was handed over is durable; False when that takes longer."""
        if self._thread is None:
            return not self._spool
        until, goal = monotonic() + seconds, len(self._notes) + self._taken
        caught_up = False
        while not caught_up:
            caught_up = self._taken >= goal or not self._notes  # if it is, this ticket comes after them
            ticket = self.put(lambda _: None, lambda _: True)
            try:
                ticket.result(max(0.0, until - monotonic()))
            except Exception:  # in trouble, or too slow: either way it is not all durable
                return False
        return not self._spool

    def close(self, seconds: float = 10.0) -> None:
        """Write what is left, and end the thread."""
        thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join(seconds)
            if thread.is_alive():
                self._say(f"the journal could not be written within {seconds:.0f} seconds: what is left may be lost")

    def _hand_over(self, item: WriteItem | _Wake) -> None:
        self._queue.put(item)
        if self._thread is None:
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                attend(self)
                self._thread = threading.Thread(target=self._work, name="rung-journal", daemon=True)
                self._thread.start()

    # -- after a fork ---------------------------------------------------------------------------------

    def reset_after_fork(self) -> None:
        """This is the child: what was handed over before is the parent's to write, and nobody here waits for it."""
        theirs = [*self._batch, *self._spool]
        with suppress(Empty):
            while True:
                theirs += [item] if isinstance(item := self._queue.get_nowait(), WriteItem) else []
        self._fresh()
        for item in theirs:
            _release(item, "it was handed over before a fork")

    # -- in the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        tries, ending = 0, False
        while not ending:
            ending = self._back_off(PAUSES[min(tries, len(PAUSES)) - 1]) if self._spool else self._take()
            self._take_notes(go_on=not ending)
            if self._batch or self._spool:
                self._busy = True
                tries = 0 if self._write() else tries + 1
        while self._notes and not self._spool:
            self._take_notes(go_on=False)
            self._write()
        self._drop_connection()
        self._say_missed()
        if self._spool:
            left = len(self._spool) + len(self._notes) + self.dropped
            self._say(f"the journal was closed while it could not be written: {left} parts of what happened are lost")
        self._thread = None
        if not self._queue.empty():  # handed over while we ended
            self._begin()

    def _take(self) -> bool:
        """Take what was handed over, waiting for the first; True when that was the end."""
        with suppress(Empty):
            item = self._next()
            while item is not None:
                if isinstance(item, WriteItem):
                    self._batch.append(item)
                    if len(self._batch) >= BATCH:
                        return False
                    item = self._queue.get_nowait()
                elif self._batch or len(self._notes) >= BATCH:
                    item = self._queue.get_nowait()
                else:
                    item = self._queue.get(timeout=LINGER)
            return True
        return False

    def _next(self) -> WriteItem | _Wake | None:
        """The next that is handed over. Where one comes another soon does: for a while notes need not wake us."""
        if self._busy:
            self._busy, self._stirred = False, True
            with suppress(Empty):
                return self._queue.get(timeout=LINGER)
            self._stirred = False  # before we look: whoever comes later stirs
            if self._notes:
                return STIR
        return self._queue.get()

    def _take_notes(self, *, go_on: bool) -> None:
        """Take the next notes in hand; should there be more, come back for them."""
        self._stirred = False  # before they are taken: whoever comes later stirs again
        notes = self._notes
        for _ in range(min(len(notes), BATCH)):
            self._take_note(notes.popleft())
            self._taken += 1
        if notes and go_on and not self._stirred:
            self._stirred = True
            self._queue.put(STIR)
        if not notes:
            self._say_missed()

    def _say_missed(self) -> None:
        if self.missed:
            missed, self.missed = self.missed, 0
            self._say(f"the journal could not keep up: {missed} calls that went well are not in it")

    def _take_note(self, note: Any) -> None:
        assert self._unfold is not None  # noqa: S101  # who notes also unfolds
        try:
            self._batch.append(self._unfold(note))
        except Exception as error:
            self._say(f"a call could not be kept: {type(error).__name__}: {error}")

    def _back_off(self, pause: float) -> bool:
        """Give a store in trouble some time: what can wait joins what waits. True when that was the end."""
        until = monotonic() + pause
        with suppress(Empty):
            while (item := self._queue.get(timeout=max(0.0, until - monotonic()))) is not None:
                if isinstance(item, _Wake):
                    continue
                if not item.patient:
                    self._batch.append(item)
                    return False
                self._spool_item(item)
            return True
        return False

    def _write(self) -> bool:
        """Write what waits and what is at hand; False when the store is in trouble: then what can wait does."""
        self._batch[:0] = self._spool
        self._spool.clear()
        try:
            while self._batch:
                self._commit(self._batch[:BATCH])
                del self._batch[:BATCH]
        except Exception as error:  # whatever the store says: the work goes on without it
            self._drop_connection()
            self._undone()
            self._in_trouble(error)
            return False
        self.trouble = ""
        if self._told:
            lost = f"; {self.dropped} were lost" if self.dropped else ""
            self._told, self.dropped = False, 0
            self._say(f"the journal can be written again, and what had waited is in it{lost}")
        return True

    def _commit(self, items: list[WriteItem]) -> None:
        connection = self._connected()
        done: list[tuple[WriteItem, Any]] = []
        try:
            try:
                connection.begin()
                results = self._do(connection, items)
                self._finish(connection, results)
                done = list(zip(items, results, strict=True))
            except StoreUnavailable:
                raise
            except (Exception, LeaseLost):  # once more, each by itself: what is wrong with one is its own affair
                connection.rollback()
                self._undone()
                connection.begin()
                done = []
                for item in items:
                    self._one(connection, item, done)
        except BaseException:
            connection.rollback()
            raise
        try:
            connection.commit()
        except Exception:
            # Nobody knows whether it happened: look. All of it did, or nothing.
            self._drop_connection()
            connection = self._connected()
            if not all(item.present(connection) for item, _ in done):
                raise
        answered = [item.ticket for item, result in done if item.ticket is not None and item.ticket.settle(result)]
        tell(answered)

    def _one(self, connection: BackendConnection, item: WriteItem, done: list[tuple[WriteItem, Any]]) -> None:
        """One item in a savepoint: what is wrong with it is its own affair, unless the store is in trouble."""
        connection.execute("SAVEPOINT item")
        try:
            result = item.work(connection)
        except StoreUnavailable:
            raise
        except (Exception, LeaseLost) as error:
            connection.execute("ROLLBACK TO SAVEPOINT item")
            connection.execute("RELEASE SAVEPOINT item")
            self._undone()
            if not _answer(item, error) and not isinstance(error, LeaseLost):  # nobody waits for it any more
                self._say(f"an event could not be kept: {type(error).__name__}: {error}")
            return
        connection.execute("RELEASE SAVEPOINT item")
        done.append((item, result))
        self._finish_one(connection, result)

    def _finish_one(self, connection: BackendConnection, result: Any) -> None:
        """What is read off one item: where that cannot be written, the item itself is kept all the same."""
        connection.execute("SAVEPOINT reading")
        try:
            self._finish(connection, [result])
        except StoreUnavailable:
            raise
        except Exception as error:
            connection.execute("ROLLBACK TO SAVEPOINT reading")
            self._undone()
            words = " ".join(str(error).split())
            self._say(f"{result} is kept, but not in the reports: {type(error).__name__}: {words}")
        connection.execute("RELEASE SAVEPOINT reading")

    def _in_trouble(self, error: Exception) -> None:
        self.trouble = reason = " ".join(str(error).split()) or type(error).__name__
        items, self._batch = self._batch, []
        for item in items:
            if item.patient:
                self._spool_item(item)
            else:
                _release(item, reason)

    def _spool_item(self, item: WriteItem) -> None:
        """It waits in memory; whoever handed it over does not."""
        if not self._told:
            self._told = True
            self._say(f"the journal cannot be written ({self.trouble}): the work goes on, events wait in memory")
        if len(self._spool) < self._spool_size:
            self._spool.append(item)
        else:
            self.dropped += 1
        _release(item, self.trouble)

    def _say(self, message: str) -> None:
        with suppress(Exception):  # warnings may be errors; and a writer that dies lets all wait for ever
            self._tell(message)

    def _connected(self) -> BackendConnection:
        if self._connection is None:
            self._connection = self._backend.connect(write=True)
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it is given up either way
                connection.close()


def _release(item: WriteItem, why: str) -> None:
    """Nobody waits for it any longer, though it is not written: nobody's work waits for a disk."""
    _answer(item, None if item.patient else StoreUnavailable(why))


def _answer(item: WriteItem, result: Any) -> bool:
    """Give whoever waits for it its result or exception; False when nobody does."""
    if item.ticket is None:
        return False
    if isinstance(result, BaseException):
        return item.ticket.set_exception(result)
    return item.ticket.set_result(result)
