"""Run the cells that have no result yet, one wall after the other: python -m bench.walls [--walls 30,90] [--clients a,b]."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clients.__main__ import isolate_network
from bench.walls.cells import LITELLM, ROUTES, TRIES, WALLS, Cell, Result, all_cells
from bench.walls.harness import Harness
from bench.walls.report import Verdicts, name_of, page, summary
from bench.walls.store import WallStore

if TYPE_CHECKING:
    from collections.abc import Sequence


def _choice(value: str, known: Sequence[str]) -> list[str]:
    chosen = value.split(",")
    if unknown := [each for each in chosen if each not in known]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return chosen


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.walls", description=__doc__)
    for name, known in (
        ("walls", list(map(str, WALLS))),
        ("clients", list(TRIES)),
        ("routes", list(ROUTES)),
        ("modes", ["stream", "whole"]),
        ("tries", ["2", "10", "default"]),
    ):
        parser.add_argument(
            f"--{name}",
            default=known,
            type=partial(_choice, known=known),
            help=f"some of {', '.join(known)}, separated by commas (default: all)",
        )
    parser.add_argument("--environments", type=Path, default=Path(".venv/clients"))
    parser.add_argument("--litellm", type=Path, default=Path(".venv/litellm/bin/python"))
    parser.add_argument(
        "--results", type=Path, help="file of this machine's results (default: ENVIRONMENTS/walls.jsonl)"
    )
    parser.add_argument("--agents", type=int, default=4, help="agents (Claude Code, Codex) at once")
    parser.add_argument("--again", action="store_true", help="also run cells that have a result")
    parser.add_argument("--stale", action="store_true", help="also run cells behind another state of the gateway")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the results, write a page, and run nothing")
    return parser.parse_args(arguments)


def _selected(options: argparse.Namespace, store: WallStore) -> list[Cell]:
    found = [
        cell
        for cell in all_cells()
        if str(cell.wall) in options.walls
        and cell.client in options.clients
        and cell.route in options.routes
        and cell.mode in options.modes
        and cell.tries in options.tries
        and (options.environments / cell.client / ".ready").exists()
        and (cell.route != LITELLM or options.litellm.exists())
    ]
    if options.again:
        return found
    return [cell for cell in found if not store.has(cell) or (options.stale and store.is_stale(cell))]


async def _run(cells: list[Cell], options: argparse.Namespace, store: WallStore) -> None:
    def done(cell: Cell, result: Result) -> None:
        store.add(cell, result, dt.datetime.now(dt.UTC).date().isoformat())
        late = "never" if result.late is None else f"{result.late:+.1f} s"
        told = f"answered {late}, last request {result.gave_up} s, {result.requests} requests"
        print(f"{name_of(cell):<75} {result.verdict:<7} {told}  {result.note[:200]}", flush=True)

    await Harness(options.environments, options.litellm, options.agents).run(cells, done)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing; return 1 if a verdict does not hold."""
    options = _options(arguments)
    store = WallStore(options.results or options.environments / "walls.jsonl")
    if options.report:
        store.save()
        options.report.write_text(page(store), encoding="utf-8")
        return 0
    isolate_network()
    cells = _selected(options, store)
    for wall in WALLS:
        if chosen := [cell for cell in cells if cell.wall == wall]:
            asyncio.run(_run(chosen, options, store))
    print("\n".join(summary(store)))
    return int(not Verdicts(store).holds)


if __name__ == "__main__":
    sys.exit(main())
