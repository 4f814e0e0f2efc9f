"""Throughput limits of a journal: events, recoveries and durable tasks per second, with several writers and processes."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bench.fleet.footprint import Work
from bench.journal.work import make_work
from rung.store import open_journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.journal.work import EventBatch
    from rung.store.journal.journal import Journal

THREADS = 50


def events_per_second(journal: Journal, recoveries: int, writers: int = THREADS) -> float:
    """Append the events of recoveries from threads, each of which waits until its append is durable."""
    work = make_work(writers, max(1, recoveries // writers))

    def write(parts: list[EventBatch]) -> int:
        for part in parts:
            journal.append(*part).result()
        return sum(len(part.events) for part in parts)

    began = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        events = sum(pool.map(write, work))
    return events / (time.perf_counter() - began)


def units_per_second(journal: Journal, unit: Callable[[Work], None], number: int, writers: int = THREADS) -> float:
    """Do units of work in threads."""
    work = Work(journal)
    began = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda _: unit(work), range(number)))
    journal.flush(600)
    return number / (time.perf_counter() - began)


def events_of_processes(url: str, processes: int, recoveries: int) -> float:
    """Append from several processes at once; return the events per second of all of them."""
    words = [sys.executable, "-m", "bench.fleet.limits", url, str(recoveries)]
    running = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    for one in running:
        assert one.stdout is not None
        one.stdout.readline()  # it is ready
    began = time.perf_counter()
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=300)
    return processes * recoveries * 4 / (time.perf_counter() - began)  # four events each


def main() -> None:
    """Append when told to, as one of several processes."""
    with open_journal(sys.argv[1]) as journal:
        journal.read("SELECT 1")
        print("ready", flush=True)
        sys.stdin.readline()
        events_per_second(journal, int(sys.argv[2]))


if __name__ == "__main__":
    main()
