"""Throughput of the lab: requests per second and per CPU second, over plain sockets.

python -m bench.gateway.lab [--requests 20000] [--connections 32]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

CASES = (
    # name, streamed, words of the answer, bytes of the prompt, share of the requests to send
    ("plain", False, 40, 20, 1.0),
    ("streamed, 100 tokens", True, 100, 20, 0.25),
    ("plain, 200 kB body", False, 40, 200_000, 0.1),
)


def main() -> None:
    """Start a lab, load it, print a table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--requests", type=int, default=20_000)
    options.add_argument("--connections", type=int, default=32)
    given = options.parse_args()
    with subprocess.Popen([sys.executable, "-m", "rung", "lab"], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        port = int(lab.stdout.readline().rsplit(":", 1)[1])
        try:
            print(f"{'case':<22} {'requests':>8} {'per second':>11} {'per CPU-second':>15} {'lab MB':>7}")
            for name, streamed, words, size, share in CASES:
                number = max(int(given.requests * share), given.connections)
                body = request(streamed, words, size)
                asyncio.run(load(port, body, streamed, given.connections, given.connections))  # warm
                cpu, began = cpu_seconds(lab.pid), time.perf_counter()
                asyncio.run(load(port, body, streamed, number, given.connections))
                took, used = time.perf_counter() - began, cpu_seconds(lab.pid) - cpu
                print(
                    f"{name:<22} {number:>8} {number / took:>11,.0f} {number / used:>15,.0f} {megabytes(lab.pid):>7.0f}"
                )
        finally:
            lab.send_signal(signal.SIGTERM)


def request(streamed: bool, words: int, size: int) -> bytes:
    prompt = f"count to {words} " + "x" * size
    asked = {"model": "m", "max_tokens": 1_000, "stream": streamed, "messages": [{"role": "user", "content": prompt}]}
    body = json.dumps(asked).encode()
    return b"POST /v1/messages HTTP/1.1\r\nhost: lab\r\nx-api-key: k\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


async def load(port: int, body: bytes, streamed: bool, number: int, connections: int) -> None:
    left = iter(range(number))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        for _ in left:
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            if streamed:
                await reader.readuntil(b"\r\n0\r\n\r\n")
            else:
                found = re.search(rb"content-length: (\d+)", head)
                assert found is not None
                await reader.readexactly(int(found[1]))
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))


def cpu_seconds(pid: int) -> float:
    ran = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(ran[11]) + int(ran[12])) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    main()
