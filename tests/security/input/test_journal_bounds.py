"""Failures faster than the disk: the journal makes their callers wait, and counts exactly what it cannot keep."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import RungError
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from rung.store.journal.lost_writes import lost_writes

if TYPE_CHECKING:
    from pathlib import Path

CALLS, THREADS, BOUND = 60, 4, 16


class SlowBackend(SqliteBackend):
    """A real store on a slow disk: each commit takes 20 ms, or waits until the gate opens."""

    gate: threading.Event | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_committing = threading.Event()

    def connect(self, *, write: bool) -> Any:
        connection = super().connect(write=write)
        commit = connection.commit

        def slow_commit() -> None:
            time.sleep(0.02)
            self.is_committing.set()
            if self.gate is not None:
                self.gate.wait()
            commit()

        connection.commit = slow_commit  # type: ignore[method-assign]
        return connection


def succeed() -> str:
    return "good"


def fail(_: object = None) -> None:
    raise LookupError("no such thing")


def incidents(journal: Journal) -> int:
    return int(journal.read("SELECT count(*) FROM incident WHERE status <> 'open'")[0][0])


# On a busy machine, a look for orders waits for this journal longer than its two seconds: it is given up, with a warning.
@pytest.mark.filterwarnings("ignore:rung. interventions failed and was ignored:RuntimeWarning")
@pytest.mark.parametrize("way", ["guarded", "recover", "async"])
def test_callers_wait_for_the_disk(tmp_path: Path, way: str) -> None:
    """Four threads or tasks that fail as fast as they can never have more than the bound waiting, and no failure is missing."""
    policy = rung.policy("task", attempts=1)
    journal = Journal(SlowBackend(tmp_path / "journal.db"), max_pending_items=BOUND)
    backlog: list[int] = []

    def attempt(_: object = None) -> None:
        backlog.append(journal.pending)
        fail()

    guarded = rung.guarded(policy, journal=journal)(attempt)

    async def calls() -> None:
        for _ in range(CALLS):
            await rung.recover(attempt, "do it", policy=policy, journal=journal)

    async def four_tasks() -> None:
        await asyncio.gather(*(calls() for _ in range(THREADS)))

    def work() -> None:
        for _ in range(CALLS):
            if way == "recover":
                rung.recover_sync(attempt, "do it", policy=policy, journal=journal)
            else:
                with pytest.raises(LookupError):
                    guarded()

    threads = [threading.Thread(target=work) for _ in range(THREADS if way != "async" else 0)]
    for thread in threads:
        thread.start()
    if way == "async":
        asyncio.run(four_tasks())
    for thread in threads:
        thread.join()
    journal.close()
    assert incidents(journal) == CALLS * THREADS
    assert max(backlog) <= BOUND + 4 * THREADS  # what callers that have begun may still add


def test_a_store_that_answers_is_written_to_the_end(tmp_path: Path) -> None:
    """Closing waits as long as the store makes progress, however much is left."""
    journal = Journal(SlowBackend(tmp_path / "journal.db"), max_pending_items=10_000)
    guarded = rung.guarded(rung.policy("task", attempts=1), journal=journal)(fail)
    for _ in range(600):
        with pytest.raises(LookupError):
            guarded()
    journal.close(seconds=0.5)
    assert incidents(journal) == 600


def test_what_is_lost_is_told_exactly_and_stored(tmp_path: Path) -> None:
    """Successful calls beyond the bound are counted; the number is told once and is in the journal."""
    told: list[str] = []
    backend = SlowBackend(tmp_path / "journal.db")
    with Journal(backend, on_warning=told.append, max_lazy_items=10) as journal:
        backend.gate = threading.Event()
        journal.close()  # the next write opens a connection that waits at the gate
        guarded = rung.guarded(journal=journal)(succeed)
        for _ in range(1_000):
            guarded()
        backend.gate.set()
        journal.flush()
    recorded = incidents(journal)
    rows = journal.read("SELECT who, action, detail FROM audit")
    assert [(who, action) for who, action, _ in rows] == [("rung", "journal.lost")] * len(told)
    lost = sum(json.loads(detail)["successful_calls"] for *_, detail in rows)
    assert recorded + lost == 1_000
    assert lost_writes(journal) == (lost, 0)
    assert lost > 0
    assert sum(int(text.split(": ")[1].split()[0]) for text in told) == lost


def test_a_store_that_hangs_is_told_with_a_number(tmp_path: Path) -> None:
    """A journal that is closed while its store hangs says how many writes are lost, and releases all who wait."""
    told: list[str] = []
    backend = SlowBackend(tmp_path / "journal.db")
    backend.gate = threading.Event()
    journal = Journal(backend, on_warning=told.append, max_pending_items=1)
    first = journal.write(lambda _: None, lambda _: True)
    assert backend.is_committing.wait(30)
    waiting = [journal.write(lambda _: None, lambda _: True) for _ in range(7)]
    journal.close(seconds=0.05)
    backend.gate.set()
    first.result(60)
    assert ["lost writes: 7, and up to 1" in text for text in told] == [True]
    for future in waiting:
        assert isinstance(future.exception(10), RungError)
