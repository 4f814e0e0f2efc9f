"""The gateway beside no gateway and the least a gateway could do, in one run: requests per second of processor time.

    python bench/gateway.py [--seconds 2] [--all]

All on loopback: the lab answers, this process loads, each subject is a process of its own. Latency is added to the
direct one of the same run. What matters is the share of the minimal pass-through's requests per processor second.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from gateway_load import Measured, load, memory_of

ROUNDS = 6
HERE = Path(__file__).parent


class Cell(NamedTuple):
    """One case: how many connections, streamed or not, how large a request, how long the lab thinks."""

    connections: int
    stream: bool
    large: bool
    delay: float

    def __str__(self) -> str:
        kind = "stream of 100" if self.stream else "whole"
        return f"{kind}, {'200 kB' if self.large else 'small'}, {self.delay * 1000:.0f} ms, c={self.connections}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def request_of(cell: Cell) -> bytes:
    told = [{"role": "user", "content": "x" * 4_000}, {"role": "assistant", "content": "y"}] * 50 if cell.large else []
    messages = [*told, {"role": "user", "content": "count to 100" if cell.stream else "count to 20"}]
    body = json.dumps({"model": "small", "max_tokens": 1_000, "messages": messages, "stream": cell.stream}).encode()
    head = (
        "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: sk-test\r\n"
        "anthropic-version: 2023-06-01\r\naccept: application/json\r\nuser-agent: bench\r\nx-stainless-lang: python\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Subject(NamedTuple):
    """Something that listens."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    ready: float = 0.0


def start(name: str, port: int, *command: str) -> Subject:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while time.perf_counter() - began < 20:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return Subject(name, port, process, time.perf_counter() - began)
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"{name} did not start")


def subjects(delay: float, scratch: Path) -> list[Subject]:
    lab, minimal, ours, bare = free_port(), free_port(), free_port(), free_port()
    script = scratch / f"lab{delay}.json"
    script.write_text(json.dumps({"delay": delay}))
    url = f"http://127.0.0.1:{lab}"
    rung = (sys.executable, "-m", "rung")
    gateway = (*rung, "gateway", "--anthropic", url, "--openai", url, "--models", "small,large")
    return [
        start("direct", lab, *rung, "lab", "--port", str(lab), "--script", str(script)),
        start("minimal", minimal, sys.executable, str(HERE / "gateway_minimal.py"), url, str(minimal)),
        start("rung, no journal", bare, *gateway, "--port", str(bare), "--no-journal"),
        start("rung", ours, *gateway, "--port", str(ours), "--journal", str(scratch / f"j{delay}.db")),
    ]


async def measure(cell: Cell, found: list[Subject], seconds: float) -> dict[str, Measured]:
    ending = b"message_stop" if cell.stream else b"word20"
    measured = {subject.name: Measured() for subject in found}
    for turn in range(ROUNDS + 1):  # taking turns: what else this machine does then hits all of them alike
        for subject in found:
            one = await load(
                subject.port, request_of(cell), ending, cell.connections, seconds / ROUNDS, subject.process.pid
            )
            if turn:  # the first is to get warm
                measured[subject.name].add(one)
    return measured


def show(cell: Cell, measured: dict[str, Measured]) -> None:
    direct, minimal = measured["direct"], measured["minimal"]
    print(f"\n{cell}: direct p50 {direct.at(50):.2f} ms, p99 {direct.at(99):.2f} ms")
    print(f"  {'':18}{'req/cpu s':>10}{'of minimal':>11}{'req/s':>8}{'+p50 ms':>9}{'+p99 ms':>9}{'first ms':>9}  wrong")
    for name, one in measured.items():
        if name != "direct":
            share = one.per_cpu_second / minimal.per_cpu_second if minimal.per_cpu_second else 0.0
            print(
                f"  {name:18}{one.per_cpu_second:10.0f}{share:11.0%}{len(one.took) / one.seconds:8.0f}"
                f"{one.at(50) - direct.at(50):9.2f}{one.at(99) - direct.at(99):9.2f}{one.at(50, one.first):9.2f}  {one.wrong}"
            )


def cells(*, everything: bool) -> list[Cell]:
    if not everything:
        return [Cell(c, stream, False, 0.0) for c in (1, 32) for stream in (False, True)] + [Cell(32, False, True, 0.0)]
    return [
        Cell(c, stream, large, delay)
        for delay in (0.0, 0.02)
        for c in (1, 32, 128)
        for stream in (False, True)
        for large in (False, True)
    ]


async def main(options: Any) -> None:
    wanted = cells(everything=options.all)
    with tempfile.TemporaryDirectory() as scratch:
        for delay in sorted({cell.delay for cell in wanted}):
            found = subjects(delay, Path(scratch))
            try:
                for subject in found[1:]:
                    print(f"{subject.name}: ready in {subject.ready:.2f} s, {memory_of(subject.process.pid):.0f} MB")
                for cell in wanted:
                    if cell.delay == delay:
                        show(cell, await measure(cell, found, options.seconds))
                print()
                for subject in found[1:]:
                    print(f"{subject.name}: {memory_of(subject.process.pid):.0f} MB at the end")
            finally:
                for subject in found:
                    subject.process.terminate()
                for subject in found:
                    subject.process.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--all", action="store_true")
    uvloop.run(main(parser.parse_args()))
