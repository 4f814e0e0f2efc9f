"""What a guarded call costs, in rung and in its peers: ratios to a bare try/except loop, within one run.

Each (library, mode, scenario) is measured in a process of its own, in turns with a bare loop of its own, so
that noise hits both: process CPU time, best of 7 loops of 40 ms, garbage collection on. Rounds of all are
repeated; shown is the median of the ratios, and how far they lay apart. Nobody sleeps: `time.sleep` and
`asyncio.sleep` are replaced by functions that do nothing, for every library alike.

One failure: the first attempt raises ConnectionResetError("x"), the second succeeds. rung remembers what
it made of an equal exception; in the rows "never seen before" each has another message. Imports: wall time
of `python -I -c`. Bytes: tracemalloc, which does not see what Python's free lists reuse.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from time import perf_counter

from subjects import MEMORY, PEERS, SETUPS, YARDSTICK
from tables import Results, cell, print_json, print_text
from work import Mode, Scenario

IMPORTS = {"rung": "import rung", "rung + first use": "import rung; rung.guarded; rung.recover"} | {
    peer: f"import {peer}" for peer in PEERS
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How often everything is repeated."""

    rounds: int
    imports: int


FULL = Effort(rounds=5, imports=15)
QUICK = Effort(rounds=2, imports=5)


def measure(effort: Effort) -> Results:
    """Everything, one process at a time."""
    results = Results()
    for number in range(effort.rounds):
        print(f"round {number + 1} of {effort.rounds}", file=sys.stderr)
        for mode in Mode:
            for scenario in Scenario:
                names = (YARDSTICK, "rung") if scenario is Scenario.FRESH else SETUPS
                for name in names:
                    results.calls.setdefault(cell(mode, scenario, name), []).append(_worker(name, mode, scenario))
    print("memory and imports", file=sys.stderr)
    for mode in Mode:
        for name in SETUPS:
            results.memory[f"{mode}/{name}"] = _worker(name, mode, MEMORY)
    _time_imports(effort.imports, results.imports)
    return results


def _worker(name: str, mode: str, scenario: str) -> dict[str, float]:
    done = _run(__file__, "--worker", name, mode, scenario)
    found: dict[str, float] = json.loads(done)
    return found


def _time_imports(times: int, into: dict[str, list[float]]) -> None:
    snippets = {"": "pass", **IMPORTS}
    for warm in (True, *(False,) * times):  # the first time the compiled files are written
        for name, snippet in snippets.items():
            start = perf_counter()
            _run("-I", "-c", snippet)
            if not warm:
                into.setdefault(name, []).append((perf_counter() - start) * 1e3)


def _run(*arguments: str) -> str:
    """Give what a Python process printed; one that fails ends the benchmark, for a missing row would be a lie."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: rougher, but done in a minute")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        import worker

        print(json.dumps(worker.measure(*options.worker)))
        return
    results = measure(QUICK if options.quick else FULL)
    if options.json:
        print_json(results)
    else:
        print_text(results, __doc__)


if __name__ == "__main__":
    main()
