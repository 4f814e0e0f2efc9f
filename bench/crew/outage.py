"""A crew of eight before a service with outages: is every task completed, what is charged, and how often is it probed?

In simulated time: a five-hour plan limit, an overload of ten minutes, both, and `kill -9` of everything in the middle of
the park. With --real SECONDS, also six tasks on two workers with real processes and default settings, before a plan
limit and before an overload of that length.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crew.outage import HOUR, OutageWorld
from tests.crew.test_conducted import Place
from tests.crew.test_parked import LIMIT, OVERLOADED, end_of_refusals, prepare, refused

from rung.core.crew.contract import TaskState
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.crew.rows import TaskRow

PLAN_LIMIT = (300.0, 300.0 + 5 * HOUR, True)
OVERLOAD = (200.0, 800.0, False)
SCENARIOS = {
    "plan limit, 5 h": ([PLAN_LIMIT], False),
    "overload, 10 min": ([OVERLOAD], False),
    "overload, then plan limit": ([OVERLOAD, (1_500.0, 1_500.0 + 5 * HOUR, True)], False),
    "plan limit, everything killed": ([PLAN_LIMIT], True),
}
HEADER = ("scenario", "complete", "errors", "restarts", "probes", "most a minute", "refused", "done after, min")
DEFAULTS = {
    "poll": 5.0,
    "beat": 60.0,
    "stale_after": 540.0,
    "probe_interval": 60.0,
    "probe_seconds": 240.0,
    "spread": 10.0,
}


def main() -> None:
    """Run the scenarios and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--real", type=float, metavar="SECONDS", help="also with real processes")
    options = parser.parse_args()
    print_row(HEADER)
    for name, (outages, killed) in SCENARIOS.items():
        simulate(name, outages, options.seeds, killed=killed)
    if options.real:
        threads = [
            threading.Thread(target=run_real, args=(name, refusal, options.real))
            for name, refusal in (("real plan limit", LIMIT), ("real overload", f"echo '{OVERLOADED}' >&2; exit 1"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def simulate(name: str, outages: Sequence[tuple[float, float, bool]], seeds: int, *, killed: bool) -> None:
    """Run one scenario with many seeds, and print its sums and its worst values."""
    complete = errors = restarts = tasks = 0
    probes, most, refused, late = [0], [0], [0], [0.0]
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            world = OutageWorld(Path(folder), seed, outages)
            if killed:
                world.run_until(world.outages[0].begin + 2 * HOUR)
                world.kill_everything()
            world.run()
            rows = world.table.tasks()
            restarts += len(world.table.restarts(1e9))
            world.table.close()
        tasks += len(rows)
        complete += count_complete(rows)
        errors += sum(row.error_tries + row.redispatches for row in rows)
        probes.append(len(world.probes()))
        most.append(world.most_probes_in_a_minute())
        refused.append(world.refusals)
        late.append((world.now - world.outages[-1].end) / 60)
    print_row((name, f"{complete} of {tasks}", errors, restarts, f"<= {max(probes)}", max(most), f"<= {max(refused)}",
               f"<= {max(late):.0f}"))  # fmt: skip


def run_real(name: str, refusal: str, seconds: float) -> None:
    """Run six tasks on two workers with default settings, and print what came of them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        prepare(place, refusal, int(seconds), **DEFAULTS)
        place.start()
        place.end()
        end = end_of_refusals(place)
        with CrewTable.open(str(place.db)) as table:
            rows, restarts = table.tasks(), len(table.restarts(1e9))
        refusals = len(refused(place))
    charged = sum(row.error_tries + row.redispatches for row in rows)
    late = (time.time() - end) / 60
    print_row((name, f"{count_complete(rows)} of {len(rows)}", charged, restarts, "", "", refusals, f"{late:.1f}"))


def count_complete(rows: Sequence[TaskRow]) -> int:
    """Return the number of complete tasks."""
    return sum(row.state is TaskState.COMPLETE for row in rows)


def print_row(cells: Sequence[object]) -> None:
    """Print one line of the table."""
    print(f"{cells[0]!s:<30}", *(f"{cell!s:>15}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    main()
