"""Learn from recorded outcomes which rungs of a ladder to leave out. A pure function of counts; the ladder stays in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.events import LearnedSkip
from rung.core.domain.failures import Kind, short_hash
from rung.core.recovery.ladder_path import ladder_path
from rung.core.recovery.success_rate import SuccessRate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

_HASH_BYTES: Final = 4


class RungCount(NamedTuple):
    """Tries of a rung of one project and ladder, directly after failures of a kind. `number`: 1 is the first in an incident."""

    model: str  # of the incident's first request
    kind: str
    rung: str
    number: int
    tried: int
    succeeded: int


def learned_skips(counts: Iterable[RungCount], policy: Policy, kind: Kind, model: str) -> tuple[LearnedSkip, ...]:
    """Return the tries that are left out after failures of this kind, lowest rung first.

    The model's own counts decide, or those of all models where the model has too few. The last rung of the path always stays.
    """
    of_kind = [count for count in counts if count.kind == kind]
    scopes = [[count for count in of_kind if count.model == model], of_kind] if model else [of_kind]
    path = ladder_path(policy, kind)
    skips: list[LearnedSkip] = []
    for index in reversed(path[:-1]):
        instead = next((higher for higher in path if higher > index and not _left_out(skips, higher)), path[-1])
        skip = next((found for scope in scopes if (found := _compare(scope, policy, index, instead)) is not None), None)
        if skip is not None and skip.number:
            skips.insert(0, skip)
    return tuple(skips)


def _left_out(skips: Sequence[LearnedSkip], index: int) -> bool:
    """Whether all tries of a rung are left out."""
    return any(skip.rung == index and skip.number == 1 for skip in skips)


def _compare(counts: Sequence[RungCount], policy: Policy, index: int, instead: int) -> LearnedSkip | None:
    """Return the first try of a rung that is left out; number 0: none is. None: too few tries to say."""
    rung, other = policy.ladder.rungs[index], policy.ladder.rungs[instead]
    least = policy.learn.min_attempts
    first, next_first = (_rate(counts, name, lambda number: number == 1) for name in (rung.name, other.name))
    if first.tried < least or next_first.tried < least:
        return None
    for number in range(1, rung.tries + 1):
        tail = _rate(counts, rung.name, lambda each, number=number: each >= number)  # type: ignore[misc]  # a default binds it
        if tail.tried >= least and tail.is_below(next_first) and (number > 1 or first.is_below(next_first)):
            return LearnedSkip(index, number, instead, _reason(tail, other.name, next_first))
    return LearnedSkip(index, 0, instead, "")


def _rate(counts: Sequence[RungCount], rung: str, is_counted: Callable[[int], bool]) -> SuccessRate:
    chosen = [count for count in counts if count.rung == rung and is_counted(count.number)]
    return SuccessRate(sum(count.succeeded for count in chosen), sum(count.tried for count in chosen))


def _reason(rate: SuccessRate, other: str, instead: SuccessRate) -> str:
    return f"learned: {_text(rate)} helped, of {other} {_text(instead)}"


def _text(rate: SuccessRate) -> str:
    return f"{rate.succeeded} of {rate.tried} tries ({100 * rate.low:.0f} to {100 * rate.high:.0f} %)"


def explores(incident: str, share: float) -> bool:
    """Whether an incident takes the ladder's own order: a fixed choice by its id, for this share of all incidents."""
    return int(short_hash(f"explore {incident}", _HASH_BYTES), 16) < share * 256**_HASH_BYTES


def skip_at(incident: Incident, failure: Failure, policy: Policy, index: int) -> LearnedSkip | None:
    """Return why the next try of a rung is left out; None if it is not."""
    rung = policy.ladder.rungs[index]
    used = (incident.retries if rung.is_retry else incident.tries_used).get(index, 0)
    for skip in incident.learned.get(failure.kind.value, ()):
        if skip.rung == index and index < skip.instead < len(policy.ladder.rungs) and used + 1 >= skip.number:
            return skip
    return None
