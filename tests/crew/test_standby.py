"""A standby for the conductor, in simulated time, on a real table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from rung.core.domain.errors import StoreUnavailable
from rung.crew.settings import ConductorSettings
from rung.crew.standby import lease_seconds, stand_by
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.crew.conductor_lease import ConductorLease


class World:
    """A clock that the standby's pauses move, a holder of the lease, and a table that can be away for a while."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000_000.0
        self.away: tuple[float, float] = (0.0, 0.0)
        self.said: list[str] = []
        self.holder = CrewTable.open(str(folder / "crew.db"), create=True, clock=lambda: self.now)
        self.table = self.holder.clone()
        read = self.table.conductor_lease

        def lease() -> ConductorLease:
            if self.away[0] <= self.now < self.away[1]:
                raise StoreUnavailable("no server")
            return read()

        self.table.conductor_lease = lease  # type: ignore[method-assign]  # the server that is away

    def stand_by(self) -> ConductorLease | None:
        return stand_by(self.table, 60.0, self.said.append, now=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.holder.close()
    made.table.close()


def test_it_takes_over_when_the_lease_expires(world: World) -> None:
    """A live holder that sends no heartbeats is replaced at the end of its lease, not before."""
    term = world.holder.acquire_lease(60.0).term
    world.holder.fence(None)
    start = world.now
    lease = world.stand_by()
    assert lease is not None
    assert lease.term == term + 1
    assert 60.0 <= world.now - start < 62.0


def test_time_without_a_table_does_not_count(world: World) -> None:
    """A lease that expired while the table was away is not taken for so long that its holder can renew it."""
    world.holder.acquire_lease(60.0)
    world.away = (world.now + 10.0, world.now + 310.0)
    assert world.stand_by() is not None
    assert world.now >= world.away[1] + 60.0
    assert len(world.said) == 1


def test_it_ends_with_the_crew(world: World) -> None:
    """A crew that ends leaves nothing to take over."""
    world.holder.acquire_lease(60.0)
    world.holder.release_lease(TaskState.COMPLETE)
    assert world.stand_by() is None


def test_a_lease_outlives_several_polls() -> None:
    """A short limit of the conductor's silence does not end the lease between two heartbeats."""
    assert lease_seconds(ConductorSettings(poll=5.0, conductor_stale=3.0)) == 15.0
    assert lease_seconds(ConductorSettings(poll=5.0, conductor_stale=240.0)) == 240.0
