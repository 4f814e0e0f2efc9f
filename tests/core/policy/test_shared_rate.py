"""Rates and retry tokens of a fleet: slices of a shared limit, and the process's own without one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.core.policy.shared_rate import IDLE_SECONDS, SharedRate
from rung.core.policy.shared_retry_budget import SharedRetryBudget
from rung.core.policy.slices import SharedUse, exchange, unused


def share(use: SharedUse, name: str, rate: SharedRate | SharedRetryBudget, now: float) -> SharedUse:
    """Exchange with the shared limit."""
    use, lease = exchange(rate.limit, use, name, rate.request(now), now)
    rate.apply(lease)
    return use


def test_a_rate_of_one_process() -> None:
    """Alone, a process may make a minute's calls at once, and then one in each part of a minute."""
    rate = SharedRate(30.0)
    rate.own(0.0)
    assert rate.is_own
    assert [rate.take(0.0) for _ in range(31)] == [True] * 30 + [False]
    assert rate.seconds_per_call() == 2.0
    assert not rate.take(1.9)
    assert rate.take(2.0)


@given(st.floats(1.0, 6_000.0), st.lists(st.floats(2.0, 1_000.0), max_size=40))
def test_calls_within_the_rate_are_never_refused(per_minute: float, gaps: list[float]) -> None:
    """Alone, a process that makes at most half of the calls that are allowed may make each of them, whatever its pauses."""
    rate, now = SharedRate(per_minute), 0.0
    rate.own(now)
    for gap in gaps:
        now += gap * rate.seconds_per_call()
        assert rate.take(now)


def test_a_rate_of_two_processes() -> None:
    """Together, two processes make no more calls than the rate allows; one that does not call leaves all to the other."""
    one, other = SharedRate(30.0), SharedRate(30.0)
    use = unused(one.limit, 0.0)
    taken = 0
    for now in range(10):
        taken += sum(rate.take(float(now)) for rate in (one, other) for _ in range(10))
        use = share(share(use, "a", one, now), "b", other, now)
    assert 25 <= taken <= 30 + 10 * 0.5
    assert one.is_exhausted or other.is_exhausted
    for second in range(10, 200):
        use = share(share(use, "a", one, second), "b", other, second)
    assert not one.is_used(200.0)
    assert use.out == 0.0
    got = 0
    for second in range(200, 230):
        got += sum(one.take(float(second)) for _ in range(10))
        use = share(use, "a", one, float(second))
    assert got >= 30
    assert not other.is_used(200.0 + IDLE_SECONDS)


def test_a_rate_that_changes() -> None:
    """A changed rate holds for the slices that are leased from then on."""
    rate = SharedRate(10.0)
    rate.own(0.0)
    rate.per_minute = 2.0
    assert [rate.take(0.0) for _ in range(3)] == [True, True, False]


def test_retry_tokens_of_two_processes() -> None:
    """Retries of two processes are limited together; calls of one bring tokens for both."""
    settings = {"capacity": 100, "price": 5, "initial": 40, "per_call": 2, "per_second": 0}
    one, other = SharedRetryBudget(**settings), SharedRetryBudget(**settings)
    use = share(share(unused(one.limit, 0.0), "a", one, 0.0), "b", other, 0.0)
    assert one.affords()
    assert one.tokens + other.tokens <= 40
    retries = 0
    for now in range(1, 30):
        while one.affords(float(now)):
            one.charge()
            retries += 1
        use = share(share(use, "a", one, now), "b", other, now)
    assert 5 <= retries <= 8
    assert not one.affords()
    for _ in range(30):
        other.credit()
    for now in range(30, 40):
        use = share(share(use, "a", one, now), "b", other, now)
    assert one.affords()
    assert one.tokens + other.tokens <= 100


def test_retry_tokens_have_a_capacity() -> None:
    """Calls fill a slice up to the capacity, and what was taken can be returned."""
    budget = SharedRetryBudget(10, 5, initial=5)
    for _ in range(20):
        budget.credit()
    assert (budget.tokens, budget.is_below_capacity) == (10, False)
    budget.charge()
    assert (budget.tokens, budget.is_below_capacity) == (5, True)
    budget.credit(5)
    assert budget.tokens == 10
