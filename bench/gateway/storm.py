"""Load test of the gateway: random faults, then an outage, then recovery, then SIGTERM, with many clients.

    python -m bench.gateway.storm [--seconds 120] [--connections 128] [--rate 0.3] [--outage 60] [--no-journal]

Requirements: no client gets a failure that the ladder could have prevented; upstream attempts stay below 1.5 per request
in the storm and 1.2 in the outage; no request is refused in the outage, and all that wait are served soon after it; on
SIGTERM the gateway drains the requests in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from bench.gateway.load import memory_of
from bench.gateway.subjects import free_port, start, stop_all

# Faults that a retry, a splice or a resume can repair.
FAULTS = ["server_error", "overloaded", "bad_gateway", "reset", "cut", "no_end", "stream_error", "truncated_json"]
WHOLE = " ".join(f"apple{n}" for n in range(1, 41))
MAX_STORM_LOAD, MAX_OUTAGE_LOAD, RECOVERY_SECONDS = 1.5, 1.2, 45.0  # the pause between two probes is 30 s at most
IN_FLIGHT = 20


class Storm:
    """The clients and their results."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/messages"
        self.got: Counter[str] = Counter()
        self.until = 0.0
        self.longest_seconds = 0.0  # longest request

    async def client(self, session: aiohttp.ClientSession, number: int) -> None:
        while time.perf_counter() < self.until:
            stream = number % 2 == 0
            asked = {"role": "user", "content": f"count to 40 as apple ({number})"}
            body = {"model": "small", "max_tokens": 4_000, "messages": [asked], "stream": stream}
            began = time.perf_counter()
            try:
                async with session.post(self.url, json=body, headers={"x-api-key": "k"}) as answer:
                    got = self.classify_answer(answer.status, await answer.read(), stream=stream)
            except (aiohttp.ClientError, TimeoutError) as error:
                got = type(error).__name__
            self.got[got] += 1
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - began)

    @staticmethod
    def classify_answer(status: int, data: bytes, *, stream: bool) -> str:
        if status != 200:
            return f"status {status}"
        if not stream:
            text = "".join(block.get("text", "") for block in json.loads(data)["content"])
        else:
            events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
            text = "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
            if events[-1]["type"] != "message_stop":
                return f"no end: {events[-1].get('error', {}).get('message', events[-1]['type'])[:100]}"
        return "whole" if text == WHOLE else "wrong text"

    async def run(self, connections: int, seconds: float) -> Counter[str]:
        self.got, self.longest_seconds, self.until = Counter(), 0.0, time.perf_counter() + seconds
        timeout = aiohttp.ClientTimeout(total=180)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
            await asyncio.gather(*(self.client(session, number) for number in range(connections)))
        return self.got


async def set_script(lab: int, **table: Any) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"http://127.0.0.1:{lab}/lab/script", json=table) as done,
    ):
        assert done.status == 200, await done.text()


async def count_attempts(lab: int) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{lab}/lab/requests?last=1") as found:
        return int((await found.json())["attempts"])


def print_result(name: str, words: str, *, good: bool) -> int:
    print(f"{name:8} {words}; load {os.getloadavg()[0]:.1f}: {'met' if good else 'MISSED'}", flush=True)
    return not good


async def random_faults(storm: Storm, lab: int, options: Any) -> int:
    """Random faults: every client must get its complete answer."""
    await set_script(lab, rate=options.rate, seed=1, faults=FAULTS, delay=0.02)
    got = await storm.run(options.connections, options.seconds)
    asked = sum(got.values())
    load = await count_attempts(lab) / asked
    words = f"{options.seconds:g} s: {asked} requests, {dict(got)}, longest {storm.longest_seconds:.1f} s, upstream load {load:.2f}x"
    return print_result("storm", words, good=got["whole"] == asked and load <= MAX_STORM_LOAD)


async def outage(storm: Storm, lab: int, options: Any) -> int:
    """Outage: all requests wait, with few attempts upstream; then the upstream recovers, and all are served."""
    await set_script(lab, rules=[{"fault": "overloaded"}])
    work = asyncio.create_task(storm.run(options.connections, options.outage))
    await asyncio.sleep(options.outage)
    refused, asked = dict(storm.got), options.connections + storm.got.total()
    load = await count_attempts(lab) / asked
    words = f"{options.outage:g} s: {asked} requests, ended meanwhile {refused}, upstream load {load:.2f}x"
    bad = print_result("outage", words, good=load <= MAX_OUTAGE_LOAD and not refused)
    await set_script(lab)
    began = time.perf_counter()
    got = await work
    took = time.perf_counter() - began
    words = f"{dict(got)}, the last one {took:.1f} s after the outage"
    return bad + print_result("after it", words, good=got["whole"] == asked and took < RECOVERY_SECONDS)


async def drain_on_sigterm(storm: Storm, lab: int, gateway: Any) -> int:
    """SIGTERM: requests in flight are answered before the gateway exits."""
    await set_script(lab, delay=0.5)
    work = asyncio.create_task(storm.run(IN_FLIGHT, 0.1))
    while await count_attempts(lab) < IN_FLIGHT:  # noqa: ASYNC110  # counted in another process
        await asyncio.sleep(0.01)
    gateway.process.terminate()
    got = await work
    code = await asyncio.to_thread(gateway.process.wait, 60)
    words = f"with {IN_FLIGHT} under way: {dict(got)}, exit code {code}"
    return print_result("SIGTERM", words, good=got["whole"] == IN_FLIGHT and code == 0)


async def main(options: Any) -> int:
    lab, port = free_port(), free_port()
    url = f"http://127.0.0.1:{lab}"
    rung = (sys.executable, "-m", "rung")
    with tempfile.TemporaryDirectory() as scratch:
        started = [start("lab", lab, *rung, "lab", "--port", str(lab))]
        try:
            journal = ("--no-journal",) if options.no_journal else ("--journal", str(Path(scratch, "journal.db")))
            flags = ("--port", str(port), "--anthropic", url, "--openai", url, *journal)
            started.append(start("rung", port, *rung, "gateway", *flags, path="/readyz"))
            storm = Storm(port)
            bad = await random_faults(storm, lab, options)
            bad += await outage(storm, lab, options)
            print(f"memory   {memory_of(started[1].process.pid):.1f} MB")
            bad += await drain_on_sigterm(storm, lab, started[1])
        finally:
            stop_all(started)
    return 1 if bad else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--outage", type=float, default=60.0)
    parser.add_argument("--no-journal", action="store_true")
    sys.exit(uvloop.run(main(parser.parse_args())))
