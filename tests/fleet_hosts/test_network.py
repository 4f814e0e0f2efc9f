"""The network of the tests really delays, loses and cuts, and leaves nothing behind when a test is killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fleet_hosts.network import NotAllowed, network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fleet_hosts.network import Network, NetworkNamespace

PORT = 7
PINGS = 200


@pytest.fixture
def net() -> Iterator[Network]:
    try:
        with network() as made:
            yield made
    except NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")


@contextmanager
def udp(namespace: NetworkNamespace) -> Iterator[socket.socket]:
    """Yield a socket of a namespace."""
    with namespace.entered():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with made:
        made.settimeout(60)
        yield made


class Echo:
    """A client, and a server that sends back what it receives, until it receives `end`."""

    def __init__(self, server: socket.socket, client: socket.socket, address: str) -> None:
        self.client, self._server = client, server
        server.bind((address, PORT))
        client.connect((address, PORT))
        self.echoed = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        data = b""
        while data != b"end":
            data, address = self._server.recvfrom(100)
            self._server.sendto(data, address)
            with self._changed:
                self.echoed += 1
                self._changed.notify_all()

    def send(self, number: int) -> None:
        """Send so many packets."""
        for _ in range(number):
            self.client.send(b"one of many")

    def until_echoed(self, number: int) -> None:
        """Wait until the server has echoed so many packets."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.echoed >= number, 60)

    def received_before(self, last: bytes) -> int:
        """Send a last packet; return how many come back before it."""
        self.client.send(last)
        count = 0
        while self.client.recv(100) != last:
            count += 1
        return count


def test_packets_are_lost_and_cut(net: Network) -> None:
    """With 30 % loss some packets arrive and some do not; through a cut cable none, and after it all."""
    server, client = net.add(1), net.add(2)
    with udp(server) as one, udp(client) as other:
        echo = Echo(one, other, server.address)
        echo.send(PINGS)
        assert echo.received_before(b"all") == PINGS
        net.shape(client, loss=0.3)
        echo.send(PINGS)
        net.shape(client, loss=0.0)
        assert PINGS * 0.5 < echo.received_before(b"most") < PINGS * 0.9
        net.shape(client, outbound=False)
        echo.send(PINGS)
        net.shape(client, outbound=True)
        assert echo.received_before(b"none") == 0
        net.shape(client, inbound=False)
        before = echo.echoed
        echo.send(PINGS)
        echo.until_echoed(before + PINGS)
        net.shape(client, inbound=True)
        assert echo.received_before(b"none again") == 0
        client.set_link("down")
        with pytest.raises(OSError, match="unreachable"):
            echo.send(1)
        client.set_link("up")
        assert echo.received_before(b"end") == 0


def test_packets_are_delayed(net: Network) -> None:
    """A packet of a slow cable arrives later than one that a fast cable sent after it."""
    server, slow, fast = net.add(1), net.add(2), net.add(3)
    net.shape(slow, delay=1.0)
    with udp(server) as receiver, udp(slow) as first, udp(fast) as second:
        receiver.bind((server.address, PORT))
        first.sendto(b"first", (server.address, PORT))
        second.sendto(b"second", (server.address, PORT))
        assert [receiver.recv(100) for _ in range(2)] == [b"second", b"first"]


_KILLED = """
import sys, time
from tests.fleet_hosts.hosts import Host
from tests.fleet_hosts.network import network
with network() as net:
    host = Host("host-1", net.add(1), sys.argv[1])
    host.boot()
    host.start("sleeper", "sleep", "600")
    print(host.init, net._router.pid, flush=True)
    time.sleep(600)
"""


def test_a_killed_test_leaves_nothing_behind(net: Network, tmp_path: Path) -> None:
    """All processes of a test that was killed end by themselves, and with them their namespaces and devices."""
    del net  # skipped where it is not allowed
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    test = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert test.stdout is not None
    pids = [int(word) for word in test.stdout.readline().split()]
    ends = [os.pidfd_open(pid) for pid in pids]
    test.send_signal(signal.SIGKILL)
    test.wait()
    test.stdout.close()
    for end in ends:
        assert select.select([end], [], [], 60)[0], "a process outlived its test"
        os.close(end)
