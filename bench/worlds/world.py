"""A world: tasks with their recorded trials, and the tape of draws that every policy meets in the same order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE: Final = "none"  # the attempt was told nothing of the one before
ROLES: Final = ("first", "second", "third")  # of systems that are drawn at random


class Trial(NamedTuple):
    """One recorded attempt. `seconds` is None where no duration was recorded."""

    success: bool
    seconds: float | None = None


Cell: TypeAlias = tuple[str, str]  # a system, and what its attempt was told of the one before
Signature: TypeAlias = tuple[tuple[Cell, tuple[Trial, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task with its recorded trials, in the order of their numbers.

    `weight` counts the equal tasks that it stands for. `cluster` is resampled as one; by default the task itself.
    `solvable` says whether anybody ever solved it, in any recorded trial; None: not recorded.
    """

    name: str
    trials: Mapping[Cell, tuple[Trial, ...]]
    solvable: bool | None
    weight: float = 1.0
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Tasks, and the systems of one deployment: the one that is asked first, then those to fall back to.

    `shuffled`: trials are exchangeable repeats and drawn without replacement; otherwise they are walked in order.
    `is_ranked`: the last system is the most expensive one. `pool`: systems that each round draws three of, as first,
    second and third.
    """

    name: str
    about: str
    tasks: tuple[Task, ...]
    systems: tuple[str, ...]
    shuffled: bool = False
    is_ranked: bool = False
    pool: tuple[str, ...] = ()
    left_out: int = 0  # tasks whose first try differs between the arms
    told: frozenset[str] = field(init=False)
    has_repeats: bool = field(init=False)  # plain repeats of the first system are recorded

    def __post_init__(self) -> None:
        cells = {cell for task in self.tasks for cell in task.trials}
        object.__setattr__(self, "told", frozenset(told for _, told in cells))
        repeated = any(
            len(trials) > 1 and cell[1] == NONE for task in self.tasks for cell, trials in task.trials.items()
        )
        object.__setattr__(self, "has_repeats", repeated)

    @property
    def rounds_differ(self) -> bool:
        """Whether another round draws other trials."""
        return self.shuffled or bool(self.pool)

    def tape(self, task: Task, seed: int, number: int) -> Tape:
        """Return the draws of a task in one round; equal for every policy."""
        if not self.rounds_differ:
            return Tape(self, dict(task.trials))
        chance = random.Random(f"{seed} {self.name} {number} {task.name}")
        drawn = {cell: tuple(chance.sample(trials, len(trials))) for cell, trials in sorted(task.trials.items())}
        if self.pool:
            names = random.Random(f"{seed} {self.name} {number}").sample(self.pool, len(ROLES))
            drawn = {(role, NONE): drawn[name, NONE] for role, name in zip(ROLES, names, strict=True)}
        return Tape(self, {cell: trials for cell, trials in drawn.items() if cell[0] in self.systems})


class Unrecorded(Exception):  # not an error: the record ends here
    """The policy wants an attempt that nobody recorded."""


class Tape:
    """The draws of one task in one round. Each policy reads it from the beginning."""

    def __init__(self, world: World, trials: Mapping[Cell, tuple[Trial, ...]]) -> None:
        self.world = world
        self._trials = trials
        self._used: dict[Cell, int] = {}

    @property
    def signature(self) -> Signature:
        """Return everything that a policy can meet: two tapes with the same signature give the same play."""
        return tuple(sorted(self._trials.items()))

    def rewind(self) -> None:
        """Start again for the next policy."""
        self._used = {}

    def has(self, system: str, told: str) -> bool:
        """Return whether another trial is recorded."""
        return self._used.get((system, told), 0) < len(self._trials.get((system, told), ()))

    def draw(self, system: str, told: str = NONE) -> Trial:
        """Return the next trial; raise Unrecorded if there is none."""
        if not self.has(system, told):
            raise Unrecorded(f"no further trial of {system}, told {told}")
        used = self._used.get((system, told), 0)
        self._used[system, told] = used + 1
        return self._trials[system, told][used]
