"""Faults of hosts, in an order that a seed decides. The faults of one host follow each other; hosts fail at the same time."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.fleet_hosts import audit
from tests.fleet_hosts.world import LEASE_SECONDS

if TYPE_CHECKING:
    from tests.fleet_hosts.hosts import Host
    from tests.fleet_hosts.world import World

HOSTS: Final = 3
MAX_PAUSE_SECONDS: Final = 2.5


class FaultKind(StrEnum):
    """What happens to a host."""

    LINK_DOWN = "link down"
    PARTITION = "partition"  # packets vanish in both directions
    DEAF = "deaf"  # packets to the host vanish
    MUTE = "mute"  # packets from the host vanish
    DELAY = "delay"
    LOSS = "loss"
    DEATH = "death"  # its cable is cut, and all processes are killed; it boots after a takeover of its runs
    FREEZE = "freeze"  # all processes are stopped until its runs were taken over


CUTS: Final = (FaultKind.LINK_DOWN, FaultKind.PARTITION, FaultKind.DEAF, FaultKind.MUTE)


class HostFault(NamedTuple):
    """A fault. `pause`: seconds before it; `seconds`: for which it lasts at least; `amount`: of delay or loss."""

    kind: FaultKind
    pause: float
    seconds: float
    amount: float


class HostChange(NamedTuple):
    """A fault of a host, from when to when."""

    host: str
    kind: FaultKind
    begin: float
    end: float


def plan(seed: int) -> list[list[HostFault]]:
    """Return the faults of each host: a death, a freeze, delay, loss and two cuts, dealt out to the hosts."""
    chance = random.Random(seed)
    kinds = [FaultKind.DEATH, FaultKind.FREEZE, FaultKind.DELAY, FaultKind.LOSS, *chance.sample(CUTS, 2)]
    chance.shuffle(kinds)
    faults = [_fault(kind, chance) for kind in kinds]
    return [faults[number::HOSTS] for number in range(HOSTS)]


def _fault(kind: FaultKind, chance: random.Random) -> HostFault:
    amounts = {FaultKind.DELAY: chance.uniform(0.01, 0.1), FaultKind.LOSS: chance.uniform(0.05, 0.3)}
    pause, seconds = chance.uniform(0.5, MAX_PAUSE_SECONDS), chance.uniform(0.3, 1.6) * LEASE_SECONDS
    return HostFault(kind, pause, seconds, amounts.get(kind, 0.0))


class FaultInjector:
    """Injects the faults of a plan into the hosts of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.changes: list[HostChange] = []
        self._takeover = threading.Lock()  # of one host at a time: another one must be able to take over

    def run(self, faults: list[list[HostFault]]) -> None:
        """Inject all faults; return when all have ended."""
        with ThreadPoolExecutor(HOSTS) as threads:
            done = [threads.submit(self._run, host, each) for host, each in zip(self._world.hosts, faults, strict=True)]
            for each in done:
                each.result()

    def _run(self, host: Host, faults: list[HostFault]) -> None:
        for fault in faults:
            time.sleep(fault.pause)  # the schedule of the seed
            begin = self._inject(host, fault)
            self.changes.append(HostChange(host.name, fault.kind, begin, time.time()))

    def _inject(self, host: Host, fault: HostFault) -> float:
        if fault.kind in {FaultKind.DEATH, FaultKind.FREEZE}:
            with self._takeover:
                return self._until_taken_over(host, fault)
        begin = time.time()
        if fault.kind is FaultKind.LINK_DOWN:
            host.namespace.set_link("down")
            time.sleep(fault.seconds)
            host.namespace.set_link("up")
            return begin
        inbound = fault.kind not in {FaultKind.PARTITION, FaultKind.DEAF}
        outbound = fault.kind not in {FaultKind.PARTITION, FaultKind.MUTE}
        delay = fault.amount if fault.kind is FaultKind.DELAY else 0.0
        loss = fault.amount if fault.kind is FaultKind.LOSS else 0.0
        net = self._world.net
        net.shape(host.namespace, inbound=inbound, outbound=outbound, delay=delay, loss=loss)
        time.sleep(fault.seconds)
        net.shape(host.namespace, inbound=True, outbound=True, delay=0.0, loss=0.0)
        return begin

    def _until_taken_over(self, host: Host, fault: HostFault) -> float:
        """Kill or stop a host that has runs in hand, and end the fault when others have taken them over."""
        world = self._world
        world.until(lambda: bool(self._owned(host)), f"{host.name} has a run in hand")
        begin = time.time()
        if fault.kind is FaultKind.FREEZE:
            host.freeze()
        else:
            world.net.shape(host.namespace, inbound=False, outbound=False)
            host.die()
        owned = self._owned(host)
        world.until(lambda: not self._owned(host) & owned, f"{fault.kind} of {host.name}: its runs are taken over")
        if fault.kind is FaultKind.FREEZE:
            host.thaw()
            return begin
        world.until(lambda: host.name not in dict(world.live_executors()), f"{host.name} is seen to be dead")
        world.net.shape(host.namespace, inbound=True, outbound=True)
        world.boot(host)
        return begin

    def _owned(self, host: Host) -> set[tuple[str, str]]:
        return audit.owned_runs(self._world.url, self._world.engine, host.name)
