"""A storm: many clients, a provider that fails by chance, then an outage, then good weather again.

    python bench/gateway_storm.py [--seconds 20] [--connections 128] [--rate 0.3] [--outage 10]

What must hold: no client sees a failure the ladder could have prevented, the upstream's load stays near the number of
requests (at most 1.5 of it in the storm, 1.2 in the outage), and service is normal soon after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

import aiohttp
import uvloop

from gateway_subjects import free_port, start

# Faults a repeat, a splice or a resume can mend.
FAULTS = ["server_error", "overloaded", "bad_gateway", "reset", "cut", "no_end", "stream_error", "truncated_json"]
WHOLE = " ".join(f"apple{n}" for n in range(1, 41))


class Storm:
    """The clients, and what they got."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/messages"
        self.got: Counter[str] = Counter()
        self.until = 0.0
        self.pause = 0.0

    async def client(self, session: aiohttp.ClientSession, number: int) -> None:
        while time.perf_counter() < self.until:
            stream = number % 2 == 0
            asked = {"role": "user", "content": f"count to 40 as apple ({number})"}
            body = {"model": "small", "max_tokens": 4_000, "messages": [asked], "stream": stream}
            try:
                async with session.post(self.url, json=body, headers={"x-api-key": "k"}) as answer:
                    self.got[self.read(answer.status, await answer.read(), stream=stream)] += 1
            except (aiohttp.ClientError, TimeoutError) as error:
                self.got[type(error).__name__] += 1
            await asyncio.sleep(self.pause)

    @staticmethod
    def read(status: int, data: bytes, *, stream: bool) -> str:
        if status != 200:
            return f"status {status}"
        if not stream:
            text = "".join(block.get("text", "") for block in json.loads(data)["content"])
        else:
            events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
            text = "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
            if events[-1]["type"] != "message_stop":
                return "no end"
        return "whole" if text == WHOLE else "wrong text"

    async def run(self, connections: int, seconds: float) -> Counter[str]:
        self.got, self.until = Counter(), time.perf_counter() + seconds
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
            await asyncio.gather(*(self.client(session, number) for number in range(connections)))
        return self.got


async def script(lab: int, **table: Any) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"http://127.0.0.1:{lab}/lab/script", json=table) as done,
    ):
        assert done.status == 200, await done.text()


async def attempts(lab: int) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{lab}/lab/requests") as found:
        return int((await found.json())["attempts"])


async def main(options: Any) -> int:
    lab, port = free_port(), free_port()
    url = f"http://127.0.0.1:{lab}"
    rung = (sys.executable, "-m", "rung")
    started = [start("lab", lab, *rung, "lab", "--port", str(lab))]
    try:
        gateway = ("gateway", "--port", str(port), "--anthropic", url, "--openai", url, "--no-journal")
        started.append(start("rung", port, *rung, *gateway))
        storm = Storm(port)
        bad = 0
        await script(lab, rate=options.rate, seed=1, faults=FAULTS, delay=0.02)
        got = await storm.run(options.connections, options.seconds)
        asked = sum(got.values())
        load = await attempts(lab) / asked
        bad += asked - got["whole"] + (load > 1.5)
        print(f"storm: {asked} requests, {dict(got)}, upstream load {load:.2f}x")
        await script(lab, rules=[{"fault": "overloaded"}])
        storm.pause = 0.05
        got = await storm.run(options.connections, options.outage)
        asked = sum(got.values())
        load = await attempts(lab) / asked
        bad += load > 1.2
        print(f"outage: {asked} requests, {dict(got)}, upstream load {load:.2f}x")
        await script(lab)
        began, whole = time.perf_counter(), 0.0
        while not whole and time.perf_counter() - began < 20:
            got = await storm.run(1, 0.1)
            whole = got["whole"]
        print(f"after it: whole again in {time.perf_counter() - began:.1f} s")
        bad += not whole
        await script(lab, delay=0.5)
        work = asyncio.create_task(storm.run(20, 0.1))
        await asyncio.sleep(0.3)
        started[1].process.terminate()
        got = await work
        print(f"SIGTERM with 20 under way: {dict(got)}, exit code {started[1].process.wait(40)}")
        bad += 20 - got["whole"]
    finally:
        for subject in started:
            subject.process.terminate()
            subject.process.wait(40)
    return 1 if bad else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--outage", type=float, default=10.0)
    sys.exit(uvloop.run(main(parser.parse_args())))
