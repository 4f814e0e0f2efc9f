"""Run benchmarks, store their figures, and write the page of results: python -m bench.results [NAME …] [--data PATH] [--page | --check]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.results.benchmarks import BENCHMARKS, CORPUS, ROOT, WORLDS, runs_of
from bench.results.page import FOLDER, outdated, write
from bench.results.record import BadRecord
from bench.results.run import NotMeasured, measure

if TYPE_CHECKING:
    from collections.abc import Sequence


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; an unknown benchmark is an error that names the known ones."""
    parser = argparse.ArgumentParser(prog="python -m bench.results", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--data", type=Path, help=f"another file for {CORPUS}, or another folder for {WORLDS}")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="directory of results.md and results/")
    parser.add_argument("--page", action="store_true", help="write the page from the stored figures, and run nothing")
    parser.add_argument("--check", action="store_true", help="write and run nothing; exit 1 if the page is outdated")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"unknown benchmark {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    if options.data and options.names not in ([CORPUS], [WORLDS]):
        parser.error(f"--data goes with {CORPUS} or {WORLDS} alone")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a benchmark gave no figures, or if a check finds an outdated page."""
    options = options_of(arguments)
    if options.check:
        found = outdated(options.docs)
        for path in found:
            print(f"{path}: outdated; run `make docs`", file=sys.stderr)
        return int(bool(found))
    if options.page:
        write(options.docs)
        return 0
    return int(not run_all(options))


def run_all(options: argparse.Namespace) -> bool:
    """Run benchmarks one after the other; store the figures and write the page after each. Return whether all gave figures."""
    folder = options.docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    is_complete = True
    for name in options.names or BENCHMARKS:
        for one in runs_of(name, options.data and options.data.resolve()):
            print(f"results: {one.name}: {one.command}", file=sys.stderr, flush=True)
            try:
                record = measure(one)
            except (NotMeasured, BadRecord) as error:
                print(f"results: {error}", file=sys.stderr, flush=True)
                is_complete = False
                continue
            (folder / f"{one.name}.json").write_text(record.text(), encoding="utf-8", newline="\n")
            write(options.docs)
    return is_complete


if __name__ == "__main__":
    sys.exit(main())
