"""Load test of the service: dashboards listen while sessions fail and recover, optionally with a restart.

Prints how many listeners received every event of the journal, the latency of the API, and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import aiohttp

import rung
from rung.store import open_journal
from rung.testing import HttpError, Script

TOKEN: Final = "a-token-for-the-load-test"
HEADERS: Final = {"authorization": f"Bearer {TOKEN}"}
MAX_P99_MS: Final = 50.0  # of the API


class DashboardListener:
    """A dashboard that receives every event, and resumes after a disconnect."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[int] = []
        self.disconnects = 0

    async def listen(self, client: aiohttp.ClientSession, ended: asyncio.Event) -> None:
        """Receive events until `ended` is set."""
        while not ended.is_set():
            headers = {**HEADERS, "last-event-id": str(self.received[-1] if self.received else 0)}
            try:
                async with client.get(self.url + "api/events", headers=headers) as answer:
                    async for line in answer.content:
                        if line.startswith(b"id: "):
                            self.received.append(int(line[4:]))
            except (aiohttp.ClientError, OSError):
                self.disconnects += 1
                await asyncio.sleep(0.2)


def start(port: int, journal: Path) -> subprocess.Popen[bytes]:
    """Start the service as a process."""
    command = [sys.executable, "-m", "rung.cli.main", "serve", "--port", str(port), "--journal", str(journal)]
    return subprocess.Popen([*command, "--token", TOKEN], stdout=subprocess.DEVNULL)


def fail_and_recover(place: Path, sessions: int, seconds: float) -> int:
    """Run failing sessions in a few threads; return the number of recoveries."""
    made = [0] * 8
    until = time.monotonic() + seconds
    with open_journal(place) as journal:

        def work(number: int) -> None:
            chance = random.Random(number)  # not for security
            while time.monotonic() < until:
                rung.recover_sync(
                    Script(*[HttpError(529, "overloaded")] * chance.randint(0, 3), "fine"),
                    rung.Request(prompt="a task", model="small"),
                    policy=rung.policy("call", backoff={"base": 0}),
                    journal=journal,
                    session=rung.Session("small", f"s-{chance.randrange(sessions)}"),
                    breakers=rung.BreakerRegistry(),
                    retry_budget=None,
                )
                made[number] += 1
                time.sleep(0.02)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(made))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(made)


def poll_api(url: str, seconds: float) -> list[float]:
    """Send the requests of a page repeatedly; return the sorted milliseconds of each."""
    times = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for path in ("sessions?limit=50", "analytics/failures", "inbox"):
            asked = time.perf_counter()
            try:
                with urllib.request.urlopen(
                    urllib.request.Request(f"{url}api/{path}", headers=HEADERS)
                ) as answer:  # our own
                    answer.read()
                times.append((time.perf_counter() - asked) * 1e3)
            except OSError:  # the service is restarting
                time.sleep(0.1)
        time.sleep(0.05)
    return sorted(times)


def memory_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Return the resident memory of a process in megabytes."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def wait_until_up(url: str, client: aiohttp.ClientSession) -> None:
    """Wait until the service answers."""
    for _ in range(300):
        try:
            async with client.get(url + "healthz"):
                return
        except aiohttp.ClientError:
            await asyncio.sleep(0.1)
    raise SystemExit("the service did not start")


async def _wait_for_listeners(dashboards: list[DashboardListener], place: Path) -> list[int]:
    """Return all events of the journal, after the listeners had up to 30 seconds to receive them."""
    with open_journal(place) as journal:
        kept = [seq for (seq,) in journal.read("SELECT seq FROM event ORDER BY seq")]
    for _ in range(300):
        if all(one.received and one.received[-1] >= kept[-1] for one in dashboards):
            break
        await asyncio.sleep(0.1)
    return kept


async def measure(listeners: int, sessions: int, seconds: float, *, restart: bool) -> dict[str, Any]:
    """Run the load test once."""
    place = Path(tempfile.mkdtemp(prefix="rung-load-")) / "journal.db"
    port = 20_000 + os.getpid() % 20_000
    url = f"http://127.0.0.1:{port}/"
    service = start(port, place)
    connector = aiohttp.TCPConnector(limit=0)
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(2, get_context("spawn")) as others:
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as client:
            await wait_until_up(url, client)
            dashboards, ended = [DashboardListener(url) for _ in range(listeners)], asyncio.Event()
            tasks = [asyncio.create_task(one.listen(client, ended)) for one in dashboards]
            await asyncio.sleep(1)
            before = memory_megabytes(service)
            work = loop.run_in_executor(others, fail_and_recover, place, sessions, seconds)
            asking = loop.run_in_executor(others, poll_api, url, seconds)
            if restart:
                await asyncio.sleep(seconds / 2)
                service.send_signal(signal.SIGKILL)
                service.wait()
                service = start(port, place)
                await wait_until_up(url, client)
            recoveries, times = await work, await asking
            kept = await _wait_for_listeners(dashboards, place)
            after = memory_megabytes(service)
            ended.set()
            service.send_signal(signal.SIGINT)
            stopping = time.monotonic()
            service.wait(30)
            stopped = time.monotonic() - stopping
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "recoveries": recoveries,
        "events": len(kept),
        "whole": sum(one.received == kept for one in dashboards),
        "listeners": listeners,
        "breaks": sum(one.disconnects for one in dashboards),
        "median": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
        "calls": len(times),
        "memory": (before, after),
        "stopped": stopped,
    }


def main() -> None:
    """Run the load test, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listeners", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--restart", action="store_true", help="kill the service half-way, and start it again")
    options = parser.parse_args()
    found = asyncio.run(measure(options.listeners, options.sessions, options.seconds, restart=options.restart))
    print(f"{found['recoveries']} recoveries, {found['events']} events, {options.sessions} sessions")
    print(f"listeners that received every event once, in order: {found['whole']} of {found['listeners']}", end="")
    print(f" ({found['breaks']} reconnects)")
    print(
        f"API over {found['calls']} calls: median {found['median']:.1f} ms, p99 {found['p99']:.1f} ms (goal {MAX_P99_MS:.0f})"
    )
    print(f"memory {found['memory'][0]:.0f} MB, at the end {found['memory'][1]:.0f} MB")
    print(f"Ctrl-C with {found['listeners']} streams open: ended after {found['stopped']:.2f} s")


if __name__ == "__main__":
    main()
