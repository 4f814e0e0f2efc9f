"""Recovery policies played on outcomes that others recorded: success, attempts, seconds and waste, side by side.

FOLDER holds the recorded files; default: RUNG_WORLDS, or ../shared/worlds. The data are not a part of this project.
`--synthetic` plays a made-up world instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.worlds.goal import goal
from bench.worlds.peers import peers
from bench.worlds.printing import describe, markdown, table, verdict
from bench.worlds.records import BadRecord, read_worlds
from bench.worlds.report import draw, write_report
from bench.worlds.results import Result, results
from bench.worlds.rung_policies import rung_policies
from bench.worlds.synthetic import synthetic_worlds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.worlds.world import World

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "worlds"
SEED: Final = 17


def main(arguments: Sequence[str] | None = None) -> int:
    """Play every world; return 1 if the goal is to be checked and is missed in one, 2 without data."""
    options = parse_options(arguments)
    try:
        worlds = worlds_of(options)
    except BadRecord as error:
        print(f"worlds: {error}; name the folder, or set RUNG_WORLDS", file=sys.stderr)
        return 2
    found: list[tuple[World, list[Result]]] = []
    for world in worlds:
        policies = [*rung_policies(world), *peers(world)]
        rows = results(world, policies, seed=options.seed, rounds=options.rounds, resamples=options.resamples)
        found.append((world, rows))
        _print(world, rows, options)
    if options.plot is not None:
        draw(options.plot, found)
    if options.report is not None:
        write_report(options.report, found, options.rounds)
    missed = [world.name for world, rows in found if not goal(rows).holds]
    if options.check and missed:
        print(f"worlds: the goal is missed in {', '.join(missed)}", file=sys.stderr)
        return 1
    return 0


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.worlds", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder with the recorded files")
    parser.add_argument("--world", action="append", help="play worlds whose name begins with this only")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the draws and of the resampling")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of draws for each task")
    parser.add_argument("--resamples", type=int, default=1_000, help="resamples of the tasks for the intervals")
    parser.add_argument("--synthetic", action="store_true", help="play a made-up world, needs no data")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    parser.add_argument("--plot", type=Path, help="folder for the frontier plots, attempts.svg and seconds.svg")
    parser.add_argument("--report", type=Path, help="page to write the results into, between its markers")
    parser.add_argument("--check", action="store_true", help="exit 1 if the goal is missed in a world")
    return parser.parse_args(arguments)


def worlds_of(options: argparse.Namespace) -> list[World]:
    """Return the chosen worlds; raise BadRecord if there are none."""
    folder = options.folder or Path(os.environ.get("RUNG_WORLDS", DEFAULT))
    worlds = synthetic_worlds() if options.synthetic else read_worlds(folder)
    chosen = [world for world in worlds if not options.world or world.name.startswith(tuple(options.world))]
    if not chosen:
        raise BadRecord(
            f"no world is named {' or '.join(options.world)}; there are {', '.join(w.name for w in worlds)}"
        )
    return chosen


def _print(world: World, rows: Sequence[Result], options: argparse.Namespace) -> None:
    if options.json:
        for row in rows:
            print(json.dumps({"world": world.name, **row.to_json()}))
        met = goal(rows)
        print(json.dumps({"world": world.name, "goal": met.holds, "better": met.better, "waste_share": met.waste}))
        return
    heading = describe(world, options.rounds)
    print(f"\n### {heading}\n" if options.markdown else f"\n{heading}")
    print("\n".join(markdown(rows) if options.markdown else table(rows)))
    print(f"\n{verdict(rows)}" if options.markdown else verdict(rows), flush=True)


if __name__ == "__main__":
    sys.exit(main())
