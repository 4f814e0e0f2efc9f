"""Recorded provider incidents replayed in virtual time: which share of calls and of minutes survives, and at which load.

FOLDER holds llm_incidents.jsonl and azure_arrivals.jsonl; default: RUNG_WORLDS, or ../shared/worlds. The data are not a
part of this project. `--synthetic` replays four made-up incidents instead.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.incidents import virtual_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.incidents.replay import Setting, Tally
    from bench.incidents.world import Call, Incident

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "worlds"
FILES: Final = ("llm_incidents.jsonl", "azure_arrivals.jsonl")
SEED: Final = 17
CLIENT_NAMES: Final = ("SDK, 2 retries", "SDK, 10 retries", "Claude Code")


def main() -> int:
    """Replay, and print one table for each severity."""
    virtual_time.install()  # before the modules that are measured are imported
    arguments = _arguments()
    if arguments.synthetic:
        everything, trace = _synthetic()
    else:
        folder = arguments.folder or Path(os.environ.get("RUNG_WORLDS", DEFAULT))
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            print(
                f"incidents: {folder} has no {' and no '.join(missing)}; name the folder, or set RUNG_WORLDS",
                file=sys.stderr,
            )
            return 2
        from bench.incidents.world import read_arrivals, read_incidents

        everything, trace = read_incidents(folder / FILES[0]), read_arrivals(folder / FILES[1])
    incidents = [each for each in everything if each.minutes <= arguments.longest]
    if len(incidents) > arguments.sample:
        incidents = random.Random(SEED).sample(incidents, arguments.sample)
    _report(everything, incidents, trace, arguments)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.incidents", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder with the recorded incidents and arrivals")
    parser.add_argument("--sample", type=int, default=60, help="incidents that are replayed, drawn with a fixed seed")
    parser.add_argument("--longest", type=float, default=1_440, help="longest incident, in minutes")
    parser.add_argument("--per-minute", type=float, default=0.5, help="calls a minute")
    parser.add_argument("--synthetic", action="store_true", help="replay made-up incidents, needs no data")
    parser.add_argument("--client", action="append", choices=CLIENT_NAMES, help="replay with this client only")
    parser.add_argument(
        "--severity", action="append", choices=("full", "partial"), help="replay with this severity only"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    return parser.parse_args()


def _synthetic() -> tuple[list[Incident], list[Call]]:
    from bench.incidents.world import Call, Incident

    chance = random.Random(SEED)
    trace = [Call(at, 1.0 + chance.random()) for at in sorted(chance.uniform(0, 600) for _ in range(200))]
    minutes = (
        ("anthropic", 0.0, 3.0, 3),
        ("anthropic", 100.0, 20.0, 3),
        ("openai", 110.0, 5.0, 3),
        ("openai", 300.0, 8.0, 1),
    )
    return [Incident(*each) for each in minutes], trace


HEADER: Final = (
    f"{'client':16} {'gateway':8} {'route':14} {'calls':>6} {'survived':>9} {'lost':>6} {'minutes':>8} {'short ones':>11} {'wait, median':>13} {'95 %':>6} "
    f"{'requests/call':>14}"
)
TITLES: Final = {"full": "every request fails", "partial": "the share of requests that belongs to the impact fails"}


def _report(
    everything: Sequence[Incident], incidents: Sequence[Incident], trace: Sequence[Call], arguments: argparse.Namespace
) -> None:
    from bench.incidents.clients import CLIENTS
    from bench.incidents.replay import ROUTES, Setting, replay
    from bench.incidents.world import FULL, PARTIAL

    hours = sum(each.minutes for each in incidents) / 60
    if not arguments.json:
        print(
            f"{len(incidents)} of {len(everything)} incidents, {hours:.0f} hours, {arguments.per_minute:g} calls a minute"
        )
    for severity, shares in (("full", FULL), ("partial", PARTIAL)):
        if severity not in (arguments.severity or TITLES):
            continue
        if not arguments.json:
            print(f"\n{TITLES[severity]}\n{HEADER}")
        for client in CLIENTS:
            if client.name not in (arguments.client or CLIENT_NAMES):
                continue
            rows = [("none", "one model"), *((gateway, route) for route in ROUTES for gateway in ("LiteLLM", "Rung"))]
            for gateway, route in rows:
                setting = Setting(
                    gateway=gateway, route=route, client=client, shares=shares, per_minute=arguments.per_minute
                )
                row = _row(severity, setting, replay(setting, incidents, everything, trace))
                print(json.dumps(row) if arguments.json else ROW.format(**row), flush=True)


ROW: Final = (
    "{client:16} {gateway:8} {route:14} {calls:>6} {survived:>9.1%} {lost:>6} {minutes:>8.1%} {short:>11.1%} {median_wait:>11.1f} s {long_wait:>4.0f} s "
    "{requests_per_call:>14.2f}"
)


def _row(severity: str, setting: Setting, tally: Tally) -> dict[str, Any]:
    waits = sorted(tally.waits) or [0.0]
    return {
        "severity": severity, "client": setting.client.name, "gateway": setting.gateway, "route": setting.route,
        "calls": tally.calls, "survived": tally.survived / tally.calls, "lost": tally.lost,
        "minutes": tally.minutes_survived / tally.minutes, "median_wait": statistics.median(waits),
        "short": tally.short_survived / max(1, tally.short_calls),
        "long_wait": waits[int(0.95 * (len(waits) - 1))], "requests_per_call": tally.requests / tally.calls,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
