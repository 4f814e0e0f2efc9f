"""Test real coding agents with every fault of the lab, with the gateway (their retries off) and without (their retries on).

    python -m bench.gateway.agents claude [codex] [--case cut] [--bare]

RUNG_CODEX is the path of Codex. A task has three commands and a final answer; every second request fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.gateway.agents import SAID, Task, as_good_as_can_be, rules, task
from tests.gateway.cells import CASES

SKIPPED_CASES = ("loop", "refusal", "refusal half-way")  # behaviour of the model, not a fault of the provider


def format_task(found: Task) -> str:
    """Return a result as a table cell."""
    if found.done:
        got = "done"
    elif found.exit < 0:
        got = "hung"
    else:
        got = "other words" if found.said == SAID else f"ended with {found.exit}"
    ran = "" if found.done else f", ran {'+'.join(found.ran) or 'nothing'}"
    return f"{got}{ran} · {found.struck} faults, {found.attempts} att. · {found.seconds:.0f} s"


def run_task(agent: str, name: str, *, gateway: bool) -> Task:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        return task(agent, Path(root), rules(agent, CASES.get(name)), gateway=gateway)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("agents", nargs="+", choices=("claude", "codex"))
    parser.add_argument("--case", choices=("no fault", *CASES))
    parser.add_argument("--bare", action="store_true", help="also run without the gateway")
    options = parser.parse_args()
    names = [options.case] if options.case else ["no fault", *(name for name in CASES if name not in SKIPPED_CASES)]
    bad = 0
    print(f"{'agent':8}{'fault':32}{'rung':58}{'no gateway' if options.bare else ''}".rstrip())
    for agent in options.agents:
        for name in names:
            with ThreadPoolExecutor(2) as pool:
                ours = pool.submit(run_task, agent, name, gateway=True)
                bare = pool.submit(run_task, agent, name, gateway=False) if options.bare else None
                good = as_good_as_can_be(name, ours.result())
                bad += not good
                mark = "" if good else "  WORSE THAN IT COULD BE: " + ours.result().said[:200]
                beside = format_task(bare.result()) if bare is not None else ""
                print(f"{agent:8}{name:32}{format_task(ours.result()):58}{beside}{mark}".rstrip(), flush=True)
    print(f"\n{bad} of {len(names) * len(options.agents)} are worse than they could be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
