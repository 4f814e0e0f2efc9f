"""Workloads of the journal benchmark: concurrent appends, the same writes with raw SQLite, the overhead for a caller."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import rung
from rung.core.classify.failure_cache import classify_cached as failure_of
from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.engine.local_zone import local_zone
from rung.store.backends.sqlite import SqliteBackend
from rung.store.backends.sqlite_connection import SqliteConnection
from rung.store.journal.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import apsw

    from rung.store.backends.port import Row

NUMBERS = count()
PROMPT = "Rewrite the parser so that it reads one line at a time, and keep every test that is there. " * 4
ERROR = ConnectionError(
    "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-mini in organization on tokens per min (TPM): "
    "Limit 200000, Used 199215, Requested 2309. Please try again in 457ms.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}"
)
TERMS = ev.IncidentContext(
    "task", "task", rungs=("retry", "nudge", "replan", "fallback", "force-done"), session="s", project="p"
)
Write: TypeAlias = tuple[str, Sequence[Sequence[Any]]]


class Speed(NamedTuple):
    """Throughput and latency of appends."""

    events: float  # per second
    each: float = 0.0  # events per commit
    p50: float = 0.0  # milliseconds until an append is durable
    p99: float = 0.0


class EventBatch(NamedTuple):
    """Events that are appended together."""

    incident: str
    first: int
    events: tuple[ev.Event, ...]


def recovery() -> list[EventBatch]:
    """Return the appends of a call that fails once: three events after the failure, one at the end."""
    number = next(NUMBERS)
    incident, at = f"bench-{number}", time.time()
    failure = failure_of(ERROR, at, local_zone)
    return [
        EventBatch(
            incident,
            0,
            (
                ev.Opened(at, incident, TERMS, Request(prompt=f"{number} {PROMPT}", model="gpt-mini")),
                ev.AttemptFailed(at, failure, 1.25, 0.002, may_retry=True),
                ev.Decided(at, ev.Repeat(0, 0.457, "the service said when to come back")),
            ),
        ),
        EventBatch(incident, 3, (ev.AttemptSucceeded(at, 2.5, 0.004),)),
    ]


def make_work(writers: int, recoveries: int) -> list[list[EventBatch]]:
    """Return the appends of each writer."""
    return [[part for _ in range(recoveries) for part in recovery()] for _ in range(writers)]


# -- ours -----------------------------------------------------------------------------------------------


class RecordingConnection(SqliteConnection):
    """Connection that records the writes of each transaction, to repeat them with raw SQLite."""

    noted: list[list[Write]]

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        rows = super().execute(sql, values)
        if sql.startswith(("INSERT", "UPDATE")):
            self.noted[-1].append((sql, [tuple(values)]))
        return rows

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        super().executemany(sql, rows)
        self.noted[-1].append((sql, rows))

    def begin(self) -> None:
        super().begin()
        self.noted.append([])


class RecordingBackend(SqliteBackend):
    """Backend whose connections record their writes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.transactions: list[list[Write]] = []

    def connect(self, *, write: bool) -> SqliteConnection:
        connection = super().connect(write=write)
        if write:
            connection.__class__ = RecordingConnection
            connection.noted = self.transactions  # type: ignore[attr-defined]
        return connection


def append_by_threads(path: Path, work: list[list[EventBatch]]) -> tuple[Speed, list[list[Write]]]:
    """Append from threads; each waits until its append is durable."""
    with Journal(backend := RecordingBackend(path)) as journal, ThreadPoolExecutor(len(work)) as pool:
        ready = threading.Barrier(len(work) + 1)

        def write(parts: list[EventBatch]) -> list[float]:
            ready.wait()
            waits = []
            for part in parts:
                began = time.perf_counter()
                journal.append(*part).result()
                waits.append(time.perf_counter() - began)
            return waits

        running = [pool.submit(write, parts) for parts in work]
        ready.wait()
        began = time.perf_counter()
        waits = [wait for future in running for wait in future.result()]
        return _speed(work, time.perf_counter() - began, waits, backend), backend.transactions


