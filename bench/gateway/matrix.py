"""Recovery matrix: every fault of the lab, streamed and not, over each wire, with and without a gateway.

    python -m bench.gateway.matrix [--wire messages] [--case cut] [--driver sdk] [--litellm PYTHON] [--portkey SCRIPT] [--json FILE]

Each cell is one request to a lab that fails once, or always for faults that do not go away: with the real SDK of the
wire (retries off) and with plain HTTP, parsed strictly. A cell has what the client got (the complete answer, a
well-formed error, or something worse), lost and duplicated words, the attempts that the lab counted, and the seconds.
Columns run in parallel, each with its own lab. The wires are those that the peers are configured for; the gate tests Rung
with Gemini's, too (tests/gateway/test_recovers.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop
from tests.gateway.behind import WIRES
from tests.gateway.cells import CASES, CELLS, DRIVERS, POLICY, TIMEOUTS, Cell, Found, as_good_as_can_be, measure

from bench.gateway.matrix_peers import LiteLLM, Portkey
from rung.core.policy.parser import parse_policy_file
from rung.gateway.serve import RunningGateway
from rung.gateway.settings import settings_from
from rung.testing.provider import Lab

MAX_RESULT_CHARS = 26


class Bare:
    """No gateway."""

    name = "no gateway"

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def ask(self, cell: Cell) -> Found:
        return measure(self.lab, self.lab.url, cell)


class Ours:
    """Rung's gateway; a new one per cell, so that no breaker, budget or session is shared."""

    name = "rung"

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def ask(self, cell: Cell) -> Found:
        table = {"anthropic": self.lab.url, "openai": self.lab.url, "port": 0, "timeouts": TIMEOUTS}
        up = threading.Event()
        served = RunningGateway(settings_from(table, parse_policy_file({"policy": POLICY})), None, lambda _: up.set())
        thread = threading.Thread(target=lambda: uvloop.run(served.run()), daemon=True)
        thread.start()
        up.wait(10)
        try:
            return measure(self.lab, f"http://127.0.0.1:{served.port}", cell)
        finally:
            served.stop()
            thread.join(10)


def format_result(found: Found) -> str:
    """Return a result as a table cell."""
    worse = "".join(f", {n} {word}" for n, word in ((found.lost, "lost"), (found.doubled, "twice")) if n)
    got = found.got if len(found.got) <= MAX_RESULT_CHARS else found.got[: MAX_RESULT_CHARS - 1] + "…"
    return f"{got}{worse} · {found.attempts} · {found.seconds:.1f} s"


def run(columns: list[Any], cells: list[Cell]) -> dict[str, dict[Cell, Found]]:
    """Run all cells, each column in its own thread; print a row when it is complete."""
    results: dict[str, dict[Cell, Found]] = {column.name: {} for column in columns}
    print(f"{'fault':24}{'wire':11}{'':8}{'by':6}" + "".join(f"{column.name:42}" for column in columns))
    lock = threading.Lock()

    def one(column: Any) -> None:
        for cell in cells:
            found = column.ask(cell)
            with lock:
                results[column.name][cell] = found
                if all(cell in done for done in results.values()):
                    row = "".join(f"{format_result(done[cell]):42}" for done in results.values())
                    how = "stream" if cell.stream else "whole"
                    print(f"{cell.case[:23]:24}{cell.wire:11}{how:8}{cell.driver:6}{row}".rstrip(), flush=True)

    with ThreadPoolExecutor(len(columns)) as pool:
        list(pool.map(one, columns))
    return results


def print_summary(results: dict[str, dict[Cell, Found]], cells: list[Cell]) -> int:
    """Print a summary per column; return the number of rung's cells that are worse than possible."""
    bare = results["no gateway"]
    bad: list[Cell] = []
    print(f"\n{'':14}{'as good as can be':>20}{'worse':>8}   of which: error, truncated or duplicated, no end")
    for name, found in results.items():
        good = [cell for cell in cells if as_good_as_can_be(cell, found[cell], bare[cell])]
        rest = [cell for cell in cells if cell not in good]
        kinds = Counter(found[cell].got.split(" (")[0].partition(":")[0] for cell in rest)
        words = ", ".join(f"{many} {kind}" for kind, many in kinds.most_common())
        print(f"{name:14}{f'{len(good)} of {len(cells)}':>20}{len(rest):>8}   {words}")
        if name == "rung":
            bad = rest
    for cell in bad:
        print(f"rung, worse than possible: {cell}: {format_result(results['rung'][cell])}")
    return len(bad)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", choices=WIRES)
    parser.add_argument("--case", choices=tuple(CASES))
    parser.add_argument("--driver", choices=DRIVERS)
    parser.add_argument("--litellm", type=Path, help="Python interpreter with litellm[proxy]")
    parser.add_argument("--portkey", type=Path, help="start-server.js of @portkey-ai/gateway")
    parser.add_argument("--json", type=Path, help="also write all cells to this file")
    options = parser.parse_args()
    cells = [
        cell
        for cell in CELLS
        if cell.wire in ([options.wire] if options.wire else WIRES)  # the peers are not configured for Gemini's
        and options.case in (None, cell.case)
        and options.driver in (None, cell.driver)
    ]
    with ExitStack() as stack:

        def lab() -> Lab:
            return stack.enter_context(Lab())

        columns: list[Any] = [Bare(lab()), Ours(lab())]
        if options.litellm:
            columns.append(stack.enter_context(LiteLLM(lab(), options.litellm)))
        if options.portkey:
            columns.append(stack.enter_context(Portkey(lab(), options.portkey)))
        results = run(columns, cells)
    if options.json:
        rows = [
            {**cell._asdict(), "columns": {name: found[cell]._asdict() for name, found in results.items()}}
            for cell in cells
        ]
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if print_summary(results, cells) else 0


if __name__ == "__main__":
    sys.exit(main())
