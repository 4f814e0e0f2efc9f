"""Run the whole matrix and print a table: rows are clients, columns are other providers, cells passed of all."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.gateway.cross_wire.cells import CELLS, CLIENTS, UPSTREAMS, Cell
from tests.gateway.cross_wire.rig import KEY, KEY_ENV, problems_or_error


def main() -> int:
    """Run the cells whose names contain all given words."""
    parser = argparse.ArgumentParser(prog="bench.gateway.cross_wire", description=__doc__)
    parser.add_argument("words", nargs="*", help="only cells whose names contain these words")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    cells = [cell for cell in CELLS if all(word in str(cell) for word in asked.words)]
    passed: Counter[tuple[str, str]] = Counter()
    os.environ[KEY_ENV] = KEY
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        for cell, found in zip(cells, pool.map(problems_or_error, cells, chunksize=4), strict=True):
            passed[cell.client, cell.upstream] += not found
            for problem in found:
                print(f"{cell}: {problem}")
    print(table(cells, passed))
    return int(passed.total() < len(cells))


def table(cells: list[Cell], passed: Counter[tuple[str, str]]) -> str:
    """Return the table."""
    total = Counter((cell.client, cell.upstream) for cell in cells)
    rows = [["client \\ upstream", *UPSTREAMS]]
    for client in CLIENTS:
        found = [f"{passed[client, name]}/{total[client, name]}" if total[client, name] else "-" for name in UPSTREAMS]
        rows.append([client, *found])
    return "\n".join("".join(f"{text:<20}" for text in row).rstrip() for row in rows)


if __name__ == "__main__":
    sys.exit(main())
