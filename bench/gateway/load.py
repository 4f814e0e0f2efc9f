"""Load generator: keep-alive connections in a closed loop; measures duration and time to first byte."""

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
    """Result of a run."""

    took: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    wrong: int = 0

    def add(self, other: Measured) -> None:
        """Add the result of another round."""
        self.took += other.took
        self.first += other.first
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.wrong += other.wrong

    def percentile_ms(self, percent: float, times: list[float] | None = None) -> float:
        """Return a percentile in milliseconds."""
        ordered = sorted(self.took if times is None else times)
        return 1_000 * ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))] if ordered else 0.0

    @property
    def per_cpu_second(self) -> float:
        """Return requests per CPU second of the gateway."""
        return len(self.took) / self.cpu if self.cpu else 0.0


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process, with all its threads and children."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
        total += sum(int(1e9 * cpu_of(int(child))) for child in (task / "children").read_text().split())
    return total / 1e9


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1_024
    return 0.0


class Loader(asyncio.Protocol):
    """One connection that sends requests one after another."""

    def __init__(self, request: bytes, more: Callable[[], bool], measured: Measured, ending: bytes) -> None:
        self.request, self.more, self.measured, self.ending = request, more, measured, ending
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.data = bytearray()
        self.sent_at = self.first_byte_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.data.clear()
        self.first_byte_at = 0.0
        self.sent_at = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.first_byte_at:
            self.first_byte_at = time.perf_counter()
        self.data += data
        if not self.complete():
            return
        now = time.perf_counter()
        self.measured.took.append(now - self.sent_at)
        self.measured.first.append(self.first_byte_at - self.sent_at)
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
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, request: bytes, ending: bytes, connections: int, seconds: float, pid: int | None) -> Measured:
    """Load a port for `seconds` with `connections`; measures the CPU time of `pid`."""
    measured = Measured()
    before = cpu_of(pid) if pid else 0.0
    began = time.perf_counter()
    until = began + seconds
    await _run_loaders(
        port, connections, lambda: Loader(request, lambda: time.perf_counter() < until, measured, ending)
    )
    measured.seconds = time.perf_counter() - began
    measured.cpu = cpu_of(pid) - before if pid else 0.0
    return measured


async def send(port: int, request: bytes, ending: bytes, connections: int, number: int) -> int:
    """Send `number` requests; return the number of wrong answers."""
    measured = Measured()
    left = number - connections

    def more() -> bool:
        nonlocal left
        left -= 1
        measured.took.clear()  # durations are not needed; keeping them would use memory
        measured.first.clear()
        return left >= 0

    await _run_loaders(port, connections, lambda: Loader(request, more, measured, ending))
    return measured.wrong


async def _run_loaders(port: int, connections: int, make: Callable[[], Loader]) -> None:
    loop = asyncio.get_running_loop()
    loaders = [(await loop.create_connection(make, "127.0.0.1", port))[1] for _ in range(connections)]
    await asyncio.gather(*(loader.done for loader in loaders))
