"""Play incidents one after the other over a journal: the ladder `task` as it is, and with `learn`.

An attempt is a draw, without replacement, from the recorded trials of a task and a system. FOLDER holds the recorded files;
default: RUNG_WORLDS, or ../shared/worlds. The data are not a part of this project. `--synthetic` plays a made-up world.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import rung
from bench.worlds.records import BadRecord, read_worlds
from bench.worlds.synthetic import synthetic_worlds
from bench.worlds.world import NONE
from rung.core.domain.events import Learned
from rung.core.domain.failures import Kind
from rung.core.recovery.success_rate import Z_95, SuccessRate
from rung.store import open_journal
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.world import Task, World
    from rung.core.policy.policy import Policy

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "worlds"
KINDS: Final = (Kind.TEST_FAILURE, Kind.GAVE_UP)  # the first enters at replan, the second at nudge
MAX_ATTEMPTS: Final = 6
SEED: Final = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Figures of the second half of the incidents, when the journal has filled."""

    world: str
    kind: str
    policy: str
    incidents: int
    success: float
    success_low: float
    success_high: float
    attempts: float
    attempts_error: float  # half of the interval of 95 %
    learned: float  # share of the incidents in which tries were left out


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the worlds and print the rows; return 2 without data."""
    options = parse_options(arguments)
    folder = options.folder or Path(os.environ.get("RUNG_WORLDS", DEFAULT))
    try:
        worlds = synthetic_worlds() if options.synthetic else read_worlds(folder)
    except BadRecord as error:
        print(f"learning: {error}; name the folder, or set RUNG_WORLDS", file=sys.stderr)
        return 2
    for row in rows(worlds, options.incidents, options.seed):
        print(json.dumps(asdict(row)) if options.json else line(row), flush=True)
    return 0


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder with the recorded files")
    parser.add_argument("--incidents", type=int, default=1_200, help="incidents for each world, kind and policy")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the draws")
    parser.add_argument("--synthetic", action="store_true", help="play a made-up world, needs no data")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    return parser.parse_args(arguments)


def rows(worlds: Sequence[World], incidents: int, seed: int) -> Iterator[Row]:
    """Yield the rows of the worlds with exchangeable trials of several systems."""
    for world in worlds:
        if not world.shuffled or world.pool or len(world.systems) < 2:  # one to fall back to
            continue
        for kind in KINDS:
            for learn in (False, True):
                yield _row(world, kind, learn, _play(world, kind, learn, incidents, seed))


def line(row: Row) -> str:
    """Return a row as text."""
    success = f"success {row.success:.3f} ({row.success_low:.3f} to {row.success_high:.3f})"
    attempts = f"attempts {row.attempts:.2f} ± {row.attempts_error:.2f}"
    return f"{row.world:32} {row.kind:13} {row.policy:6} {success}  {attempts}  learned in {row.learned:.0%}"


def _row(world: World, kind: Kind, learn: bool, outcomes: Sequence[rung.Outcome[Any]]) -> Row:
    late = outcomes[len(outcomes) // 2 :]
    rate = SuccessRate(sum(outcome.status in ("succeeded", "recovered") for outcome in late), len(late))
    attempts = [outcome.attempts for outcome in late]
    learned = [any(isinstance(event, Learned) and not event.explored for event in each.events) for each in late]
    return Row(
        world=world.name,
        kind=kind.value,
        policy="learn" if learn else "plain",
        incidents=len(late),
        success=rate.share,
        success_low=rate.low,
        success_high=rate.high,
        attempts=fmean(attempts),
        attempts_error=Z_95 * pstdev(attempts) / sqrt(len(late)),
        learned=fmean(learned),
    )


def _play(world: World, kind: Kind, learn: bool, incidents: int, seed: int) -> list[rung.Outcome[Any]]:
    """Play incidents over one journal; both policies meet the same tasks and the same order of trials."""
    policy = rung.policy(
        "task", models=list(world.systems), report="", learn=learn, attempts=MAX_ATTEMPTS, park=0, patience=0
    )
    random, clock = Random(seed), FakeClock(1e9)
    outcomes = []
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open_journal(Path(folder) / "journal.db", project="bench") as journal,
    ):
        for _ in range(incidents):
            task = random.choice(world.tasks)
            pools = {system: _shuffled(task, system, random) for system in world.systems}
            # New words in every incident: what is measured are rates of rungs, not the memory of one failure.
            error = rung.AttemptError("rejected: " + "".join(random.choices("ghijklmnop", k=12)), finding=kind)
            outcomes.append(_recover(policy, world.systems[0], error, pools, journal, clock))
            journal.flush()
            clock.advance(300)
    return outcomes


def _shuffled(task: Task, system: str, random: Random) -> list[bool]:
    trials = [trial.success for trial in task.trials.get((system, NONE), ())]
    random.shuffle(trials)
    return trials


def _recover(
    policy: Policy, first: str, error: rung.AttemptError, pools: dict[str, list[bool]], journal: Any, clock: FakeClock
) -> rung.Outcome[Any]:
    def attempt(request: rung.Request) -> str:
        pool = pools[request.model]
        if pool and pool.pop():
            return "done"
        raise error

    return rung.recover_sync(
        attempt,
        rung.Request(prompt="a task", model=first),
        policy=policy,
        journal=journal,
        clock=clock,
        retry_budget=None,
        breakers=rung.BreakerRegistry(),
    )


if __name__ == "__main__":
    sys.exit(main())
