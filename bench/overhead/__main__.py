"""Overhead of a guarded call in rung and other libraries: ratios to a bare try/except loop, within one run.

Each (library, mode, scenario) is measured in its own process, in turns with a bare loop, so that noise affects
both: process CPU time, best of 7 loops of 40 ms, garbage collection on. All rounds are repeated; the table shows
the median of the ratios and their spread. `time.sleep` and `asyncio.sleep` are replaced by no-ops for every library.

One failure: the first attempt raises ConnectionResetError("x"), the second succeeds. rung caches the classification
of equal exceptions; in the rows "never seen before" each exception has a different message.

Imports: wall time of `python -I -c`, and its CPU time, which the goal refers to because it does not depend on other
processes. Bytes: tracemalloc, which does not see memory reused from free lists.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from time import perf_counter

from bench.overhead.subjects import MEMORY, PEERS, SETUPS, YARDSTICK
from bench.overhead.tables import Results, cell, print_json, print_text
from bench.overhead.work import Mode, Scenario

FIRST_USE = "import rung; rung.guarded(lambda: 1)(); rung.classify(Exception('x'))"
IMPORTS = {"rung": "import rung", "rung + first use": FIRST_USE} | {peer: f"import {peer}" for peer in PEERS}
ROUNDS, QUICK_ROUNDS = 5, 2
IMPORTS_EACH_ROUND = 4


def measure(rounds: int) -> Results:
    """Measure everything, one process at a time."""
    results = Results()
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for mode in Mode:
            for scenario in Scenario:
                names = (YARDSTICK, "rung") if scenario is Scenario.FRESH else SETUPS
                for name in names:
                    results.calls.setdefault(cell(mode, scenario, name), []).append(_worker(name, mode, scenario))
        _time_imports(results.imports)
    for mode in Mode:
        for name in SETUPS:
            results.memory[f"{mode}/{name}"] = _worker(name, mode, MEMORY)
    return results


def _worker(name: str, mode: str, scenario: str) -> dict[str, float]:
    done = _run("-m", "bench.overhead", "--worker", name, mode, scenario)
    found: dict[str, float] = json.loads(done)
    return found


def _time_imports(into: dict[str, list[tuple[float, float]]]) -> None:
    snippets = {"": "pass", **IMPORTS}
    for number in range(1 + IMPORTS_EACH_ROUND):  # the first run is not counted: it may compile bytecode
        for name, snippet in snippets.items():
            wall, cpu = perf_counter(), _children_cpu()
            _run("-I", "-c", snippet)
            if number:
                spent = perf_counter() - wall, _children_cpu() - cpu
                into.setdefault(name, []).append((spent[0] * 1e3, spent[1] * 1e3))


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(*arguments: str) -> str:
    """Return the output of a Python process; exit if it fails, because a missing row would be misleading."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: rough results within a minute")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        from bench.overhead import worker

        print(json.dumps(worker.measure(*options.worker)))
        return
    results = measure(QUICK_ROUNDS if options.quick else ROUNDS)
    if options.json:
        print_json(results)
    else:
        print_text(results, __doc__)


if __name__ == "__main__":
    main()
