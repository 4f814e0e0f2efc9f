"""Success rates: known values of the Wilson interval, and the probability that one rate is higher."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.recovery.success_rate import SuccessRate, probability_higher


def rates(most: int = 200) -> st.SearchStrategy[SuccessRate]:
    return st.integers(0, most).flatmap(lambda tried: st.builds(SuccessRate, st.integers(0, tried), st.just(tried)))


@pytest.mark.parametrize(
    ("succeeded", "tried", "low", "high"),
    [(0, 30, 0.0, 0.1135), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0), (9, 90, 0.0535, 0.1792)],
)
def test_known_intervals(succeeded: int, tried: int, low: float, high: float) -> None:
    """The interval of 95 % is that of published tables; without tries nothing is known."""
    rate = SuccessRate(succeeded, tried)
    assert [rate.low, rate.high] == pytest.approx([low, high], abs=1e-4)


@given(rates(), rates())
def test_intervals_and_probabilities_agree(one: SuccessRate, other: SuccessRate) -> None:
    """The share is in its interval; a rate that is surely below another is so with a high probability."""
    assert 0 <= one.low <= one.share <= one.high <= 1
    higher = probability_higher(other, one)
    assert higher + probability_higher(one, other) == pytest.approx(1, abs=1e-6)
    if one.is_below(other):
        assert higher > 0.975


def test_the_probability_is_that_of_draws() -> None:
    """The exact sum agrees with draws from the two posteriors."""
    random = Random(7)
    draws = [random.betavariate(1 + 12, 1 + 18) > random.betavariate(1 + 9, 1 + 31) for _ in range(20_000)]
    assert probability_higher(SuccessRate(12, 30), SuccessRate(9, 40)) == pytest.approx(sum(draws) / 20_000, abs=0.015)
