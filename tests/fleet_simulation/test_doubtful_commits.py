"""Writes of which the outcome is unknown, and that others follow at once: none is taken for done that was not."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from rung.core.domain.errors import LeaseLost, StoreUnavailable
from rung.store.durable_runs import DurableRunStore
from rung.store.fleet.takeovers import claim_takeover, count_takeover, release_takeover
from tests.fleet_simulation.database import SimulatedDatabase, SimulatedJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal


class Times:
    """A database, its time, and journals of processes that lose commits."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.database = SimulatedDatabase()
        self.database.wipe(lambda: self.now, 10.0)

    def journal(self, fate: str = "certain", others_act: Callable[[], object] = lambda: None) -> Any:
        return SimulatedJournal(self.database, lambda: fate, others_act)

    def runs(
        self, owner: str, fate: str = "certain", others_act: Callable[[], object] = lambda: None
    ) -> DurableRunStore:
        journal = cast("Journal", self.journal(fate, others_act))
        return DurableRunStore(journal, lease=10.0, now=lambda: self.now, owner=lambda: owner)


@pytest.fixture
def times() -> Times:
    return Times()


def test_a_lost_claim_is_no_claim(times: Times) -> None:
    """A process claims its abandoned run again, and the commit is lost: nobody else gets the same epoch beside it."""
    times.runs('["a"]').claim("r", "job")
    times.now += 11.0
    epochs = []
    with suppress(StoreUnavailable):
        epochs.append(times.runs('["a"]', "lost").claim("r", "job").epoch)
    epochs.append(times.runs('["b"]').claim("r", "job").epoch)
    assert epochs == [2]


def test_a_cancelled_run_was_not_finished(times: Times) -> None:
    """The commit of a run's end is lost, and somebody cancels the run: its owner is not told that it ended."""
    others = times.runs('["b"]')
    lease = times.runs('["a"]', "done").claim("r", "job")
    lease.runs = times.runs('["a"]', "lost", lambda: others.cancel("r", "no longer needed"))
    with pytest.raises((StoreUnavailable, LeaseLost)):
        lease.finish({"status": "succeeded"})
    assert others.result_of("r")["status"] == "cancelled"


def test_an_old_claim_of_a_watchdog_is_not_a_new_one(times: Times) -> None:
    """A watchdog renews its expired claim, and the commit is lost: another watchdog has the claim then."""
    assert claim_takeover(times.journal(), "x", "one", 10.0)
    times.now += 11.0
    with pytest.raises(StoreUnavailable):
        claim_takeover(times.journal("lost"), "x", "one", 10.0)
    assert claim_takeover(times.journal(), "x", "two", 10.0)
    assert not claim_takeover(times.journal(), "x", "one", 10.0)


def test_a_watchdog_releases_only_its_own_claim(times: Times) -> None:
    """A watchdog that slept over its claim does not remove the claim of the next one."""
    assert claim_takeover(times.journal(), "x", "one", 10.0)
    times.now += 11.0
    assert claim_takeover(times.journal(), "x", "two", 10.0)
    release_takeover(times.journal(), "x", "one")
    assert not claim_takeover(times.journal(), "x", "three", 10.0)
    release_takeover(times.journal(), "x", "two")
    assert claim_takeover(times.journal(), "x", "three", 10.0)


def test_a_death_counts_once(times: Times) -> None:
    """A takeover that is told again because there was no answer does not bring the run nearer to its end."""

    def count(steps: int, death: str, fate: str = "certain", watchdog: str = "one") -> int | None:
        journal = times.journal(fate)
        return count_takeover(journal, "r", steps, death=death, executor_id="x", watchdog=watchdog)

    assert claim_takeover(times.journal(), "x", "one", 10.0)
    with pytest.raises(StoreUnavailable):
        count(2, "x 1.0", "done")
    assert count(2, "x 1.0") == 1
    assert count(2, "x 7.0") == 2  # it had come back, and was silent again
    assert count(2, "y 3.0") == 3
    assert count(3, "y 3.0") == 1  # a new step
    assert count(3, "z 4.0", watchdog="two") is None
    times.now += 11.0
    assert count(3, "z 4.0") is None  # it slept over its claim
