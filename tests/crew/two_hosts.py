"""Two hosts on one machine: each has its own network, host name and processes; a PostgreSQL server is between them."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NETWORK: Final = "10.213"  # of the namespaces only
# A cut connection is noticed within seconds.
URL_OPTIONS: Final = (
    "connect_timeout=3&keepalives_idle=1&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=3000"
)


class NotAllowed(Exception):
    """This machine does not let the tests make namespaces."""


class Host:
    """A host: commands that begin with `prefix` run on it."""

    def __init__(self, number: int) -> None:
        self.name = f"host-{number}"
        self.namespace = f"rung-{os.getpid()}-{number}"
        self.outside = f"rg{os.getpid() % 100_000}o{number}"
        self.inside = f"rg{os.getpid() % 100_000}i{number}"
        self.address, self.gateway = f"{NETWORK}.{number}.2", f"{NETWORK}.{number}.1"
        self.url = f"postgresql://rung@{self.gateway}/postgres?{URL_OPTIONS}"

    @property
    def prefix(self) -> Sequence[str]:
        """Return the command that runs another one on this host. All of its processes end with the first one."""
        shell = f'hostname {self.name} && exec "$@"'
        enter = ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "--pid", "--fork", "--kill-child"]
        return [*enter, "--mount-proc", "sh", "-c", shell, "sh"]

    def set_up(self) -> None:
        """Make the network between this host and the server."""
        _ip("netns", "add", self.namespace)
        _ip("link", "add", self.outside, "type", "veth", "peer", "name", self.inside)
        _ip("link", "set", self.inside, "netns", self.namespace)
        _ip("address", "add", f"{self.gateway}/30", "dev", self.outside)
        _ip("link", "set", self.outside, "up")
        _ip("-n", self.namespace, "address", "add", f"{self.address}/30", "dev", self.inside)
        _ip("-n", self.namespace, "link", "set", self.inside, "up")
        _ip("-n", self.namespace, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Cut this host off from the server."""
        _ip("link", "set", self.outside, "down")

    def join(self) -> None:
        """End the cut."""
        _ip("link", "set", self.outside, "up")

    def tear_down(self) -> None:
        """Remove the network."""
        for words in (("link", "delete", self.outside), ("netns", "delete", self.namespace)):
            with suppress(NotAllowed):
                _ip(*words)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host, str]]:
    """Yield two hosts, and the URL of their server for the test itself; raise NotAllowed without the right to make them."""
    hosts = Host(1), Host(2)
    try:
        for host in hosts:
            host.set_up()
        with postgres.server(listen_addresses=", ".join(host.gateway for host in hosts)) as server:
            postgres.allow_network(server, f"{NETWORK}.0.0/16")
            yield *hosts, server
    finally:
        for host in hosts:
            host.tear_down()


def _ip(*words: str) -> None:
    done = subprocess.run(["/usr/sbin/ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAllowed(f"ip {' '.join(words)}: {done.stderr.strip()}")
