"""Caps of an incident, and the retry budget of a process."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.budget import Budget, RetryBudget

STEPS = st.lists(st.sampled_from(["retry", "call"]), max_size=80)


def test_budget_defaults() -> None:
    """Without a word an incident has 20 attempts and an hour, and no cap on dollars."""
    assert (Budget().attempts, Budget().seconds, Budget().dollars) == (20, 3600, None)


def test_budget_without_caps() -> None:
    """None, and a budget of nothing at all, are allowed; attempts begin at one."""
    assert Budget(attempts=None, seconds=None, dollars=None) == Budget(attempts=None, seconds=None)
    assert Budget(attempts=1, seconds=0, dollars=0).seconds == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attempts", 0),
        ("attempts", -1),
        ("attempts", 2.5),
        ("attempts", math.nan),
        ("attempts", True),
        ("attempts", "3"),
        ("seconds", -1),
        ("seconds", math.nan),
        ("seconds", math.inf),
        ("seconds", 10**400),
        ("seconds", False),
        ("dollars", -0.01),
        ("dollars", math.nan),
        ("dollars", "free"),
    ],
)
def test_what_a_budget_cannot_be(key: str, value: Any) -> None:
    """A cap that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        Budget(**{key: value})
    assert raised.value.key == f"budget.{key}"
    assert raised.value.value is value


@given(st.integers(1, 200), STEPS)
def test_tokens_stay_in_the_bucket(capacity: int, steps: list[str]) -> None:
    """Whatever is charged and given back, the tokens are never negative and never more than the bucket holds."""
    budget = RetryBudget(capacity)
    for step in steps:
        before = budget.tokens
        if step == "call":
            budget.credit()
            assert budget.tokens == min(capacity, before + 2)
        else:
            afforded = budget.affords()
            budget.charge()
            assert budget.tokens == (before - budget.price if afforded else 0)
        assert 0 <= budget.tokens <= capacity
        assert budget.is_below_capacity or budget.tokens == capacity


@given(st.lists(st.tuples(st.sampled_from(["retry", "call", "wait"]), st.floats(0, 10)), max_size=300))
def test_retries_are_bounded_by_calls_and_time(steps: list[tuple[str, float]]) -> None:
    """In any order of calls, failures and time, retries are at most the reserve, 40 % of the calls and one per second."""
    budget, now, calls, retries = RetryBudget(), 0.0, 0, 0
    budget.affords(now)
    for step, seconds in steps:
        if step == "wait":
            now += seconds
        elif step == "call":
            calls += 1
            budget.credit()
        elif budget.affords(now):
            retries += 1
            budget.charge()
    assert retries <= 15 + 0.4 * calls + now + 1e-6


def test_two_hundred_calls_at_once_never_exceed_one_and_a_half_times_the_load() -> None:
    """A burst of 200 calls has 95 retries, whether the failures or the successes end first."""
    budget = RetryBudget()
    for _ in range(200):
        budget.credit()
    retries = 0
    while budget.affords(0.0):
        budget.charge()
        retries += 1
    assert retries == 95
    assert not budget.affords(0.5)
    assert budget.affords(1.0)  # one per second


def test_a_clock_that_stands_still_or_goes_back_adds_nothing() -> None:
    """The reserve is refilled by time that has passed, and not above its size."""
    budget = RetryBudget(initial=5)
    budget.affords(10.0)
    budget.charge()
    assert [budget.affords(at) for at in (10.0, 9.0, 9.5, 10.0)] == [False, False, False, True]
    assert budget.affords(1000.0)
    assert budget.tokens == 5


@pytest.mark.parametrize("capacity", [0, -5, 1.5, math.nan, math.inf, True, "500", None])
def test_what_a_capacity_cannot_be(capacity: Any) -> None:
    """A bucket that cannot hold a token is refused at once."""
    with pytest.raises(ConfigError) as raised:
        RetryBudget(capacity)
    assert raised.value.key == "retry_budget.capacity"


def test_a_price_of_its_own() -> None:
    """With a price every retry takes so much."""
    budget = RetryBudget(10, price=2)
    budget.charge()
    budget.charge()
    assert budget.tokens == 6
    for key, value in (("price", 0), ("per_call", 0), ("initial", 1.5), ("per_second", -1)):
        wrong: Any = {key: value}
        with pytest.raises(ConfigError, match=key):
            RetryBudget(10, **wrong)
