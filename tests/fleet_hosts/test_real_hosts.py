"""Three hosts with workers, gateways and clients on one PostgreSQL, while networks and hosts fail."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fleet_hosts import audit, checks
from tests.fleet_hosts.faults import FaultInjector, FaultKind, plan
from tests.fleet_hosts.network import NotAllowed
from tests.fleet_hosts.world import world

if TYPE_CHECKING:
    from tests.fleet_hosts.world import World

IS_STORM = "RUNG_FLEET_SEEDS" in os.environ
SEEDS = range(int(os.environ.get("RUNG_FLEET_FIRST_SEED", "1")), 1_000_000)[
    : int(os.environ.get("RUNG_FLEET_SEEDS", "1"))
]
ENGINES = ("embedded", "dbos") if IS_STORM else ("embedded",)  # a storm takes a minute and a half

pytestmark = pytest.mark.usefixtures("unmeasured_processes")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_hosts_that_fail(engine: str, seed: int, tmp_path: Path) -> None:
    """Acknowledged means present, epochs only grow, stale writes are rejected, every run ends, no budget is overspent."""
    try:
        with world(engine, tmp_path, seed) as made:
            _storm(made, seed)
    except NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")


def _storm(made: World, seed: int) -> None:
    begin = time.time()
    injector = FaultInjector(made)
    injector.run(plan(seed))
    healed = time.time()
    made.until(lambda: checks.is_spent(made, healed), "the small budget is spent")
    Path(made.folder, "stop").touch()
    made.until(made.are_clients_done, "the clients have ended")
    made.until(lambda: audit.count_open(made.url, made.engine) == 0, "every run has ended")
    made.until(lambda: made.live_executors() == made.expected_executors(), "all processes are live again")
    checks.check_status(made)
    evidence = checks.HostRecords(made)
    checks.check_runs(evidence)
    checks.check_epochs(evidence)
    checks.check_steps(evidence)
    deaths = {change.host: change.end for change in injector.changes if change.kind is FaultKind.DEATH}
    made.until(lambda: not checks.unrecorded(evidence, deaths), "every answered call is recorded")
    checks.check_spending(evidence)
    assert evidence.takeovers(), "no run came to another host: this proves nothing"
    said = Counter(each.what for each in evidence.said)
    lines = [
        f"{each.kind} of {each.host}: {each.begin - begin:.1f} to {each.end - begin:.1f} s" for each in injector.changes
    ]
    counts = f"{len(evidence.runs)} runs, {evidence.takeovers()} takeovers, {evidence.rejected_ends()} rejected results, {dict(said)}"
    sys.stdout.write(
        f"\nseed {seed}, {made.engine}: {counts}, ended after {time.time() - begin:.0f} s; {'; '.join(lines)}\n"
    )
