"""Durable engines: steps per second, latency from submit to start, and takeover of a killed worker's run.

    python -m bench.fleet.engines [--runs N] [--steps N] [--rounds N] [--workers 1,2,4]

Ours run beside a bare DBOS workflow and a bare Temporal activity, in one run and in turns, on the same servers. The goals
are at least 80 % of the bare engine's steps, and a takeover within twice the lease.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.adapters.durable import temporal_server
from tests.engines.fleets import LEASE_SECONDS, EngineFleet, new_database, prepare
from tests.store import postgres

from bench.fleet import bare_dbos, bare_temporal
from rung.wiring.engines import engine as make_engine

if TYPE_CHECKING:
    from collections.abc import Callable

BARE = {"dbos": "bare dbos", "temporal": "bare temporal"}
GOAL = 0.8
ROW = "{:<22}{:>9}{:>12}{:>14}{:>14}{:>12}"


class Ours:
    """An engine behind our port."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name = f"rung {name}"
        self.fleet = EngineFleet(name, url, folder)
        prepare(name, url)

    def start_worker(self) -> None:
        self.fleet.start_worker(module="bench.fleet.bench_tasks")

    async def run_all(self, runs: int, steps: int) -> list[dict[str, float]]:
        """Submit runs, wait for their ends, and return when each was submitted, began and ended."""
        engine = make_engine(self.fleet.engine_name, url=self.fleet.url)
        try:
            submitted: dict[str, float] = {}
            for _ in range(runs):
                run = self.fleet.new_run()
                submitted[run] = time.time()
                await engine.submit(run, "steps", {"count": steps})
            return [{**(await engine.result(run, 300)), "submitted": at} for run, at in submitted.items()]
        finally:
            await engine.close()

    def stop(self) -> None:
        self.fleet.close()
        self.fleet.workers.clear()


