"""Circuits of a fleet: one process opens and closes them for all, and one at a time probes."""

from __future__ import annotations

from rung.core.policy.breaker import BreakerSettings, CallVerdict, CircuitState, Permit
from rung.core.policy.shared_circuits import (
    CLAIM_SECONDS,
    CLOSED_SECONDS,
    MAX_CIRCUITS,
    OPEN_SECONDS,
    CircuitReport,
    SharedCircuit,
    merge_circuits,
)
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.loop.shared_breakers import HOLD_SECONDS, SharedBreakers

SETTINGS = BreakerSettings(minimum=2, rate=0.5, pause=3.0, probe=60.0)
SKEW = 5_000.0  # of the clocks of processes


class Fleet:
    """Processes with clocks of their own, and the circuits that they share."""

    def __init__(self, *names: str) -> None:
        self.now = 1_000.0
        self.circuits: dict[str, SharedCircuit] = {}
        self.registries = {name: BreakerRegistry(SETTINGS) for name in names}
        self.closed: list[tuple[str, str]] = []
        self.shared = {
            name: SharedBreakers(registry, name, on_close=lambda key, name=name: self.closed.append((name, key)))  # type: ignore[misc]  # the loop's name
            for name, registry in self.registries.items()
        }

    def clock(self, name: str) -> float:
        return self.now + SKEW * list(self.registries).index(name)

    def poll(self, *names: str) -> None:
        for name in names or tuple(self.registries):
            report = self.shared[name].collect(self.clock(name))
            self.circuits = merge_circuits(self.circuits, name, report, self.now)
            self.shared[name].apply(self.circuits, self.now, self.clock(name))

    def fail(self, name: str) -> None:
        breaker = self.registries[name].get("k")
        for _ in range(2):
            breaker.record(None, self.clock(name), self.clock(name), CallVerdict.BAD)

    def call(self, name: str) -> Permit | None:
        answer = self.registries[name].get("k").admit(self.clock(name))
        return answer if isinstance(answer, Permit) else None

    def end(self, name: str, permit: Permit, verdict: CallVerdict) -> None:
        self.registries[name].get("k").record(permit, self.clock(name), self.clock(name), verdict)

    def states(self) -> list[str]:
        return [str(registry.get("k").circuit) for registry in self.registries.values()]

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.poll()


def probers(fleet: Fleet) -> list[tuple[str, Permit]]:
    """Let every process try a call; return those that were let through."""
    answers = [(name, fleet.call(name)) for name in fleet.registries]
    return [(name, permit) for name, permit in answers if permit is not None]


def test_one_opens_for_all_and_one_probes() -> None:
    """An opened circuit is adopted at the next poll; one probe is made for the fleet, and its success closes it for all."""
    fleet = Fleet("a", "b", "c")
    fleet.fail("a")
    assert fleet.states() == ["open", "closed", "closed"]
    fleet.poll()
    assert fleet.states() == ["open"] * 3
    assert probers(fleet) == []
    found: list[tuple[str, Permit]] = []
    for _ in range(8):
        fleet.wait(1)
        found += probers(fleet)
    ((name, permit),) = found  # however often they try while it is under way
    fleet.end(name, permit, CallVerdict.GOOD)
    fleet.poll(name)
    fleet.poll()
    assert fleet.states() == ["closed"] * 3
    assert {each for each, _ in fleet.closed} == set(fleet.registries) - {name}


def test_a_failed_probe_is_for_all() -> None:
    """After a failed probe all wait for the next one, which another process makes."""
    fleet = Fleet("a", "b")
    fleet.fail("a")
    fleet.poll()
    names = []
    for _ in range(30):
        fleet.wait(1)
        for name, permit in probers(fleet):
            names.append(name)
            fleet.end(name, permit, CallVerdict.BAD)
    assert 4 <= len(names) <= 10  # one per pause of 3 s, not one per process
    assert set(names) == {"a", "b"}


