"""Accuracy of loop detectors on labelled trajectories: rung, and the rules of other agents.

Each line of the file is a JSON object: id, steps (i, tool, args, result, error), and the expected answer: loop
(null: not scored), loop_at. The default of FILE is RUNG_TRAJECTORIES, or ../shared/corpus/traj_public.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from bench.loops import root_causes
from bench.loops.behaviour import count_behaviour, lines
from bench.loops.peers import DETECTORS
from bench.loops.score import BadFile, Score, Trajectory, read_trajectories, score
from bench.loops.speed import measure

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "traj_public.jsonl"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("RUNG_TRAJECTORIES") or DEFAULT)
    parser.add_argument("file", nargs="?", type=Path, default=default, metavar="FILE")
    parser.add_argument("--wrong", action="store_true", help="list the trajectories that rung got wrong")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures to this file")
    parser.add_argument("--speed", action="store_true", help="also measure steps per second, memory and large results")
    parser.add_argument(
        "--need", metavar="P,R", help="minimum precision and recall in percent, such as 95,80; exit 1 if missed"
    )
    return parser.parse_args()


def _line(name: str, found: Score) -> str:
    late = "" if found.median_late is None else f"{found.median_late:+g}"
    wrong, missed = len(found.false), len(found.missed)
    return f"{name:<32}{found.precision:>10.3f}{found.recall:>8.3f}{late:>14}{wrong:>8}{missed:>8}"


def _root_causes(rows: list[Trajectory], *, details: bool) -> list[str]:
    path = root_causes.labels_file()
    if not path.exists():
        return [f"root cause: not measured, {path} does not exist (set RUNG_ROOT_CAUSES)"]
    return list(root_causes.lines(root_causes.score_root_causes(rows, path), details=details))


def main() -> int:
    options = _options()
    try:
        rows = read_trajectories(options.file)
    except BadFile as error:
        print(f"loops: {error}", file=sys.stderr)
        return 2
    scores = {name: score(make, rows) for name, make in DETECTORS.items()}
    ours = scores["rung"]
    judged = [row for row in rows if row.loop is not None]
    print(f"{options.file}: {len(judged)} trajectories, {sum(row.loop is True for row in judged)} of them loops\n")
    print(f"{'':<32}{'precision':>10}{'recall':>8}{'median late':>14}{'false':>8}{'missed':>8}")
    for name, found in scores.items():
        print(_line(name, found))
    print("\nfound by: " + ", ".join(f"{rule} {count}" for rule, count in sorted(ours.rules.items())))
    if options.wrong:
        print(f"false: {', '.join(ours.false) or 'none'}\nmissed: {', '.join(ours.missed) or 'none'}")
    behaviour = count_behaviour(rows)
    print("\n" + "\n".join(lines(behaviour)))
    print("\n" + "\n".join(_root_causes(rows, details=options.wrong)))
    if options.speed:
        speed = measure()
        print(f"\n{speed.steps:,.0f} ordinary steps a second on one core")
        print(
            f"memory of a session: {speed.short:,} B after 500 steps, {speed.long:,} B after 50,000; as JSON {speed.state:,} B"
        )
        print(
            f"a result of 10 MB takes {speed.large_result * 1e6:.1f} µs, one of 2 kB {speed.small_result * 1e6:.1f} µs"
        )
    if options.json:
        figures: dict[str, dict[str, Any]] = {
            name: {"precision": s.precision, "recall": s.recall, "late": s.late, "false": s.false, "missed": s.missed}
            for name, s in scores.items()
        }
        figures["behaviour"] = {name: dict(found) for name, found in behaviour.by_rule.items()}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.need:
        precision, recall = (float(part) / 100 for part in options.need.split(","))
        if ours.precision < precision or ours.recall < recall:
            print(f"loops: {ours.precision:.3f} / {ours.recall:.3f} but {options.need} % are required", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
