"""Three hosts on one PostgreSQL: in each two workers, a gateway and a client; a fake provider is reachable from all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.gateway.keys import hash_key
from rung.testing.provider import Lab
from tests.engines.fleets import new_database, prepare
from tests.fleet_hosts import audit
from tests.fleet_hosts.client import MAX_TOKENS, MODEL, ClientSettings
from tests.fleet_hosts.hosts import Host
from tests.fleet_hosts.network import ROOT, SUBNET, network
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fleet_hosts.network import Network

LONG: Final = 240.0  # nothing here takes so long, however busy the machine is
LEASE_SECONDS: Final = 5.0
WORKERS: Final = ("worker-a", "worker-b")
PORT: Final = 8484
CALL_DOLLARS: Final = 1.0  # what each call costs, and is estimated to cost
BUDGETS: Final = {"small": 30.0, "large": 10_000.0}  # of the keys; the small one is spent in every run
PAUSE_SECONDS: Final = 0.6  # between two runs of a client, on average
# A cut connection is noticed within seconds.
URL_OPTIONS: Final = (
    "connect_timeout=3&keepalives_idle=1&keepalives_interval=1&keepalives_count=3&tcp_user_timeout=4000"
)
_EXECUTOR: Final = re.compile(r"worker ready: .* executor (\w+)")
SETTINGS: Final = """
[gateway]
anthropic = "{provider}"
[gateway.limits]
shutdown_delay = 0
[gateway.prices.{model}]
input = 0
output = {price}
"""


class World:
    """The hosts, the database and the provider."""

    def __init__(self, engine: str, folder: Path, net: Network, server: str, lab: Lab) -> None:
        self.engine, self.folder, self.net, self.lab = engine, str(folder), net, lab
        self.url = new_database(server)
        self.keys = {name: f"rung-{name}-{os.urandom(8).hex()}" for name in BUDGETS}
        self.hosts = [Host(f"host-{n}", net.add(10 + n), self.folder) for n in (1, 2, 3)]
        self.hosts_by_address = {host.address: host for host in self.hosts}
        database = self.url.partition("?")[0].rpartition("/")[2]
        self.remote_url = f"postgresql://rung@{SUBNET}.1/{database}?{URL_OPTIONS}"

    def set_up(self) -> None:
        """Prepare the database and start all hosts."""
        prepare("dbos" if self.engine == "dbos" else "postgres", self.url)
        audit.install(self.url, self.engine)
        text = SETTINGS.format(provider=self.lab.url, model=MODEL, price=CALL_DOLLARS / MAX_TOKENS * 1e6)
        for name, key in self.keys.items():
            text += f'[[gateway.keys]]\nhash = "{hash_key(key)}"\nname = "{name}"\ndollars = {BUDGETS[name]}\n'
        Path(self.folder, "gateway.toml").write_text(text)
        for host in self.hosts:
            self.boot(host)
        self.until(lambda: self.live_executors() == self.expected_executors(), "all processes are live")

    def boot(self, host: Host) -> None:
        """Start a host with all of its processes."""
        host.boot()
        rung = (sys.executable, "-m", "rung")
        worker = ("fleet", "worker", "--import", "tests.fleet_hosts.host_tasks", "--engine", self.engine)
        for name in WORKERS:
            lease = ("--lease", str(LEASE_SECONDS))
            environment = self._environment(f"{host.name}-{host.boots}-{name}")
            host.start(name, *rung, *worker, "--url", self.remote_url, *lease, environment=environment)
        gateway = ("gateway", "--config", f"{self.folder}/gateway.toml", "--host", host.address, "--port", str(PORT))
        host.start(
            "gateway",
            *rung,
            *gateway,
            "--journal",
            self.remote_url,
            environment=self._environment(f"{host.name}-{host.boots}-gateway"),
        )
        client = (sys.executable, "-m", "tests.fleet_hosts.client", self._client(host).text())
        host.start("client", *client, environment=self._environment())

    def _client(self, host: Host) -> ClientSettings:
        return ClientSettings(
            name=f"{host.name}-{host.boots}",
            engine=self.engine,
            url=self.remote_url,
            folder=self.folder,
            gateways=[f"{each.address}:{PORT}" for each in self.hosts],
            keys=self.keys,
            pause=PAUSE_SECONDS,
        )

    def _environment(self, name: str = "rung") -> dict[str, str]:
        """Return the environment of a process; the database sees its name."""
        mine = {"HOME": self.folder, "RUNG_FLEET_LEASE": str(LEASE_SECONDS), "PYTHONUNBUFFERED": "1", "PGAPPNAME": name}
        return {**{key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}, **mine}

    # -- what is seen ------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return what `rung fleet status` says."""
        command = [sys.executable, "-m", "rung", "fleet", "status", "--json", "--journal", self.url]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=self._environment())
        return dict(json.loads(done.stdout))

    def live_executors(self) -> list[tuple[str, str]]:
        """Return the host and the role of each executor that is said to be live."""
        live = [each for each in self.status()["executors"] if each["health"] == "live"]
        return sorted((each["host"], each["role"]) for each in live)

    def expected_executors(self) -> list[tuple[str, str]]:
        """Return the host and the role of each executor that runs."""
        running = [host.name for host in self.hosts if host.is_up]
        return sorted((name, role) for name in running for role in ("worker", "worker", "gateway"))

    def workers_of(self, host: Host, boot: int) -> list[str]:
        """Return the executor ids of the workers of a host since it booted for this time."""
        texts = [Path(self.folder, f"{host.name}-{boot}-{name}.log").read_text() for name in WORKERS]
        return [found[1] for text in texts if (found := _EXECUTOR.search(text))]

    def until(self, is_true: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + LONG
        while not is_true():
            assert time.monotonic() < end, f"timed out: {what}\n{self.said()}"
            time.sleep(0.1)

    def are_clients_done(self) -> bool:
        """Return whether the clients of all hosts have ended."""
        return all(host.has_ended("client") for host in self.hosts)

    def now(self) -> float:
        """Return the time of the database."""
        return time.time()

    def said(self) -> str:
        """Return the end of what each process printed."""
        logs = sorted(Path(self.folder).glob("host-*.log"))
        return "\n".join(f"-- {log.name}\n{log.read_text(errors='replace')[-1_500:]}" for log in logs)

    def close(self) -> None:
        """End all hosts."""
        for host in self.hosts:
            host.die()


@contextmanager
def world(engine: str, folder: Path, seed: int) -> Iterator[World]:
    """Yield three hosts; raise NotAllowed without the right to make them."""
    with ExitStack() as exits:
        net = exits.enter_context(network(seed))
        center = net.add(1)
        with center.entered():
            server = exits.enter_context(postgres.server(listen_addresses=center.address))
            lab = exits.enter_context(Lab(host=center.address, words=MAX_TOKENS))
        postgres.allow_network(server, f"{SUBNET}.0/24")
        made = World(engine, folder, net, server, lab)
        exits.callback(made.close)
        made.set_up()
        yield made