def test_a_prober_without_calls_is_replaced() -> None:
    """A process that claims a probe and dies gives it up after a time."""
    fleet = Fleet("a", "b")
    fleet.fail("a")
    fleet.poll()
    fleet.call("b")
    for _ in range(4):
        fleet.now += 1.0
        fleet.call("b")
        fleet.poll()
    assert fleet.circuits["k"].prober == "b"
    permit = None
    for _ in range(int(CLAIM_SECONDS) + 3):
        fleet.now += 1.0
        permit = permit or fleet.call("a")
        fleet.poll("a")
    assert permit is not None


def test_without_the_fleet_each_probes_alone() -> None:
    """A process that hears nothing for a while probes by itself."""
    fleet = Fleet("a", "b")
    fleet.fail("a")
    fleet.poll()
    fleet.now += HOLD_SECONDS - 0.5
    assert fleet.call("b") is None
    assert not fleet.shared["b"].may_probe("k", fleet.clock("b"))
    fleet.now += 1.0
    assert fleet.shared["b"].may_probe("k", fleet.clock("b"))
    assert fleet.call("b") is not None


def test_a_contradicted_opening_is_not_shared_again() -> None:
    """A process whose opened circuit was closed by another one keeps its next opening to itself for a while."""
    fleet = Fleet("a", "b")
    fleet.fail("a")
    fleet.poll()
    found: list[tuple[str, Permit]] = []
    while not found:
        fleet.call("b")
        fleet.wait(1)
        found = [("b", permit) for permit in [fleet.call("b")] if permit is not None]
    fleet.end(*found[0], CallVerdict.GOOD)
    fleet.poll("b")
    fleet.poll()
    assert fleet.states() == ["closed", "closed"]
    fleet.fail("a")
    fleet.wait(2)
    assert fleet.states() == ["open", "closed"]
    fleet.wait(70)
    fleet.fail("a")
    fleet.registries["a"].get("k").close(fleet.clock("a"))
    fleet.fail("a")
    fleet.poll()
    assert fleet.states() == ["open", "open"]


def test_what_nobody_needs_is_forgotten() -> None:
    """Closed circuits and open ones without calls are forgotten, and the table has a bound."""
    nothing = CircuitReport(opened={})
    assert nothing.is_empty
    opened = merge_circuits({}, "a", CircuitReport(opened={"k": 3.0}), 0.0)
    assert merge_circuits(opened, "b", nothing, OPEN_SECONDS) == opened
    assert merge_circuits(opened, "b", nothing, OPEN_SECONDS + 4.0) == {}
    closed = merge_circuits(opened, "b", CircuitReport(opened={}, closed=["k", "unknown"]), 5.0)
    assert closed == {"k": SharedCircuit(is_open=False, at=5.0, by="b")}
    assert merge_circuits(closed, "a", nothing, CLOSED_SECONDS + 6.0) == {}
    many = merge_circuits({}, "a", CircuitReport(opened={str(n): 3.0 for n in range(MAX_CIRCUITS + 5)}), 0.0)
    assert len(many) == MAX_CIRCUITS


def test_a_forgotten_circuit_is_probed_at_once() -> None:
    """A circuit that the fleet has forgotten is each process's own again."""
    fleet = Fleet("a", "b")
    fleet.fail("a")
    fleet.poll()
    fleet.circuits = {}
    fleet.shared["b"].apply({}, fleet.now, fleet.clock("b"))
    assert fleet.call("b") is not None


def test_a_disabled_breaker_adopts_nothing() -> None:
    """A breaker that never opens is not opened by others."""
    registry = BreakerRegistry(BreakerSettings(enabled=False))
    shared = SharedBreakers(registry, "a")
    shared.apply({"k": SharedCircuit(is_open=True, at=0.0, by="b", probe_at=9.0)}, 0.0, 0.0)
    assert registry.get("k").circuit is CircuitState.CLOSED
