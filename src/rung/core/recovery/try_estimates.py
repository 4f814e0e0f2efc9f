"""Savings of leaving out tries, estimated from the recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rung.core.recovery.success_rate import SuccessRate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rung.core.recovery.rung_tries import RungTry, TriedIncident


class Saving(NamedTuple):
    """An estimate with the ends of its interval of 95 %; a negative value is an increase."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingEstimate:
    """Savings of a change, and the recoveries that it puts at risk."""

    attempts: Saving
    seconds: Saving
    dollars: Saving
    recoveries_lost: Saving  # of those that the tries left out had achieved

    @property
    def pays(self) -> bool:
        """Whether attempts are surely saved, and neither time nor money is expected to be spent instead."""
        return self.attempts.low > 0 and self.seconds.expected >= 0 and self.dollars.expected >= 0


class _Amounts(NamedTuple):
    attempts: float
    seconds: float
    dollars: float


def rate_of(tries: Iterable[RungTry]) -> SuccessRate:
    """Return the success rate of tries."""
    results = [one.succeeded for one in tries]
    return SuccessRate(sum(results), len(results))


def estimate_saving(
    incidents: Sequence[TriedIncident], left_out: Callable[[RungTry], bool], later: Callable[[RungTry], bool]
) -> SavingEstimate:
    """Estimate what the incidents would have saved without some tries.

    An incident that such a try had fixed goes on with the later rungs instead. It is assumed to cost there what the recorded
    incidents cost that reached those rungs, and to recover as often.
    """
    tries = [one for incident in incidents for one in incident.tries if left_out(one)]
    reached = [incident for incident in incidents if any(map(later, incident.tries))]
    spent, more = _total(tries), _total(one for incident in reached for one in incident.tries if later(one))
    rate = rate_of(tries)
    fixed_later = SuccessRate(sum(any(map(_fixes(later), each.tries)) for each in reached), len(reached))

    def saving(total: float, later_total: float) -> Saving:
        each = later_total / len(reached) if reached else 0.0
        return Saving(*(total - rate.tried * share * each for share in (rate.share, rate.high, rate.low)))

    lost = (1 - fixed_later.share, 1 - fixed_later.high, 1 - fixed_later.low)
    return SavingEstimate(
        attempts=saving(spent.attempts, more.attempts),
        seconds=saving(spent.seconds, more.seconds),
        dollars=saving(spent.dollars, more.dollars),
        recoveries_lost=Saving(*(rate.succeeded * share for share in lost)),
    )


def _fixes(is_chosen: Callable[[RungTry], bool]) -> Callable[[RungTry], bool]:
    return lambda one: one.succeeded and is_chosen(one)


def _total(tries: Iterable[RungTry]) -> _Amounts:
    made = list(tries)
    return _Amounts(len(made), sum(one.seconds for one in made), sum(one.dollars for one in made))
