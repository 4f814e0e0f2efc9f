"""Router between network namespaces: forwards IP packets between TUN devices, and delays or loses them on command.

It is a process of its own: `python -m tests.fleet_hosts.router SEED`. Commands are lines of JSON on standard input:
`{"attach": ADDRESS, "pid": PID}` moves a new device into the network namespace of a process, `{"address": ADDRESS, "delay":
SECONDS, "loss": RATE, "inbound": BOOL, "outbound": BOOL}` sets the state of a host's cable. Each command is answered by a line. The router ends
with its standard input, and its devices with it.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import selectors
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

TUNSETIFF: Final = 0x400454CA
IFF_TUN: Final = 0x0001
IFF_NO_PI: Final = 0x1000
MAX_PACKET: Final = 65_535
PREFIX_BITS: Final = 24


@dataclass(slots=True, kw_only=True)
class Cable:
    """The cable of a host: seconds that a packet takes, the rate of lost packets, and which directions work."""

    device: int
    delay: float = 0.0
    loss: float = 0.0
    inbound: bool = True
    outbound: bool = True


class Router:
    """Forwards packets by their destination address."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._cables: dict[bytes, Cable] = {}
        self._waiting: list[tuple[float, int, bytes, Cable]] = []
        self._numbers = count()
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Forward until standard input ends."""
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        commands = b""
        while True:
            for key, _ in self._selector.select(self._seconds_to_next()):
                if key.data is None:
                    read = os.read(key.fd, MAX_PACKET)
                    if not read:
                        return
                    *lines, commands = (commands + read).split(b"\n")
                    for line in lines:
                        self._obey(json.loads(line))
                else:
                    self._read(key.data)
            self._deliver()

    def _obey(self, command: dict[str, Any]) -> None:
        """Obey a command. It holds for packets that are sent after it, and not for earlier ones."""
        for cable in self._cables.values():
            self._read(cable)
        if "attach" in command:
            self._attach(command["attach"], command["pid"])
        else:
            cable = self._cables[_packed(command.pop("address"))]
            for name, value in command.items():
                setattr(cable, name, value)
        sys.stdout.write("done\n")
        sys.stdout.flush()

    def _attach(self, address: str, pid: int) -> None:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        name = f"rg{os.getpid()}x{address.rpartition('.')[2]}"[:15]
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        _ip("link", "set", name, "netns", str(pid))
        inside = ("nsenter", "--target", str(pid), "--net", "/usr/sbin/ip")
        for words in (
            ("link", "set", name, "name", "eth0"),
            ("address", "add", f"{address}/{PREFIX_BITS}", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            subprocess.run([*inside, *words], check=True, stdin=subprocess.DEVNULL)
        cable = self._cables[_packed(address)] = Cable(device=device)
        self._selector.register(device, selectors.EVENT_READ, cable)

    def _read(self, source: Cable) -> None:
        with suppress(BlockingIOError, OSError):  # the device may be down
            while packet := os.read(source.device, MAX_PACKET):
                target = self._cables.get(packet[16:20])
                if target is None or packet[0] >> 4 != 4:
                    continue
                loss = 1 - (1 - source.loss) * (1 - target.loss)
                if source.outbound and target.inbound and self._chance.random() >= loss:
                    due = time.monotonic() + source.delay + target.delay
                    heapq.heappush(self._waiting, (due, next(self._numbers), packet, target))

    def _seconds_to_next(self) -> float | None:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            _, _, packet, target = heapq.heappop(self._waiting)
            with suppress(OSError):  # the device is down, or its queue is full: the packet is lost
                os.write(target.device, packet)


def _packed(address: str) -> bytes:
    return bytes(int(part) for part in address.split("."))


def _ip(*words: str) -> None:
    subprocess.run(["/usr/sbin/ip", *words], check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    Router(int(sys.argv[1])).run()
