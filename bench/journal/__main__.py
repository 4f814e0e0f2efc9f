"""Cost of the journal: durable appends compared with raw SQLite in the same run, and the overhead for a caller.

An append is what the engine sends: three events after a failed attempt, one at the end of the call. Raw SQLite writes
the rows of our run, prepared in advance, in the same transactions and with the same settings (WAL, every commit
synced): once only the events, once with the read models. "Naive" commits each event separately. Each round runs all
subjects in turn; the table shows medians, also of ratios.

The overhead for a caller is the CPU time of its thread (time.thread_time) for guarded calls with and without a
journal, without waits between attempts; and the elapsed time of a successful call and between two attempts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from bench.journal.work import (
    Speed,
    append_by_tasks,
    append_by_threads,
    append_cost,
    caller_cost,
    make_work,
    raw_sqlite,
    raw_sqlite_naive,
)
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.journal.work import EventBatch, Write

SCENARIOS: dict[str, tuple[Callable[[Path, list[list[EventBatch]]], tuple[Speed, list[list[Write]]]], int]] = {
    "1 thread": (append_by_threads, 1),
    "50 threads": (append_by_threads, 50),
    "1 task": (append_by_tasks, 1),
    "50 tasks": (append_by_tasks, 50),
}
SUBJECTS = ("ours", "SQLite, same writes", "SQLite, events only", "naive")


class Goal(NamedTuple):
    """A limit and the measured value."""

    name: str
    limit: float
    measured: float
    unit: str
    is_minimum: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.is_minimum else self.measured <= self.limit


def measure(rounds: int, appends: int, directory: Path) -> dict[str, dict[str, list[Speed]]]:
    """Run every scenario, all subjects in turn."""
    found: dict[str, dict[str, list[Speed]]] = {way: {name: [] for name in SUBJECTS} for way in SCENARIOS}
    for number in range(rounds):
        for way, (run, writers) in SCENARIOS.items():
            print(f"round {number + 1} of {rounds}: {way}", file=sys.stderr)
            where = directory / f"{way}-{number}"
            work = make_work(writers, max(1, appends // 2 // writers) if writers > 1 else appends // 8)
            ours, transactions = run(where / "ours.db", work)
            found[way]["ours"].append(ours)
            found[way]["SQLite, same writes"].append(raw_sqlite(where / "all.db", transactions))
            found[way]["SQLite, events only"].append(raw_sqlite(where / "events.db", transactions, only="INTO event "))
            found[way]["naive"].append(
                raw_sqlite_naive(where / "naive.db", transactions[: max(50, len(transactions) // 20)])
            )
    return found


def print_speeds(found: dict[str, dict[str, list[Speed]]]) -> list[Goal]:
    """Print the table of speeds; return the goals."""
    head = f"{'':<14}{'':<24}{'events/s':>10}{'spread':>9}{'a commit':>10}{'p50 ms':>9}{'p99 ms':>9}{'ours':>8}"
    print(head)
    goals = []
    for way, speeds in found.items():
        ours = speeds["ours"]
        for name in SUBJECTS:
            rates = [speed.events for speed in speeds[name]]
            ratio = median(mine.events / its for mine, its in zip(ours, rates, strict=True))
            waits = (median(speed.p50 for speed in speeds[name]), median(speed.p99 for speed in speeds[name]))
            print(
                f"{way if name == 'ours' else '':<14}{name:<24}{median(rates):>10,.0f}"
                f"{(max(rates) - min(rates)) / median(rates):>9.0%}{median(s.each for s in speeds[name]):>10.1f}"
                + ("".join(f"{wait:>9.2f}" for wait in waits) if name == "ours" else f"{'':>18}")
                + (f"{'':>8}" if name == "ours" else f"{ratio:>8.0%}")
            )
            if name == "SQLite, same writes":
                goals.append(Goal(f"{way}: of SQLite's best, same writes", 70, 100 * ratio, " %", is_minimum=True))
            if name == "SQLite, events only" and way.startswith("50"):
                goals.append(Goal(f"{way}: of SQLite's best, events only", 70, 100 * ratio, " %", is_minimum=True))
        print()
    return goals


def print_callers(calls: int, directory: Path) -> list[Goal]:
    """Print the overhead for a caller; return the goals."""
    without = caller_cost(calls)
    with Journal(SqliteBackend(directory / "callers.db")) as journal:
        having = caller_cost(calls, journal=journal)
        failed, quietly = append_cost(journal, calls)
        journal.flush(600)  # a busy machine may have a long backlog
    print(f"{'a call, µs of the caller':<40}{'without':>10}{'journal':>10}{'added':>10}")
    for name, before, after in (
        ("goes well", without.good, having.good),
        ("fails once, then goes well", without.failed, having.failed),
    ):
        print(f"{name:<40}{before:>10.1f}{after:>10.1f}{after - before:>10.1f}")
    print(f"{'handing over what failed':<40}{'':>20}{failed:>10.1f}")
    print(f"{'handing over what nobody waits for':<40}{'':>20}{quietly:>10.1f}")
    for what, name in (("whole", "goes well, all its time"), ("between", "until it may go on after a failure")):
        cuts = [quantiles(getattr(found, what), n=100) for found in (without, having)]
        for cut in (50, 99):
            one, other = (each[cut - 1] for each in cuts)
            print(f"{name + f', p{cut}':<40}{one:>10.1f}{other:>10.1f}{other - one:>10.1f}")
    print()
    return [
        Goal("a failed attempt: added to the caller", 50, having.failed - without.failed, " µs"),
        Goal("a good call: added to the caller", 5, having.good - without.good, " µs"),
    ]


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="rough results within seconds")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures to this file")
    options = parser.parse_args()
    rounds, appends, calls = (1, 1_000, 400) if options.quick else (5, 20_000, 5_000)
    print(f"{__doc__}\nPython {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}\n")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        speeds = measure(rounds, appends, Path(made))
        goals = print_speeds(speeds)
        goals += print_callers(calls, Path(made))
    print(f"{'goal':<44}{'limit':<12}{'measured':>12}   met")
    for goal in goals:
        limit = f"{'>=' if goal.is_minimum else '<='} {goal.limit:.0f}{goal.unit}"
        print(f"{goal.name:<44}{limit:<12}{goal.measured:>10.1f}{goal.unit}   {'yes' if goal.met else 'NO'}")
    if options.json:
        options.json.write_text(json.dumps(as_json(speeds, goals), indent=1) + "\n")


def as_json(speeds: dict[str, dict[str, list[Speed]]], goals: list[Goal]) -> dict[str, Any]:
    """Return the speed of each subject as a ratio to raw SQLite with the same writes, and the goals."""
    limit = "SQLite, same writes"
    shares = {
        way: {
            name: median(each.events / best.events for each, best in zip(found, subjects[limit], strict=True))
            for name, found in subjects.items()
        }
        for way, subjects in speeds.items()
    }
    return {"shares": shares, "goals": [{**goal._asdict(), "met": goal.met} for goal in goals]}


if __name__ == "__main__":
    main()