def append_by_tasks(path: Path, work: list[list[EventBatch]]) -> tuple[Speed, list[list[Write]]]:
    """Append from tasks of one event loop."""

    async def write(journal: Journal, parts: list[EventBatch]) -> list[float]:
        waits = []
        for part in parts:
            began = time.perf_counter()
            await journal.append(*part)
            waits.append(time.perf_counter() - began)
        return waits

    async def main(journal: Journal) -> tuple[float, list[float]]:
        began = time.perf_counter()
        waits = await asyncio.gather(*(write(journal, parts) for parts in work))
        return time.perf_counter() - began, [wait for each in waits for wait in each]

    with Journal(backend := RecordingBackend(path)) as journal:
        return _speed(work, *asyncio.run(main(journal)), backend), backend.transactions


def _speed(work: list[list[EventBatch]], seconds: float, waits: list[float], backend: RecordingBackend) -> Speed:
    events = sum(len(part.events) for parts in work for part in parts)
    cuts = quantiles(waits, n=100)
    return Speed(events / seconds, events / max(1, len(backend.transactions)), cuts[49] * 1e3, cuts[98] * 1e3)


# -- SQLite alone ---------------------------------------------------------------------------------------


def raw_sqlite(path: Path, transactions: list[list[Write]], *, only: str = "") -> Speed:
    """Write the same rows in the same transactions with raw SQLite."""
    if only:
        transactions = [[write for write in writes if only in write[0]] for writes in transactions]
    connection = _open_empty(path)
    events = sum(len(rows) for writes in transactions for sql, rows in writes if "INTO event " in sql)
    began = time.perf_counter()
    for writes in transactions:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in writes:
            connection.executemany(sql, rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return Speed(events / seconds, events / len(transactions))


def raw_sqlite_naive(path: Path, transactions: list[list[Write]]) -> Speed:
    """Write only the events with raw SQLite, with a commit per event."""
    connection = _open_empty(path)
    writes = [(sql, row) for writes in transactions for sql, rows in writes if "INTO event " in sql for row in rows]
    began = time.perf_counter()
    for sql, row in writes:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(sql, row)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return Speed(len(writes) / seconds, 1)


def _open_empty(path: Path) -> apsw.Connection:
    """Create an empty journal and return its raw connection."""
    Journal(SqliteBackend(path)).close()
    raw: apsw.Connection = SqliteBackend(path).connect(write=True).raw
    return raw


# -- what a caller pays ---------------------------------------------------------------------------------


class CallerCost(NamedTuple):
    """Microseconds of a caller: CPU time per call; elapsed time of successful calls, and between two attempts."""

    good: float
    failed: float
    whole: list[float]
    between: list[float]


def caller_cost(calls: int, **ports: Any) -> CallerCost:
    """Measure a guarded call that succeeds, and one that fails once, without backoff."""
    attempts = count()
    ends: list[float] = []
    begins: list[float] = []
    breakers = rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=1000))  # every second attempt fails
    ports |= {"breakers": breakers, "retry_budget": None}
    policy = rung.policy("call", backoff={"base": 0})

    @rung.guarded(policy, **ports)
    def fine() -> int:
        return 1

    @rung.guarded(policy, **ports)
    def fails_once() -> int:
        if next(attempts) & 1:
            begins.append(time.perf_counter())
            return 1
        ends.append(time.perf_counter())
        raise ConnectionResetError("x")

    good, failed = _thread_microseconds(fine, calls), _thread_microseconds(fails_once, calls)
    whole = []
    for _ in range(calls // 2):
        began = time.perf_counter()
        fine()
        whole.append((time.perf_counter() - began) * 1e6)
    return CallerCost(good, failed, whole, [(begin - end) * 1e6 for end, begin in zip(ends, begins, strict=True)])


def _thread_microseconds(call: Callable[[], object], calls: int) -> float:
    """Return the CPU microseconds of one call: the median of ten turns."""
    turns = []
    for _ in range(10):
        began = time.thread_time()
        for _ in range(calls // 10):
            call()
        turns.append((time.thread_time() - began) / (calls // 10) * 1e6)
    return median(turns)


def append_cost(journal: Journal, calls: int) -> tuple[float, float]:
    """Return the CPU microseconds of an append after a failure, and of a final append that nobody awaits."""
    parts = [recovery() for _ in range(calls)]
    first = iter([one for one, _ in parts])
    last = iter([two for _, two in parts])
    return (
        _thread_microseconds(lambda: journal.append(*next(first)), calls),
        _thread_microseconds(lambda: journal.append_final(*next(last)), calls),
    )
