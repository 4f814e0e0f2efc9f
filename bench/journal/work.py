"""What `journal.py` measures: appends by many writers, the same writes by SQLite alone, and what a caller pays."""

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
from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.engine.loop.run import classify_cached as failure_of
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
    """How fast it went."""

    events: float  # each second
    each: float = 0.0  # events in a commit
    p50: float = 0.0  # milliseconds until an append is durable
    p99: float = 0.0


class Part(NamedTuple):
    """Events that are handed over together."""

    incident: str
    first: int
    events: tuple[ev.Event, ...]


def recovery() -> list[Part]:
    """What a call that fails once hands over: three events when it has failed, one when it is over."""
    number = next(NUMBERS)
    incident, at = f"bench-{number}", time.time()
    failure = failure_of(ERROR)
    return [
        Part(
            incident,
            0,
            (
                ev.Opened(at, incident, TERMS, Request(prompt=f"{number} {PROMPT}", model="gpt-mini")),
                ev.AttemptFailed(at, failure, 1.25, 0.002, may_retry=True),
                ev.Decided(at, ev.Repeat(0, 0.457, "the service said when to come back")),
            ),
        ),
        Part(incident, 3, (ev.AttemptSucceeded(at, 2.5, 0.004),)),
    ]


def work_of(writers: int, recoveries: int) -> list[list[Part]]:
    """For each writer what it hands over, one after the other."""
    return [[part for _ in range(recoveries) for part in recovery()] for _ in range(writers)]


# -- ours -----------------------------------------------------------------------------------------------


class Recorded(SqliteConnection):
    """Notes what is written in each transaction, so that the same can be done without us."""

    noted: list[list[Write]]

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        rows = super().execute(sql, values)
        if sql.startswith(("INSERT", "UPDATE")):
            self.noted[-1].append((sql, [tuple(values)]))
        return rows

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        super().executemany(sql, rows)
        self.noted[-1].append((sql, rows))

    def begin(self) -> None:
        super().begin()
        self.noted.append([])


class RecordedBackend(SqliteBackend):
    """A backend whose connections note what they write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.noted: list[list[Write]] = []

    def connect(self, *, write: bool) -> SqliteConnection:
        connection = super().connect(write=write)
        if write:
            connection.__class__ = Recorded
            connection.noted = self.noted  # type: ignore[attr-defined]
        return connection


def by_threads(path: Path, work: list[list[Part]]) -> tuple[Speed, list[list[Write]]]:
    """Each writer is a thread that waits until its part is durable."""
    with Journal(backend := RecordedBackend(path)) as journal, ThreadPoolExecutor(len(work)) as pool:
        ready = threading.Barrier(len(work) + 1)

        def write(parts: list[Part]) -> list[float]:
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
        return _speed(work, time.perf_counter() - began, waits, backend), backend.noted


def by_tasks(path: Path, work: list[list[Part]]) -> tuple[Speed, list[list[Write]]]:
    """Each writer is a task in one loop."""

    async def write(journal: Journal, parts: list[Part]) -> list[float]:
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

    with Journal(backend := RecordedBackend(path)) as journal:
        return _speed(work, *asyncio.run(main(journal)), backend), backend.noted


def _speed(work: list[list[Part]], seconds: float, waits: list[float], backend: RecordedBackend) -> Speed:
    events = sum(len(part.events) for parts in work for part in parts)
    cuts = quantiles(waits, n=100)
    return Speed(events / seconds, events / max(1, len(backend.noted)), cuts[49] * 1e3, cuts[98] * 1e3)


# -- SQLite alone ---------------------------------------------------------------------------------------


def alone(path: Path, transactions: list[list[Write]], *, only: str = "") -> Speed:
    """Raw SQLite's best: the same rows in the same transactions, ready made, with nothing else to do."""
    if only:
        transactions = [[write for write in writes if only in write[0]] for writes in transactions]
    connection = _ready(path)
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


def naively(path: Path, transactions: list[list[Write]]) -> Speed:
    """The events alone, ready made, with a commit for each."""
    connection = _ready(path)
    writes = [(sql, row) for writes in transactions for sql, rows in writes if "INTO event " in sql for row in rows]
    began = time.perf_counter()
    for sql, row in writes:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(sql, row)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return Speed(len(writes) / seconds, 1)


def _ready(path: Path) -> apsw.Connection:
    """An empty journal, open as ours is."""
    Journal(SqliteBackend(path)).close()
    raw: apsw.Connection = SqliteBackend(path).connect(write=True).raw
    return raw


# -- what a caller pays ---------------------------------------------------------------------------------


class Paid(NamedTuple):
    """Microseconds of the caller's own processor time for a call; of all its time for a good one, and between two attempts."""

    good: float
    failed: float
    whole: list[float]
    between: list[float]


def paid(calls: int, **ports: Any) -> Paid:
    """What a guarded call costs its caller: one that goes well, and one that fails once. Nobody waits."""
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

    good, failed = _spent(fine, calls), _spent(fails_once, calls)
    whole = []
    for _ in range(calls // 2):
        began = time.perf_counter()
        fine()
        whole.append((time.perf_counter() - began) * 1e6)
    return Paid(good, failed, whole, [(begin - end) * 1e6 for end, begin in zip(ends, begins, strict=True)])


def _spent(call: Callable[[], object], calls: int) -> float:
    """Microseconds of thread time for one call: the median of ten turns."""
    turns = []
    for _ in range(10):
        began = time.thread_time()
        for _ in range(calls // 10):
            call()
        turns.append((time.thread_time() - began) / (calls // 10) * 1e6)
    return median(turns)


def handing_over(journal: Journal, calls: int) -> tuple[float, float]:
    """Microseconds of thread time to hand over what failed, and to hand over what nobody waits for."""
    parts = [recovery() for _ in range(calls)]
    first = iter([one for one, _ in parts])
    last = iter([two for _, two in parts])
    return (
        _spent(lambda: journal.append(*next(first)), calls),
        _spent(lambda: journal.append_final(*next(last)), calls),
    )
