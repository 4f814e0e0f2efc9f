"""What a million agents would need: computed from measured figures, and an outage of ten minutes simulated at that size.

    python -m bench.fleet.million [--report FILE] [--seed 1] [--cells 50]

The figures come from `python -m bench.fleet.arithmetic --save`. The simulation (bench.fleet.herd) compares agents with the
retries of their SDKs alone, gateways that share nothing, and gateways that share circuits and retry budget in each cell.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from bench.fleet.arithmetic import BEGIN, END, FAILING_SHARE, FIGURES, agents_of
from bench.fleet.herd import Plan, Result, simulate
from rung.core.policy.executor_health import LEASE_SECONDS, beat_interval
from rung.gateway.settings import SizeLimits

AGENTS = 1_000_000
CALL_SECONDS = 10.0  # of a model call, on average
HEADROOM = 2.0  # capacity over the normal need
MODES = {"sdk": "no gateway, SDK retries", "own": "gateways, nothing shared", "shared": "gateways, shared by cell"}


def needs(figures: dict[str, Any], plan: Plan) -> list[tuple[str, str, str]]:
    """Return what so many agents need: the subject, the number, and how it was computed."""
    calls, concurrency = plan.normal, SizeLimits().concurrency
    recoveries = calls * FAILING_SHARE
    rate = figures["limits"]["PostgreSQL"]["recoveries"]
    one = agents_of(figures)
    gateways = math.ceil(calls * CALL_SECONDS / concurrency)
    journals = math.ceil(HEADROOM * recoveries / rate)
    kept = one["bytes per agent and day"] * AGENTS / 1e12
    return [
        ("model calls per second", f"{calls:,.0f}", f"{AGENTS:,} agents, one call in {plan.think_seconds:g} s each"),
        ("gateways", f"{gateways:,}", f"calls of {CALL_SECONDS:g} s, {concurrency:,} in flight each (`concurrency`)"),
        ("recoveries per second", f"{recoveries:,.0f}", f"{FAILING_SHARE:.0%} of the calls"),
        (
            "journals, each a PostgreSQL of the measured size",
            f"{journals:,}",
            f"{rate:,.0f} recoveries per second measured on {figures['cores']} cores, {HEADROOM:g} times the need",
        ),
        ("journal, recoveries alone", f"{kept:.1f} TB a day", "bytes of a recovery, times the recoveries of a day"),
        (
            "exchanges of shared limits per second, of a cell",
            f"{plan.gateways}",
            f"{plan.cells} cells of {plan.gateways} gateways, one exchange a second each",
        ),
        (
            "heartbeats per second, of a cell",
            f"{plan.gateways / beat_interval(LEASE_SECONDS):.0f}",
            f"one in {beat_interval(LEASE_SECONDS):g} s each",
        ),
    ]


def needs_table(figures: dict[str, Any], plan: Plan) -> str:
    """Return the needs as Markdown."""
    rows = [f"| {what} | {number} | {how} |" for what, number, how in needs(figures, plan)]
    return "\n".join(["| needed | number | computed from |", "| --- | --- | --- |", *rows])


def outage_table(results: dict[str, Result]) -> str:
    """Return the results of the simulations as Markdown, in calls unless a row says otherwise."""
    rows: list[tuple[str, str]] = [
        ("requests to the dead provider", "{0.to_dead:,.0f}"),
        ("the most of them in one second, after the first ten seconds", "{0.peak_to_dead:,.0f}"),
        ("errors that agents saw", "{0.errors:,.0f}"),
        ("highest load after its return, relative to the normal one", "{0.peak_after:.2f}"),
        ("requests that it refused after its return", "{0.refused_after:,.0f}"),
        ("seconds from its return until the load was normal", "{0.recovered_after}"),
        ("database operations per second, of a cell", "{0.exchanges_per_second:,.0f}"),
        ("tokens of the retry budget leased at most, of a cell", "{0.most_slices_out:,.0f}"),
    ]
    head = " | ".join(MODES[mode] for mode in results)
    lines = [f"| | {head} |", "| --- |" + " --- |" * len(results)]
    for what, form in rows:
        lines.append(f"| {what} | " + " | ".join(form.format(result) for result in results.values()) + " |")
    return "\n".join(lines)


def write_report(page: Path, text: str) -> None:
    """Put the tables between the markers of a page."""
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, help="page to write the tables into")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=50, help="of 20 gateways with 1,000 agents each")
    options = parser.parse_args()
    results = {}
    for mode, name in MODES.items():
        print(f"simulating: {name}", file=sys.stderr)
        results[mode] = simulate(Plan(mode=mode, cells=options.cells, seed=options.seed))
    figures = json.loads(FIGURES.read_text())
    text = f"{needs_table(figures, results['shared'].plan)}\n\n{outage_table(results)}"
    print(text)
    if options.report:
        write_report(options.report, text)


if __name__ == "__main__":
    main()