class Bare:
    """An engine without us."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = BARE[name], url
        self._module = {"dbos": "bench.fleet.bare_dbos", "temporal": "bench.fleet.bare_temporal"}[name]
        self._workers: list[subprocess.Popen[bytes]] = []
        self._numbers = iter(range(1_000_000))

    def start_worker(self) -> None:
        worker = subprocess.Popen([sys.executable, "-m", self._module, self.url], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        self._workers.append(worker)

    async def run_all(self, runs: int, steps: int) -> list[dict[str, float]]:
        enqueue = await (self._dbos() if "dbos" in self.name else self._temporal())
        started = []
        for _ in range(runs):
            name = f"bare-{os.getpid()}-{time.time_ns()}-{next(self._numbers)}"
            started.append((time.time(), await enqueue(name, steps)))
        return [{**(await wait()), "submitted": at} for at, wait in started]

    async def _dbos(self) -> Callable[[str, int], Any]:
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=self.url, dbos_system_schema=bare_dbos.SCHEMA)

        async def enqueue(name: str, steps: int) -> Any:
            handle: Any = await client.enqueue_async(
                {"workflow_name": "bare.steps", "queue_name": bare_dbos.QUEUE, "workflow_id": name, "app_version": "1"},
                steps,
            )
            return lambda: handle.get_result(polling_interval_sec=0.1)

        return enqueue

    async def _temporal(self) -> Callable[[str, int], Any]:
        from temporalio.client import Client

        client = await Client.connect(self.url)

        async def enqueue(name: str, steps: int) -> Any:
            handle = await client.start_workflow("bare.steps", steps, id=name, task_queue=bare_temporal.QUEUE)
            return handle.result

        return enqueue

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.communicate()
        self._workers.clear()


def steps_per_second(ended: list[dict[str, float]], steps: int) -> float:
    """Return the rate from the first submit to the last end."""
    return len(ended) * steps / (max(run["ended"] for run in ended) - min(run["submitted"] for run in ended))


def measure(subject: Ours | Bare, workers: int, options: argparse.Namespace) -> dict[str, float]:
    """Measure one subject once, with so many workers."""
    for _ in range(workers):
        subject.start_worker()
    try:
        asyncio.run(subject.run_all(4, 2))  # warm: connections, queues, caches
        alone = [asyncio.run(subject.run_all(1, 1))[0] for _ in range(5)] if workers == 1 else []
        busy = asyncio.run(subject.run_all(options.runs, options.steps))
    finally:
        subject.stop()
    waits = [1_000 * (run["began"] - run["submitted"]) for run in alone]
    return {"rate": steps_per_second(busy, options.steps), "wait": median(waits) if waits else float("nan")}


def takeover_seconds(name: str, url: str, folder: Path) -> float:
    """Return the seconds from the kill of a worker to the start of its step on another one."""
    fleet = EngineFleet(name, url, folder)
    try:
        for _ in range(2):
            fleet.start_worker()
        Path(folder, "hold-s1").touch()
        fleet.submit("five", folder=fleet.folder)
        fleet.kill(fleet.until_logged("begin s1"))
        killed = time.monotonic()
        fleet.until_logged("begin s1", 2)
        return time.monotonic() - killed
    finally:
        fleet.close()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures to this file")
    options = parser.parse_args()
    with ExitStack() as exits:
        here = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        server = exits.enter_context(postgres.server(fsync="on", full_page_writes="on", shared_buffers="128MB"))
        address = exits.enter_context(temporal_server.server())

        def folder(name: str) -> Path:
            made = here / f"{name}-{time.time_ns()}"
            made.mkdir()
            return made

        urls = {
            "sqlite": str(here / "journal.db"),
            "postgres": new_database(server),
            "dbos": new_database(server),
            "temporal": address,
        }
        subjects: list[Ours | Bare] = [Ours(name, url, folder(name)) for name, url in urls.items()]
        subjects += [Bare("dbos", new_database(server)), Bare("temporal", address)]
        return report(subjects, urls, folder, options)


def report(
    subjects: list[Ours | Bare], urls: dict[str, str], folder: Callable[[str], Path], options: argparse.Namespace
) -> int:
    """Measure in turns and print medians."""
    counts = [int(part) for part in options.workers.split(",")]
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for workers in counts:
            for subject in subjects:
                found.setdefault((subject.name, workers), []).append(measure(subject, workers, options))
    print(
        f"{options.runs} runs of {options.steps} steps, medians of {options.rounds} rounds, {os.cpu_count()} cores, fsync on"
    )
    print(ROW.format("engine", "workers", "steps/s", "of bare", "submit→start", "takeover"))
    misses = 0
    rows: list[dict[str, Any]] = []
    for (name, workers), rounds in sorted(found.items()):
        rate = median(each["rate"] for each in rounds)
        bare = BARE.get(name.removeprefix("rung "))
        share = (
            median(
                each["rate"] / other["rate"]
                for each, other in zip(rounds, found.get((bare or "", workers), []), strict=False)
            )
            if bare
            else float("nan")
        )
        misses += share < GOAL
        wait = median(each["wait"] for each in rounds)
        taken = ""
        rows.append({"engine": name, "workers": workers, "rate": rate})
        if name.startswith("rung ") and workers == counts[0]:
            key = name.removeprefix("rung ")
            seconds = takeover_seconds(key, urls[key], folder(key))
            misses += seconds > 2 * LEASE_SECONDS
            taken = f"{seconds / LEASE_SECONDS:.2f} leases"
            rows[-1]["leases"] = seconds / LEASE_SECONDS
        shown = "" if share != share else f"{share:.0%}"  # noqa: PLR0124  # not a number
        print(ROW.format(name, workers, f"{rate:,.0f}", shown, "" if wait != wait else f"{wait:.0f} ms", taken))  # noqa: PLR0124
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print("goals: 80 % of the bare engine, takeover within two leases:", "missed" if misses else "kept")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
