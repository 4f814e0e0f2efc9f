"""Play: what became of one task under one policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bench.worlds.world import NONE, Tape, Trial

if TYPE_CHECKING:
    from bench.worlds.world import World


class Play(NamedTuple):
    """The end of one task. `unknown`: attempts that were wanted and not recorded. `last_turns`: turns that only report."""

    solved: bool
    attempts: int
    seconds: float | None  # of attempts and waits; None if a duration was not recorded
    unknown: int = 0
    last_turns: int = 0


class Attempts:
    """Makes recorded attempts, and counts them."""

    def __init__(self, tape: Tape) -> None:
        tape.rewind()
        self.tape = tape
        self.count = 0
        self.seconds: float | None = 0.0
        self.solved = False

    def make(self, system: str, told: str = NONE, limit: float | None = None) -> Trial:
        """Make an attempt; one that lasts longer than `limit` is cut off there, and fails."""
        trial = self.tape.draw(system, told)
        if limit is not None and trial.seconds is not None and trial.seconds > limit:
            trial = Trial(False, limit)
        self.count += 1
        self.solved = self.solved or trial.success
        self.wait(trial.seconds)
        return trial

    def wait(self, seconds: float | None) -> None:
        """Add to the time that the task takes; None: it is not recorded."""
        self.seconds = None if seconds is None or self.seconds is None else self.seconds + seconds

    def play(self, unknown: int = 0, last_turns: int = 0) -> Play:
        """Return what became of the task."""
        return Play(self.solved, self.count, self.seconds, unknown, last_turns)


Player: TypeAlias = Callable[[Tape], Play]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One row of the table: a policy with the systems that it may use. `player` is None if the world cannot play it."""

    name: str
    owner: str  # rung, or the name of another
    player: Player | None
    is_default: bool = False


def dash(world: World, *, repeats: bool = False, systems: int = 1, ranked: bool = False) -> bool:
    """Return whether the world lacks what a policy needs: plain repeats, so many systems, an expensive one."""
    return (repeats and not world.has_repeats) or len(world.systems) < systems or (ranked and not world.is_ranked)
