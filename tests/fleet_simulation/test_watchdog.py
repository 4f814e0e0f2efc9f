"""Single rules of the watchdog, in virtual time without faults."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from rung.store.fleet.executors import executors
from rung.store.fleet.takeovers import claim_takeover
from rung.wiring.fleet_watchdog import FleetWatchdog
from tests.fleet_simulation.database import SimulatedDatabase, SimulatedJournal
from tests.fleet_simulation.network import Network
from tests.fleet_simulation.virtual_time import EPOCH, Clock, Process, VirtualLoop
from tests.fleet_simulation.workflows import WorkflowClient, Workflows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal

LEASE = 9.0


class Rig:
    """A database, a workflow engine, and one watchdog."""

    def __init__(self) -> None:
        self.loop, database = VirtualLoop(), SimulatedDatabase()
        database.wipe(self.now, LEASE)
        self.loop.send = Network(self.loop, Random(0), lambda *_: None).send
        self.journal = cast("Journal", SimulatedJournal(database, lambda: "certain", lambda: None))
        self.workflows = Workflows(self.now, pytest.fail)
        self.before: Any = lambda _: None  # what happens before the watchdog asks or changes something
        self.engine = WorkflowClient(self.workflows, self._on_call, lambda *_: None)
        self.watchdog = FleetWatchdog(self.journal, self.engine, lease=LEASE, monotonic=self.loop.time)
        self.process = Process(self.loop, "w", 0, Clock(self.loop, 0.0, 0.0))

    def _on_call(self, what: str) -> None:
        self.before(what)

    def now(self) -> float:
        return EPOCH + self.loop.time()

    def watch(self, seconds: float) -> None:
        """Let the watchdog watch for so long."""
        stop = asyncio.Event()
        self.process.spawn(self.watchdog.watch(stop))
        self.loop.run_until_complete(asyncio.sleep(seconds))
        stop.set()
        self.loop.run_until_complete(asyncio.sleep(LEASE))


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.process.discard()
    made.loop.close()


def test_a_run_of_an_executor_without_a_row_is_handed_over(rig: Rig) -> None:
    """An executor that never told of itself gets a row, counts as dead a lease later, and is forgotten then."""
    rig.workflows.submit("r")
    rig.workflows.dequeue("x")
    rig.watch(LEASE / 3)
    assert [each.id for each in executors(rig.journal)] == ["x"]
    assert rig.workflows.status("r") == "PENDING"
    rig.watch(2 * LEASE)
    assert rig.workflows.status("r") == "ENQUEUED"
    assert executors(rig.journal) == []


def test_a_watchdog_that_lost_its_claim_hands_over_nothing(rig: Rig) -> None:
    """A watchdog hangs after its claim, and another one claims: it neither counts, hands over nor forgets."""

    def hang(what: str) -> None:
        if what == "count":
            rig.process.stop(2 * LEASE)
            rig.loop.call_later(LEASE + 1, claim_takeover, rig.journal, "x", "another", 100 * LEASE)

    rig.workflows.submit("r")
    rig.workflows.dequeue("x")
    rig.before = hang
    rig.watch(5 * LEASE)
    assert rig.workflows.status("r") == "PENDING"
    assert [each.id for each in executors(rig.journal)] == ["x"]
    assert rig.journal.read("SELECT body FROM message WHERE topic = 'takeover/r'") == []


def test_a_cancelled_run_is_not_revived(rig: Rig) -> None:
    """A run that is cancelled while a watchdog is about to hand it over stays cancelled."""
    rig.workflows.submit("r")
    rig.workflows.dequeue("x")
    rig.before = lambda what: rig.workflows.cancel("r") if what == "count" else None
    rig.watch(3 * LEASE)
    assert rig.workflows.status("r") == "CANCELLED"
