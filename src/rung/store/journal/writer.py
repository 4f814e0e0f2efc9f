"""Journal writer: one thread that commits the writes of all callers in batches (group commit)."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rung.store.backends.port import DurableFuture
from rung.store.journal.batch_commit import BatchCommitter, WriteItem, release
from rung.store.journal.fork_and_exit import register

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.backends.port import BackendConnection, StoreBackend

MAX_BATCH_ITEMS: Final = 512  # items per transaction
MAX_SPOOLED_ITEMS: Final = 20_000  # buffered items kept in memory while the store is unavailable
MAX_LAZY_ITEMS: Final = 100_000  # lazy items waiting to be written; further ones are dropped and counted
MAX_PENDING_ITEMS: Final = 4_096  # with more, a caller that records a failure waits until its item is written
LINGER_SECONDS: Final = 0.05  # time to collect lazy items: no caller waits for them, and waking the thread costs
BACKOFF_SECONDS: Final = (0.05, 0.2, 1.0, 5.0)  # delays between attempts while the store is unavailable


class _Wake:
    """Queue entry that tells the thread that lazy items are waiting."""


_WAKE: Final = _Wake()


class Writer:
    """Queues writes for its thread, which executes them in batches and commits each batch once."""

    def __init__(
        self,
        backend: StoreBackend,
        warn: Callable[[str], object],
        execute: Callable[[BackendConnection, list[WriteItem]], list[Any]],
        derive: Callable[[BackendConnection, list[Any]], object],
        on_rollback: Callable[[], object] = lambda: None,
        to_item: Callable[[Any], WriteItem] | None = None,
        record_lost: Callable[[BackendConnection, int, int], object] = lambda *_: None,
        *,
        max_lazy_items: int = MAX_LAZY_ITEMS,
        max_spooled_items: int = MAX_SPOOLED_ITEMS,
        max_pending_items: int = MAX_PENDING_ITEMS,
    ) -> None:
        self._warn = partial(_warn_safely, warn)
        self._on_rollback = on_rollback
        self._committer = BatchCommitter(backend, self._warn, execute, derive, on_rollback)
        self._to_item = to_item  # makes a write item of a lazy one
        self._record_lost = record_lost  # stores how many successful calls and how many writes were lost
        self.last_error = ""  # why the store is unavailable; empty when it is available
        self._warned = False  # about spooled items; callers that are not buffered receive an error instead
        self.spool_dropped = 0
        self.max_lazy_items = max_lazy_items
        self._max_spooled_items = max_spooled_items
        self._max_pending_items = max_pending_items
        self.lazy_dropped = 0
        self._reset()

    def _reset(self) -> None:
        self._queue: SimpleQueue[WriteItem | _Wake | None] = SimpleQueue()
        self._lazy: deque[Any] = deque()
        self._lazy_taken = 0  # lazy items taken from the deque so far
        self._wake_pending = False  # the thread knows, or is about to see, that there are lazy items
        self._just_wrote = False
        self._batch: list[WriteItem] = []  # taken from the queue to be written
        self._spool: deque[WriteItem] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._committer.forget_connection()

    def enqueue(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[Any]:
        """Queue a write; the future resolves when it is durable, and fails when the store is unavailable."""
        return self._enqueue(work, present, buffered=False)

    def enqueue_buffered(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[Any]:
        """Queue a write that waits in memory while the store is unavailable; its future then resolves at once."""
        return self._enqueue(work, present, buffered=True)

    def _enqueue(
        self, work: Callable[[BackendConnection], Any], present: Callable[[BackendConnection], bool], *, buffered: bool
    ) -> DurableFuture[Any]:
        future: DurableFuture[Any] = DurableFuture()
        self._put(WriteItem(work, present, future, buffered))
        return future

    @property
    def pending(self) -> int:
        """Return the number of queued writes."""
        return len(self._lazy) + self._queue.qsize()

    @property
    def is_behind(self) -> bool:
        """Return whether so much is waiting to be written that callers have to wait for it."""
        return self.pending >= self._max_pending_items

    def enqueue_final(self, lazy: Any) -> DurableFuture[Any] | None:
        """Queue a value that must not be dropped; return a future to wait for if the writer is behind."""
        if not self.is_behind:
            self._put_lazy(lazy)
            return None
        item = self._lazy_to_item(lazy)._replace(future=DurableFuture())
        self._put(item)
        return item.future

    def enqueue_lazy(self, lazy: Any) -> None:
        """Queue a value that `to_item` converts in the thread: the cheapest way to write, without a future."""
        if len(self._lazy) < self.max_lazy_items:
            self._put_lazy(lazy)
        else:
            with self._lock:
                self.lazy_dropped += 1

    def _put_lazy(self, lazy: Any) -> None:
        self._lazy.append(lazy)
        if not self._wake_pending:
            self._wake_pending = True
            self._put(_WAKE)

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything queued is durable; return False when that takes longer."""
        if self._thread is None:
            return not self._spool
        until, goal = monotonic() + seconds, len(self._lazy) + self._lazy_taken
        caught_up = False
        while not caught_up:
            caught_up = self._lazy_taken >= goal or not self._lazy  # then the next item is written after them
            future = self.enqueue(lambda _: None, lambda _: True)
            try:
                future.result(max(0.0, until - monotonic()))
            except Exception:  # the store is unavailable or slow: either way not everything is durable
                return False
        return not self._spool

    def close(self, seconds: float = 10.0) -> None:
        """Write everything queued and end the thread; give up when the store has not answered for `seconds`."""
        thread, commits = self._thread, -1
        if thread is None:
            return
        self._queue.put(None)
        while thread.is_alive() and commits != self._committer.commits:
            commits = self._committer.commits
            thread.join(seconds)
        if thread.is_alive():
            writing = len(self._batch)
            lost = self._give_up(f"the store has not answered for {seconds:.0f} s")
            self._warn(
                f"the journal was closed although its store has not answered for {seconds:.0f} s; lost writes: {lost}, "
                f"and up to {writing} that are being written"
            )

    def _give_up(self, reason: str) -> int:
        """Drop everything that the thread has not taken yet, release its callers, and return the number of writes."""
        dropped = [*self._take_all_queued(), *self._spool]
        lost = len(dropped) + len(self._lazy) + self.lazy_dropped + self.spool_dropped
        self._lazy.clear()
        self._spool.clear()
        self.lazy_dropped = self.spool_dropped = 0
        self._queue.put(None)  # the thread may still wake up, and ends then
        for item in dropped:
            release(item, reason)
        return lost

    def _take_all_queued(self) -> list[WriteItem]:
        taken: list[WriteItem] = []
        with suppress(Empty):
            while True:
                taken += [item] if isinstance(item := self._queue.get_nowait(), WriteItem) else []
        return taken

    def _put(self, item: WriteItem | _Wake) -> None:
        self._queue.put(item)
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                register(self)
                self._thread = threading.Thread(target=self._run, name="rung-journal", daemon=True)
                self._thread.start()

    def reset_after_fork(self) -> None:
        """Start afresh in the child of a fork; items queued before are written by the parent."""
        inherited = [*self._batch, *self._spool, *self._take_all_queued()]
        self._reset()
        for item in inherited:
            release(item, "queued before a fork")

    def _run(self) -> None:
        tries, closing = 0, False
        while not closing:
            closing = self._back_off(_backoff_seconds(tries)) if self._spool else self._take_queued()
            self._take_lazy(wake_again=not closing)
            self._add_lost()
            if self._batch or self._spool:
                self._just_wrote = True
                tries = 0 if self._write() else tries + 1
        while (self._lazy or self.lazy_dropped or self.spool_dropped) and not self._spool:
            self._take_lazy(wake_again=False)
            self._add_lost()
            self._write()
        self._committer.drop_connection()
        if self._spool:
            calls, self.lazy_dropped = self.lazy_dropped, 0
            lost = len(self._spool) + len(self._lazy) + self.spool_dropped + calls
            self._warn(f"the journal was closed while the store was unavailable; lost writes: {lost}")
        self._thread = None
        if not self._queue.empty():  # queued while the thread was ending
            self._start()

    def _take_queued(self) -> bool:
        """Fill the batch from the queue, waiting for the first item; return True when the writer is closing."""
        with suppress(Empty):
            item = self._next()
            while item is not None:
                if isinstance(item, WriteItem):
                    self._batch.append(item)
                    if len(self._batch) >= MAX_BATCH_ITEMS:
                        return False
                    item = self._queue.get_nowait()
                elif self._batch or len(self._lazy) >= MAX_BATCH_ITEMS:
                    item = self._queue.get_nowait()
                else:
                    item = self._queue.get(timeout=LINGER_SECONDS)
            return True
        return False

    def _next(self) -> WriteItem | _Wake | None:
        """Return the next queue entry. Right after a write, linger first, so that lazy items need not wake the thread."""
        if self._just_wrote:
            self._just_wrote, self._wake_pending = False, True
            with suppress(Empty):
                return self._queue.get(timeout=LINGER_SECONDS)
            self._wake_pending = False  # before the check: an item added later wakes the thread
            if self._lazy:
                return _WAKE
        return self._queue.get()

    def _take_lazy(self, *, wake_again: bool) -> None:
        """Move lazy items into the batch; when more remain, schedule another wake."""
        self._wake_pending = False  # before they are taken: an item added later wakes the thread
        waiting = self._lazy
        for _ in range(min(len(waiting), MAX_BATCH_ITEMS)):
            self._convert_lazy(waiting.popleft())
            self._lazy_taken += 1
        if waiting and wake_again and not self._wake_pending:
            self._wake_pending = True
            self._queue.put(_WAKE)

    def _add_lost(self) -> None:
        """Add the number of lost writes to the batch, once the store takes what is left; tell the user when it is stored."""
        if self._lazy or self._spool or not (self.lazy_dropped or self.spool_dropped):
            return
        with self._lock:
            calls, writes = self.lazy_dropped, self.spool_dropped
            self.lazy_dropped = self.spool_dropped = 0

        def work(connection: BackendConnection) -> None:
            self._record_lost(connection, calls, writes)

        future: DurableFuture[Any] = DurableFuture()
        if calls:  # the number of other writes was told when the store was available again
            future.add_done_callback(
                lambda _: self._warn(f"the journal could not keep up: {calls} successful calls were not recorded")
            )
        self._batch.append(WriteItem(work, lambda _: True, future, buffered=True))

    def _lazy_to_item(self, lazy: Any) -> WriteItem:
        assert self._to_item is not None  # noqa: S101  # lazy items are only enqueued where it is set
        return self._to_item(lazy)

    def _convert_lazy(self, lazy: Any) -> None:
        try:
            self._batch.append(self._lazy_to_item(lazy))
        except Exception as error:
            self._warn(f"a call could not be recorded: {type(error).__name__}: {error}")

    def _back_off(self, pause: float) -> bool:
        """Wait before the next attempt, spooling buffered items; return True when the writer is closing."""
        until = monotonic() + pause
        with suppress(Empty):
            while (item := self._queue.get(timeout=max(0.0, until - monotonic()))) is not None:
                if isinstance(item, _Wake):
                    continue
                if not item.buffered:
                    self._batch.append(item)
                    return False
                self._spool_item(item)
            return True
        return False

    def _write(self) -> bool:
        """Write the spool and the batch; return False when the store is unavailable and buffered items are spooled."""
        self._batch[:0] = self._spool
        self._spool.clear()
        try:
            while self._batch:
                self._committer.commit(self._batch[:MAX_BATCH_ITEMS])
                del self._batch[:MAX_BATCH_ITEMS]
        except Exception as error:  # of any kind: an unavailable store must not stop recoveries
            self._committer.drop_connection()
            self._on_rollback()
            self._spool_batch(error)
            return False
        self.last_error = ""
        if self._warned:
            self._warned = False
            lost = f"; {self.spool_dropped} were lost" if self.spool_dropped else ""
            self._warn(f"the journal is writable again; buffered events are written{lost}")
            self._queue.put(_WAKE)  # the next batch stores the number
        return True

    def _spool_batch(self, error: Exception) -> None:
        """Spool the buffered items of the batch and fail the others."""
        self.last_error = reason = " ".join(str(error).split()) or type(error).__name__
        items, self._batch = self._batch, []
        for item in items:
            if item.buffered:
                self._spool_item(item)
            else:
                release(item, reason)

    def _spool_item(self, item: WriteItem) -> None:
        """Keep an item in memory and release its caller."""
        if not self._warned:
            self._warned = True
            self._warn(f"the journal cannot be written ({self.last_error}): recovery continues, events are buffered")
        if len(self._spool) < self._max_spooled_items:
            self._spool.append(item)
        else:
            self.spool_dropped += 1
        release(item, self.last_error)


def _warn_safely(warn: Callable[[str], object], message: str) -> None:
    with suppress(Exception):  # warnings may be errors; if the thread died, callers would wait forever
        warn(message)


def _backoff_seconds(tries: int) -> float:
    return BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS)) - 1]
