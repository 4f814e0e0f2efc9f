"""The arithmetic of a fleet: what a recovery leaves in the journal, what one PostgreSQL takes, and what follows for agents.

    python -m bench.fleet.arithmetic [--quick] [--save] [--report FILE]

Measures both stores in one run, with every commit synced. `--save` keeps the figures for bench.fleet.million; `--report`
writes the tables into a page, between its markers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.store import postgres

from bench.fleet import footprint, limits
from rung.store import open_journal

FIGURES = Path(__file__).with_name("figures.json")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
CALLS_PER_AGENT_MINUTE = 6.0  # model calls of a busy coding agent
FAILING_SHARE = 0.05  # of the calls; each becomes a recovery
DAY_SECONDS = 86_400


def measure(number: int) -> dict[str, Any]:
    """Measure both stores; return the figures."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "units": {}, "limits": {}}
    with tempfile.TemporaryDirectory() as directory, postgres.server(**DURABLE) as url:
        for store, place in (
            ("SQLite", str(Path(directory) / "{}.db")),
            ("PostgreSQL", f"{url}&options=-csearch_path%3D{{}}"),
        ):
            found["units"][store] = _footprints(place, number)
            found["limits"][store] = _limits(place, number)
        several = {
            str(n): limits.events_of_processes(f"{url}&options=-csearch_path%3Dprocesses", n, 2 * number // n)
            for n in (1, 2, 4)
        }
        found["limits"]["PostgreSQL"]["processes"] = several
    return found


def _footprints(place: str, number: int) -> dict[str, Any]:
    result = {}
    for name, (key, unit) in footprint.UNITS.items():
        with open_journal(place.format(key)) as journal:
            found = footprint.measure(journal, unit, number)
        result[name] = {"rows": round(found.rows, 2), "bytes": round(found.bytes), "largest": found.largest}
    return result


def _limits(place: str, number: int) -> dict[str, Any]:
    with open_journal(place.format("limits")) as journal:
        return {
            "events": limits.events_per_second(journal, 4 * number),
            "events, 1 writer": limits.events_per_second(journal, number // 4, 1),
            "recoveries": limits.units_per_second(journal, footprint.Work.recovery, number),
            "durable recoveries": limits.units_per_second(journal, footprint.Work.durable_recovery, number),
            "durable tasks": limits.units_per_second(journal, footprint.Work.task, number),
        }


def agents_of(figures: dict[str, Any], store: str = "PostgreSQL") -> dict[str, float]:
    """Return what one journal carries: agents by its throughput, and what they leave in a day."""
    rate = figures["limits"][store]["recoveries"]
    each = CALLS_PER_AGENT_MINUTE / 60 * FAILING_SHARE  # recoveries per agent and second
    per_recovery = figures["units"][store]["recovery: one failure, one retry"]["bytes"]
    per_success = figures["units"][store]["call that succeeds"]["bytes"]
    successes = CALLS_PER_AGENT_MINUTE / 60 * (1 - FAILING_SHARE)
    return {
        "recoveries per agent and second": each,
        "agents": rate / each,
        "bytes per agent and day": DAY_SECONDS * (each * per_recovery),
        "bytes per agent and day, with successes": DAY_SECONDS * (each * per_recovery + successes * per_success),
    }


def tables(figures: dict[str, Any]) -> str:
    """Return the tables as Markdown."""
    lines = ["| work | rows | SQLite, bytes | PostgreSQL, bytes | largest tables |", "| --- | --- | --- | --- | --- |"]
    for name, sqlite in figures["units"]["SQLite"].items():
        server = figures["units"]["PostgreSQL"][name]
        lines.append(
            f"| {name} | {server['rows']:.1f} | {sqlite['bytes']:,} | {server['bytes']:,} | {server['largest']} |"
        )
    sqlite, server = figures["limits"]["SQLite"], figures["limits"]["PostgreSQL"]
    lines += [
        "",
        f"| per second, on {figures['cores']} cores that also run the clients | SQLite | PostgreSQL | ratio |",
        "| --- | --- | --- | --- |",
    ]
    for name in ("events", "events, 1 writer", "recoveries", "durable recoveries", "durable tasks"):
        lines.append(
            f"| {name} | {_short(sqlite[name])} | {_short(server[name])} | {server[name] / sqlite[name]:.2f} |"
        )
    several = server["processes"]
    shown = ", ".join(f"{n}: {several[n] / several['1']:.2f}" for n in several)
    one = agents_of(figures)
    lines += [
        "",
        f"Events per second of several processes on one PostgreSQL journal, relative to one process: {shown}.",
        "",
        f"| of an agent with {CALLS_PER_AGENT_MINUTE:g} calls a minute, {FAILING_SHARE:.0%} of which fail once | |",
        "| --- | --- |",
        f"| recoveries per second | {one['recoveries per agent and second']:.3f} |",
        f"| agents on one journal, by recoveries per second | {_short(one['agents'])} |",
        f"| bytes a day, recoveries alone | {_short(one['bytes per agent and day'])} |",
        f"| bytes a day, with every successful call | {_short(one['bytes per agent and day, with successes'])} |",
    ]  # fmt: skip
    return "\n".join(lines)


def _short(number: float) -> str:
    """Return a number with two significant digits: a second run gives no more."""
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(number, -digits):,.0f}"


def write_report(page: Path, figures: dict[str, Any]) -> None:
    """Put the tables between the markers of a page."""
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{tables(figures)}\n\n{END}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few units, as a smoke test")
    parser.add_argument("--save", action="store_true", help="keep the figures in figures.json")
    parser.add_argument("--report", type=Path, help="page to write the tables into")
    options = parser.parse_args()
    figures = measure(50 if options.quick else 300)
    print(tables(figures))
    if options.save:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    if options.report:
        write_report(options.report, figures)


if __name__ == "__main__":
    main()
