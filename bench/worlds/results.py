"""Play every policy on every task of a world, and average the plays, with intervals from resampled tasks."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.worlds.play import Play, Policy
    from bench.worlds.world import Signature, Task, World

INTERVAL: Final = 0.95


class Sums(NamedTuple):
    """Weighted sums of one cluster of tasks under one policy. `dead`: on tasks that nobody ever solved."""

    weight: float
    solved: float
    attempts: float
    seconds: float
    unknown: float
    last_turns: float
    dead_weight: float
    dead_attempts: float
    dead_unknown: float


Ratio: TypeAlias = "Callable[[Sums], float | None]"
RATIOS: Final[Mapping[str, Ratio]] = {
    "success": lambda s: s.solved / s.weight,
    "attempts": lambda s: s.attempts / s.weight,
    "seconds": lambda s: s.seconds / s.weight,
    "waste": lambda s: s.dead_attempts / s.dead_weight if s.dead_weight else None,
    "unknown": lambda s: s.unknown / s.weight,
    "last_turns": lambda s: s.last_turns / s.weight,
    "dead_unknown": lambda s: s.dead_unknown / s.dead_weight if s.dead_weight else None,
}
# Dollars of the agent are recorded for no single attempt of any world.
WITH_INTERVAL: Final = ("success", "attempts", "seconds", "dollars", "waste")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean with its interval; None: not recorded."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row: a policy in a world. Without figures if the world cannot play the policy.

    `waste` is the number of attempts for each task that nobody ever solved. `same_as`: rows with the same plays.
    """

    policy: str
    owner: str
    is_default: bool
    figures: Mapping[str, Figure | None]
    unknown: float = 0.0
    dead_unknown: float = 0.0
    last_turns: float = 0.0
    same_as: tuple[str, ...] = ()

    @property
    def is_played(self) -> bool:
        """Whether the world can play the policy."""
        return bool(self.figures)

    def mean(self, name: str) -> float | None:
        """Return the mean of a figure; None if it is not recorded."""
        figure = self.figures.get(name)
        return None if figure is None else figure.mean

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return asdict(self)


Plays: TypeAlias = "list[Play]"


def results(world: World, policies: Sequence[Policy], *, seed: int, rounds: int, resamples: int) -> list[Result]:
    """Return one row for each policy; rows with the same plays are one row."""
    played = play_all(world, policies, seed=seed, rounds=rounds)
    rows: dict[Any, list[Policy]] = defaultdict(list)
    for policy in policies:
        key = tuple(played[policy.name]) if policy.player is not None and policy.owner == "rung" else policy.name
        rows[key].append(policy)
    firsts = [min(same, key=lambda policy: not policy.is_default) for same in rows.values()]
    figures = _figures(world, {policy.name: played[policy.name] for policy in firsts if policy.player}, seed, resamples)
    found = []
    for first, same in zip(firsts, rows.values(), strict=True):
        means = figures.get(first.name, {})
        found.append(
            Result(
                policy=first.name,
                owner=first.owner,
                is_default=first.is_default,
                figures={name: means.get(name) for name in WITH_INTERVAL} if means else {},
                same_as=tuple(policy.name for policy in same if policy is not first),
                **{name: _mean(means, name) for name in ("unknown", "dead_unknown", "last_turns")},
            )
        )
    return found


def _mean(means: Mapping[str, Figure | None], name: str) -> float:
    figure = means.get(name)
    return 0.0 if figure is None else figure.mean


def play_all(world: World, policies: Sequence[Policy], *, seed: int, rounds: int) -> dict[str, Plays]:
    """Return the plays of each policy, task by task and round by round; every policy meets the same draws."""
    players = [(policy.name, policy.player) for policy in policies if policy.player is not None]
    played: dict[str, Plays] = {policy.name: [] for policy in policies}
    known: dict[tuple[str, Signature], Play] = {}
    for task in world.tasks:
        for number in range(rounds if world.rounds_differ else 1):
            tape = world.tape(task, seed, number)
            signature = tape.signature
            for name, player in players:
                if (name, signature) not in known:
                    known[name, signature] = player(tape)
                played[name].append(known[name, signature])
    return played


def _figures(
    world: World, played: Mapping[str, Plays], seed: int, resamples: int
) -> dict[str, dict[str, Figure | None]]:
    """Return the figures of each policy. The same resampled clusters are used for all of them."""
    clusters: dict[str, list[int]] = defaultdict(list)
    for index, task in enumerate(world.tasks):
        clusters[task.cluster or task.name].append(index)
    sums = {name: [_sums(world.tasks, plays, group) for group in clusters.values()] for name, plays in played.items()}
    columns = list(zip(*sums.values(), strict=True))  # equal clusters are counted instead of listed
    counts = Counter(columns)
    distinct = list(counts)
    chance = random.Random(f"{seed} {world.name} resamples")
    drawn = [
        Counter(chance.choices(range(len(distinct)), list(counts.values()), k=len(columns))) for _ in range(resamples)
    ]
    whole = Counter({index: counts[column] for index, column in enumerate(distinct)})
    found = {}
    for place, (name, plays) in enumerate(played.items()):
        own = [column[place] for column in distinct]
        samples = [_total(own, times) for times in (whole, *drawn)]
        is_timed = all(play.seconds is not None for play in plays)
        found[name] = {
            figure: None if figure == "seconds" and not is_timed else _figure(ratio, samples)
            for figure, ratio in RATIOS.items()
        }
    return found


def _sums(tasks: Sequence[Task], plays: Plays, group: Sequence[int]) -> Sums:
    rounds = len(plays) // len(tasks)
    total = [0.0] * len(Sums._fields)
    for index in group:
        task, mine = tasks[index], plays[index * rounds : (index + 1) * rounds]
        share = task.weight / rounds
        dead = share if task.solvable is False else 0.0
        for play in mine:
            values = (
                share, share * play.solved, share * play.attempts, share * (play.seconds or 0.0), share * play.unknown,
                share * play.last_turns, dead, dead * play.attempts, dead * play.unknown,
            )  # fmt: skip
            total = [one + other for one, other in zip(total, values, strict=True)]
    return Sums(*(round(each, 9) for each in total))


def _total(clusters: Sequence[Sums], times: Counter[int]) -> Sums:
    columns = list(zip(*(clusters[index] for index in times), strict=True))
    counts = list(times.values())
    return Sums(*(sum(count * value for count, value in zip(counts, column, strict=True)) for column in columns))


def _figure(ratio: Ratio, samples: Sequence[Sums]) -> Figure | None:
    mean = ratio(samples[0])
    values = sorted(value for value in map(ratio, samples[1:]) if value is not None)
    if mean is None:
        return None
    if not values:
        return Figure(mean=mean, low=mean, high=mean)
    tail = int((1 - INTERVAL) / 2 * len(values))
    return Figure(mean=mean, low=values[tail], high=values[-1 - tail])
