"""Play the sixteen failover scenarios in real time, with the gateway's default settings: python -m bench.gateway.failover [SCENARIO …]."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from tests.gateway.failover.scenarios import PASS, SCENARIOS, judge, measure

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenarios at the same time; return 1 unless all of them pass."""
    parser = argparse.ArgumentParser(prog="bench.gateway.failover", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="S01 to S16 (default: all)")
    names = parser.parse_args(arguments).scenarios or list(SCENARIOS)
    if unknown := set(names) - set(SCENARIOS):
        parser.error(f"unknown scenario {', '.join(sorted(unknown))}; known: {', '.join(SCENARIOS)}")
    print(f"{'scenario':<40} {'verdict':<8} {'seconds':>7} {'primary':>8} {'fallback':>9}  checks that fail")
    verdicts: Counter[str] = Counter()
    with ThreadPoolExecutor(len(names)) as pool:
        for name, found in zip(names, pool.map(partial(measure, is_quick=False), names), strict=True):
            verdict, failed = judge(name, found, is_quick=False)
            verdicts[verdict] += 1
            told = f"{len(found.primary):>8} {found.fallback:>9}  {'; '.join(failed)}"
            print(f"{name} {SCENARIOS[name].title:<36} {verdict:<8} {found.last.seconds:>7.1f} {told}", flush=True)
    print(f"{verdicts[PASS]} of {len(names)} pass ({', '.join(f'{key} {count}' for key, count in verdicts.items())})")
    return int(verdicts[PASS] < len(names))


if __name__ == "__main__":
    sys.exit(main())
