"""Fleets in virtual time: watchdogs, leases and slices, with loss, wrong clocks, hangs and deaths.

`RUNG_FLEET_SEEDS=10000` runs as many seeds. A failing seed prints itself and its trace; `simulate(SEED)` repeats it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rung.store.run_lease import DurableRunLease
from tests.fleet_simulation.invariants import Broken
from tests.fleet_simulation.world import simulate

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection

SEEDS = int(os.environ.get("RUNG_FLEET_SEEDS", "60"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_in_a_storm_every_invariant_holds(seed: int) -> None:
    """Nothing acknowledged is lost, nothing finished runs again, every run ends, and no limit is exceeded."""
    simulate(seed)


@pytest.mark.parametrize("seed", range(10))
def test_in_fair_weather_nothing_changes_hands(seed: int) -> None:
    """Clocks that differ by a third of a lease take no run from its owner."""
    world = simulate(seed, is_fair=True)
    assert {epoch for _, epoch in world.claimed} <= {1}
    assert {row.token for row in world.workflows.table.values()} <= {1}


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_repeats_itself(seed: int) -> None:
    """The same seed gives the same trace."""
    traces = [simulate(seed).text() for _ in range(2)]
    assert traces[0].count("\n") > 100
    assert traces[0] == traces[1]


def test_a_store_without_fencing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation finds a store that accepts writes of stale epochs."""

    def renew(self: DurableRunLease, connection: BackendConnection, now: float, assignments: str) -> None:
        sql = f"UPDATE run SET {assignments}lease = ?, touched_at = ? WHERE id = ?"  # constants
        connection.execute(sql, (now + self.runs.lease, now, self.run))

    monkeypatch.setattr(DurableRunLease, "_renew_or_raise", renew)
    with pytest.raises(Broken, match=r"stale epoch|recorded twice"):
        list(map(simulate, range(100)))


def test_the_storm_is_one() -> None:
    """Among some seeds there are hand-overs, late ones too, lost leases, and runs that ended partial."""
    worlds = [simulate(seed) for seed in range(60)]
    text = "\n".join(world.text() for world in worlds)
    for what in ("taken over from executor", "ended partial", " lost e", "is stopped", "dies before", "unknown"):
        assert what in text
