"""Network of a test: namespaces that only its own router connects.

Nothing has a name outside of the test's processes: namespaces and devices end with the processes that hold them, and those
end with the test, even if it is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
SUBNET: Final = "10.214.0"
CLONE_NEWNET: Final = 0x40000000
HOLD: Final = "echo ready; exec cat >/dev/null"  # until the test's end of the pipe is closed, or the test is killed
_LIBC = ctypes.CDLL(None, use_errno=True)


class NotAllowed(Exception):
    """This machine does not let the tests make namespaces."""


class NetworkNamespace:
    """A network namespace with one address."""

    def __init__(self, number: int, holder: subprocess.Popen[bytes]) -> None:
        self.address = f"{SUBNET}.{number}"
        self.pid = holder.pid
        self._file = os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread be in the namespace: sockets, processes and threads that it makes belong there."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _set_namespace(self._file)
            yield
        finally:
            _set_namespace(home)
            os.close(home)

    def set_link(self, state: str) -> None:
        """Take the network device `up` or `down`."""
        command = ["nsenter", "--target", str(self.pid), "--net", "/usr/sbin/ip", "link", "set", "eth0", state]
        subprocess.run(command, check=True, capture_output=True)

    def close(self) -> None:
        os.close(self._file)


class Network:
    """Namespaces, and the router between them."""

    def __init__(self, seed: int) -> None:
        self._exits = ExitStack()
        self._turn = threading.Lock()
        command = [sys.executable, "-m", "tests.fleet_hosts.router", str(seed)]
        self._router = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)

    def add(self, number: int) -> NetworkNamespace:
        """Make a namespace with an address that ends with this number."""
        holder = held("unshare", "--net", "sh", "-c", HOLD)
        self._exits.callback(let_go, holder)
        namespace = NetworkNamespace(number, holder)
        self._exits.callback(namespace.close)
        self._tell(attach=namespace.address, pid=holder.pid)
        return namespace

    def shape(self, namespace: NetworkNamespace, **cable: Any) -> None:
        """Set delay, loss or the working directions of a namespace's cable."""
        self._tell(address=namespace.address, **cable)

    def _tell(self, **command: Any) -> None:
        assert self._router.stdin is not None
        assert self._router.stdout is not None
        with self._turn:
            self._router.stdin.write(json.dumps(command).encode() + b"\n")
            self._router.stdin.flush()
            if self._router.stdout.readline() != b"done\n":
                raise NotAllowed("the router has ended")

    def close(self) -> None:
        """End the router, and let go of the namespaces."""
        let_go(self._router)
        self._exits.close()


def held(*command: str) -> subprocess.Popen[bytes]:
    """Start a process that lives as long as this end of its standard input; wait until it is ready."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.readline() != b"ready\n":
        raise NotAllowed(process.stderr.read().decode(errors="replace").strip())
    return process


def let_go(process: subprocess.Popen[bytes]) -> None:
    """Close the standard input of a process that ends with it, and wait for its end."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


@contextmanager
def network(seed: int = 0) -> Iterator[Network]:
    """Yield a network; raise NotAllowed without the right to make one."""
    if os.geteuid() != 0 or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise NotAllowed("only root may make network namespaces and TUN devices")
    made = Network(seed)
    try:
        yield made
    finally:
        made.close()


def _set_namespace(file: int) -> None:
    if _LIBC.setns(file, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
