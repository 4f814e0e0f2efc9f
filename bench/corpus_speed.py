"""How fast classifiers are, on one core and on these rows: what each is handed is made beforehand.

The time of this process counts, not that of a clock: what else the machine does is no part of the figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import process_time_ns
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpus_peers import Classifier
    from corpus_rows import Row

ROUNDS: Final = 15  # a round takes milliseconds: one of them falls between what else the machine does
_CALLS: Final = 10  # of one row in a block: a single fast call is lost in the clock's own cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Classifications per second, in the first round and the best, and a row's median µs for each form."""

    rows: int
    first: float
    best: float
    medians: dict[str, float]


def measure(classifier: Classifier, rows: list[Row]) -> Speed:
    """Time whole rounds, then each row alone."""
    mine = [row for row in rows if row.form in classifier.forms]
    troubles = [classifier.prepare(row.seen) for row in mine]
    rates = [len(mine) * 1e9 / _round(classifier.judge, troubles) for _ in range(ROUNDS)]
    alone: dict[str, list[float]] = {}
    for row, trouble in zip(mine, troubles, strict=True):
        best = min(_round(classifier.judge, [trouble] * _CALLS) for _ in range(ROUNDS))
        alone.setdefault(row.form, []).append(best / _CALLS / 1e3)
    medians = {form: median(times) for form, times in alone.items()}
    return Speed(rows=len(mine), first=rates[0], best=max(rates), medians=medians)


def _round(judge: Callable[[Any], Any], troubles: list[Any]) -> int:
    start = process_time_ns()
    for trouble in troubles:
        judge(trouble)
    return max(1, process_time_ns() - start)
