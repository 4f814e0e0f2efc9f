"""Speed of classifiers on one core, on the given rows; inputs are prepared in advance.

Measured in CPU time. rung caches results by evidence, so both figures are printed: first sight, and again.
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

ROUNDS: Final = 15  # the best round is the least disturbed by other processes
_CALLS_PER_BLOCK: Final = 10  # a single fast call is below the resolution of the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Classifications per second, uncached and cached, and the uncached median µs per row by form."""

    rows: int
    first: float
    again: float
    medians: dict[str, float]


def measure(classifier: Classifier, rows: list[Row]) -> Speed:
    """Time whole rounds, then each row by itself."""
    supported = [row for row in rows if row.form in classifier.forms]
    inputs = [classifier.prepare(row.seen) for row in supported]
    first = max(_rate(classifier, inputs, anew=True) for _ in range(ROUNDS))
    again = max(_rate(classifier, inputs, anew=False) for _ in range(ROUNDS))
    alone: dict[str, list[float]] = {}
    for row, prepared in zip(supported, inputs, strict=True):
        best = min(_row_nanoseconds(classifier, prepared) for _ in range(ROUNDS))
        alone.setdefault(row.form, []).append(best / 1e3)
    medians = {form: median(times) for form, times in alone.items()}
    return Speed(rows=len(supported), first=first, again=again, medians=medians)


def _rate(classifier: Classifier, inputs: list[Any], *, anew: bool) -> float:
    if anew:
        clear_cache()
    return len(inputs) * 1e9 / _round_nanoseconds(classifier.judge, inputs)


def _row_nanoseconds(classifier: Classifier, prepared: Any) -> float:
    """Return the uncached nanoseconds of one row."""
    spent = 0
    for _ in range(_CALLS_PER_BLOCK):
        clear_cache()
        spent += _round_nanoseconds(classifier.judge, [prepared])
    return spent / _CALLS_PER_BLOCK


def _round_nanoseconds(judge: Callable[[Any], Any], inputs: list[Any]) -> int:
    start = process_time_ns()
    for prepared in inputs:
        judge(prepared)
    return max(1, process_time_ns() - start)
