"""How fast classifiers are, on one core and on these rows: what each is handed is made beforehand.

The time of this process counts, not that of a clock. What was seen before is remembered by its evidence: both figures
are printed, at first sight and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import process_time_ns
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.classifier import clear_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.corpus.peers import Classifier
    from bench.corpus.rows import Row

ROUNDS: Final = 15  # a round takes milliseconds: one of them falls between what else the machine does
_CALLS: Final = 10  # of one row in a block: a single fast call is lost in the clock's own cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Classifications per second, at first sight and when seen before, and a row's median µs at first sight by form."""

    rows: int
    first: float
    again: float
    medians: dict[str, float]


def measure(classifier: Classifier, rows: list[Row]) -> Speed:
    """Time whole rounds, then each row alone."""
    mine = [row for row in rows if row.form in classifier.forms]
    troubles = [classifier.prepare(row.seen) for row in mine]
    first = max(_rate(classifier, troubles, anew=True) for _ in range(ROUNDS))
    again = max(_rate(classifier, troubles, anew=False) for _ in range(ROUNDS))
    alone: dict[str, list[float]] = {}
    for row, trouble in zip(mine, troubles, strict=True):
        best = min(_alone(classifier, trouble) for _ in range(ROUNDS))
        alone.setdefault(row.form, []).append(best / 1e3)
    medians = {form: median(times) for form, times in alone.items()}
    return Speed(rows=len(mine), first=first, again=again, medians=medians)


def _rate(classifier: Classifier, troubles: list[Any], *, anew: bool) -> float:
    if anew:
        clear_cache()
    return len(troubles) * 1e9 / _round(classifier.judge, troubles)


def _alone(classifier: Classifier, trouble: Any) -> float:
    """Nanoseconds of one, seen for the first time each time."""
    spent = 0
    for _ in range(_CALLS):
        clear_cache()
        spent += _round(classifier.judge, [trouble])
    return spent / _CALLS


def _round(judge: Callable[[Any], Any], troubles: list[Any]) -> int:
    start = process_time_ns()
    for trouble in troubles:
        judge(trouble)
    return max(1, process_time_ns() - start)
