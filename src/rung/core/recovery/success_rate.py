"""Success rates of few trials: their confidence interval, and the probability that one is higher than another."""

from __future__ import annotations

from math import exp, lgamma, log, sqrt
from typing import Final, NamedTuple

Z_95: Final = 1.959964  # standard normal quantile of a two-sided interval of 95 %


class SuccessRate(NamedTuple):
    """Number of tries that succeeded, of those that were made."""

    succeeded: int = 0
    tried: int = 0

    @property
    def share(self) -> float:
        """Share of the tries that succeeded; 0 without tries."""
        return self.succeeded / self.tried if self.tried else 0.0

    @property
    def low(self) -> float:
        """Lower end of the Wilson interval of 95 %; 0 without tries."""
        return max(0.0, self._wilson(-1)) if self.succeeded else 0.0

    @property
    def high(self) -> float:
        """Upper end of the Wilson interval of 95 %; 1 without tries."""
        return min(1.0, self._wilson(+1)) if self.succeeded < self.tried else 1.0

    def _wilson(self, sign: int) -> float:
        n, p, z = self.tried, self.share, Z_95
        centre, spread = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return (centre + sign * spread) / (1 + z * z / n)

    def is_below(self, other: SuccessRate) -> bool:
        """Whether the interval of this rate ends below that of the other."""
        return self.high < other.low


def probability_higher(rate: SuccessRate, than: SuccessRate) -> float:
    """Return the probability that one rate is higher than another, with a uniform prior for both.

    The posteriors are Beta distributions with whole parameters, for which the sum below is exact.
    """
    a, b = than.succeeded + 1, than.tried - than.succeeded + 1
    c, d = rate.succeeded + 1, rate.tried - rate.succeeded + 1
    terms = (exp(_log_beta(a + i, b + d) - log(d + i) - _log_beta(1 + i, d) - _log_beta(a, b)) for i in range(c))
    return min(1.0, sum(terms))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
