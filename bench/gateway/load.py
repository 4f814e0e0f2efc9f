"""A closed loop of keep-alive connections: how long each request took, and how long its first byte."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Measured:
    """What one run came to."""

    took: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    wrong: int = 0

    def add(self, other: Measured) -> None:
        """One more round of the same."""
        self.took += other.took
        self.first += other.first
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.wrong += other.wrong

    def at(self, percent: float, times: list[float] | None = None) -> float:
        """Milliseconds at this percentile."""
        ordered = sorted(self.took if times is None else times)
        return 1_000 * ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))] if ordered else 0.0

    @property
    def per_cpu_second(self) -> float:
        """Requests for each second of the gateway's processor time."""
        return len(self.took) / self.cpu if self.cpu else 0.0


def cpu_of(pid: int) -> float:
    """Seconds of processor time a process has used, in all its threads and those of its children."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
        total += sum(int(1e9 * cpu_of(int(child))) for child in (task / "children").read_text().split())
    return total / 1e9


def memory_of(pid: int) -> float:
    """Megabytes a process has in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1_024
    return 0.0


class Loader(asyncio.Protocol):
    """One connection, one request after another."""

    def __init__(self, request: bytes, more: Callable[[], bool], measured: Measured, ending: bytes) -> None:
        self.request, self.more, self.measured, self.ending = request, more, measured, ending
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.data = bytearray()
        self.sent = self.came = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.data.clear()
        self.came = 0.0
        self.sent = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.came:
            self.came = time.perf_counter()
        self.data += data
        if not self.complete():
            return
        now = time.perf_counter()
        self.measured.took.append(now - self.sent)
        self.measured.first.append(self.came - self.sent)
        if self.ending not in self.data or not self.data.startswith(b"HTTP/1.1 200"):
            self.measured.wrong += 1
        if self.more():
            self.send()
        else:
            self.transport.close()

    def complete(self) -> bool:
        head = self.data.find(b"\r\n\r\n")
        if head < 0:
            return False
        at = self.data.lower().find(b"content-length: ", 0, head)
        if at < 0:
            return self.data.endswith(b"0\r\n\r\n")
        length = int(self.data[at + 16 : self.data.find(b"\r\n", at)])
        return len(self.data) - head - 4 >= length

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.measured.wrong += 1
        if not self.over.done():
            self.over.set_result(None)


async def load(port: int, request: bytes, ending: bytes, connections: int, seconds: float, pid: int | None) -> Measured:
    """Load a port for so long with so many connections; `pid` is whose processor time is measured."""
    measured = Measured()
    before = cpu_of(pid) if pid else 0.0
    began = time.perf_counter()
    until = began + seconds
    await _all(port, connections, lambda: Loader(request, lambda: time.perf_counter() < until, measured, ending))
    measured.seconds = time.perf_counter() - began
    measured.cpu = cpu_of(pid) - before if pid else 0.0
    return measured


async def send(port: int, request: bytes, ending: bytes, connections: int, number: int) -> int:
    """Send so many requests; how many of the answers were wrong."""
    measured = Measured()
    left = number - connections

    def more() -> bool:
        nonlocal left
        left -= 1
        measured.took.clear()  # nobody asks how long: a hundred thousand times would only be kept
        measured.first.clear()
        return left >= 0

    await _all(port, connections, lambda: Loader(request, more, measured, ending))
    return measured.wrong


async def _all(port: int, connections: int, make: Callable[[], Loader]) -> None:
    loop = asyncio.get_running_loop()
    loaders = [(await loop.create_connection(make, "127.0.0.1", port))[1] for _ in range(connections)]
    await asyncio.gather(*(loader.over for loader in loaders))
