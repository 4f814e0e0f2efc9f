"""Caps of an incident, and the retry budget of a process."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.policy.budget import Budget, RetryBudget

STEPS = st.lists(st.sampled_from(["retry", "throttled", "success"]), max_size=80)


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
        if step == "success":
            budget.credit()
            assert budget.tokens == min(capacity, before + 1)
        else:
            kind = Kind.RATE_LIMIT if step == "throttled" else Kind.TIMEOUT
            afforded = budget.affords(kind)
            budget.charge(kind)
            assert budget.tokens == (before - budget.cost(kind) if afforded else 0)
        assert 0 <= budget.tokens <= capacity
        assert budget.is_below_capacity or budget.tokens == capacity


def test_a_retry_is_afforded_until_the_bucket_is_empty() -> None:
    """A full bucket of 500 affords 35 retries, and then four successes afford one more."""
    budget = RetryBudget()
    retries = 0
    while budget.affords(Kind.SERVER_ERROR):
        budget.charge(Kind.SERVER_ERROR)
        retries += 1
    assert (retries, budget.tokens) == (35, 10)
    for _ in range(4):
        budget.credit()
    assert budget.affords(Kind.SERVER_ERROR)


def test_being_throttled_costs_less() -> None:
    """A retry after a rate limit takes fewer tokens than any other: it was told to come back."""
    budget = RetryBudget(13)
    assert budget.affords(Kind.RATE_LIMIT)
    assert {kind for kind in Kind if budget.affords(kind)} == {Kind.RATE_LIMIT}


def test_low_says_whether_a_success_has_something_to_give_back() -> None:
    """A budget is low from its first charge until it is full again."""
    budget = RetryBudget(20)
    seen = [budget.is_below_capacity]
    budget.charge(Kind.RATE_LIMIT)
    for _ in range(budget.THROTTLED_COST):
        seen.append(budget.is_below_capacity)
        budget.credit()
    assert [*seen, budget.is_below_capacity] == [False, True, True, True, True, True, False]


@pytest.mark.parametrize("capacity", [0, -5, 1.5, math.nan, math.inf, True, "500", None])
def test_what_a_capacity_cannot_be(capacity: Any) -> None:
    """A bucket that cannot hold a token is refused at once."""
    with pytest.raises(ConfigError) as raised:
        RetryBudget(capacity)
    assert raised.value.key == "retry_budget.capacity"


def test_a_price_of_its_own() -> None:
    """With a price every retry takes so much, whatever it is for."""
    budget = RetryBudget(10, price=2)
    budget.charge(Kind.RATE_LIMIT)
    budget.charge(Kind.SERVER_ERROR)
    assert budget.tokens == 6
    with pytest.raises(ConfigError, match="price"):
        RetryBudget(10, price=0)
