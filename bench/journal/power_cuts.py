"""Events that were acknowledged and are gone after a power cut, by how often a store syncs: `python -m bench.journal.power_cuts`.

The journal runs on a simulated disk that keeps what was synced and any part of the rest, as in the tests. Ours syncs every
commit. Beside it, the same journal syncs only at checkpoints (`synchronous=NORMAL`, a usual choice with a WAL).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from tests.store.faults.test_power_loss import LIVES, survive

from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBJECTS: Final = {"rung": "FULL", "synchronous=NORMAL": "NORMAL"}
SEEDS: Final = 200


class Losses(TypedDict):
    """What became of the journals of one subject. `damaged`: not readable, or not consistent."""

    cuts: int
    acknowledged: int
    lost: int
    journals_with_losses: int
    damaged: int


def measure(synchronous: str, seeds: Sequence[int]) -> Losses:
    """Cut the power several times for each seed, and count what is gone."""
    found = Losses(cuts=0, acknowledged=0, lost=0, journals_with_losses=0, damaged=0)
    for seed in seeds:
        found["cuts"] += LIVES
        with tempfile.TemporaryDirectory() as folder:
            try:
                acknowledged, lost = survive(seed, Path(folder), synchronous=synchronous)
            except (AssertionError, RungError):
                found["damaged"] += 1
                continue
        found["acknowledged"] += acknowledged
        found["lost"] += lost
        found["journals_with_losses"] += lost > 0
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each subject; return 1 if ours lost anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"journals, each with {LIVES} power cuts")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures to this file")
    options = parser.parse_args(arguments)
    found = {name: measure(synchronous, range(options.seeds)) for name, synchronous in SUBJECTS.items()}
    for name, one in found.items():
        print(
            f"{name:<30} {one['cuts']} power cuts: {one['lost']} of {one['acknowledged']} acknowledged events lost, "
            f"in {one['journals_with_losses']} of {options.seeds} journals; {one['damaged']} damaged"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(bool(found["rung"]["lost"] or found["rung"]["damaged"]))


if __name__ == "__main__":
    sys.exit(main())
