"""Search small ladders: what a failure by result should enter, and how often, judged in every world at once.

A candidate is the `task` ladder with other tries of nudge, replan and fallback, with or without its time limits.
`other first` hands over to another system at the first failure, where there is one (`escalate_after = 0`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.worlds.__main__ import SEED, parse_options, worlds_of
from bench.worlds.goal import Goal, goal
from bench.worlds.peers import peers
from bench.worlds.play import Policy
from bench.worlds.records import BadRecord
from bench.worlds.results import Result, results
from bench.worlds.rung_policies import rung_player
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.core.policy.templates import preset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.world import World
    from rung.core.policy.policy import Policy as RungPolicy

RESAMPLES: Final = 0  # means only


class Candidate(NamedTuple):
    """A small ladder."""

    nudges: int
    replans: int
    fallbacks: int
    other_first: bool
    timed: bool

    def __str__(self) -> str:
        order = "other first" if self.other_first else "told first"
        limits = "" if self.timed else ", no time limits"
        return f"nudge {self.nudges}, replan {self.replans}, fallback {self.fallbacks}, {order}{limits}"


def candidates() -> Iterator[Candidate]:
    """Yield every candidate."""
    for values in product(range(4), range(3), range(3), (False, True), (True, False)):
        candidate = Candidate(*values)
        if candidate.fallbacks or not candidate.other_first:
            yield candidate


def ladder_of(candidate: Candidate) -> RungPolicy:
    """Return the candidate as a policy."""
    tries = {
        Action.NUDGE: candidate.nudges,
        Action.REPLAN: candidate.replans,
        Action.FALLBACK: candidate.fallbacks,
    }
    base = preset("task")
    rungs = tuple(
        replace(rung, tries=tries[rung.action], seconds=rung.seconds if candidate.timed else None)
        if rung.action in tries
        else rung
        for rung in base.ladder.rungs
    )
    entry = {**base.ladder.entry, Kind.TEST_FAILURE: "nudge"}
    ladder = replace(base.ladder, rungs=rungs, entry=entry)
    return base.replace(ladder=ladder, escalate_after=0 if candidate.other_first else None)


def judge(world: World, rounds: int) -> dict[Candidate, tuple[Result, Goal]]:
    """Return the row and the goal of each candidate in a world."""
    wanted = list(candidates())
    ours = [Policy(name=str(each), owner="rung", player=rung_player(ladder_of(each), world.systems)) for each in wanted]
    rows = results(world, [*ours, *peers(world)], seed=SEED, rounds=rounds, resamples=RESAMPLES)
    others = [row for row in rows if row.owner != "rung"]
    by_name = {name: row for row in rows for name in (row.policy, *row.same_as)}
    judged = {}
    for each in wanted:
        row = replace(by_name[str(each)], is_default=True)
        judged[each] = (row, goal([row, *others]))
    return judged


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the candidates, best first: worlds in which the goal holds, then the mean success."""
    options = parse_options(arguments)
    try:
        worlds = worlds_of(options)
    except BadRecord as error:
        print(f"worlds: {error}; name the folder, or set RUNG_WORLDS", file=sys.stderr)
        return 2
    judged = [judge(world, options.rounds) for world in worlds]
    lines = []
    for each in candidates():
        found = [one[each] for one in judged]
        held = sum(met.holds for _, met in found)
        on = sum(not met.better for _, met in found)
        success = sum(row.mean("success") or 0.0 for row, _ in found) / len(found)
        attempts = sum((row.mean("attempts") or 0.0) + row.unknown for row, _ in found) / len(found)
        waste = max((met.waste for _, met in found if met.waste is not None), default=0.0)
        lines.append((held, on, success, attempts, waste, each))
    for held, on, success, attempts, waste, each in sorted(lines, key=lambda line: line[:3], reverse=True):
        print(
            f"goal in {held:2} of {len(worlds)}, frontier in {on:2}; success {success:.3f} at {attempts:.2f}, waste at most {waste:.0%}: {each}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
