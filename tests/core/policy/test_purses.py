"""Purses: reservations are conserved, and calls together exceed a limit by at most one estimate."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.usage import Usage
from rung.core.policy.model_prices import ModelPrice
from rung.core.policy.purses import Purses, Reservation, refusal
from rung.core.policy.spend_estimates import token_bound
from rung.core.policy.spend_limits import SpendLimit, SpendLimits

LIMITS = SpendLimits(month=2.0).limits_for("", "", "2026-11")
NAME = LIMITS[0].id
CENTS = st.integers(0, 300).map(lambda cents: cents / 100)


def test_a_reservation_is_conserved() -> None:
    """A call's hold shrinks by what its attempts spend, is topped up only below the limit, and ends with the call."""
    purses, one, other = Purses(), Reservation(limits=LIMITS), Reservation(limits=LIMITS)
    assert purses.reserve(one, 1.5) is None
    assert purses.reserve(other, 1.5) is None  # below the limit: the last call may exceed it by its estimate
    assert purses.reserve(Reservation(limits=LIMITS), 0.1) == LIMITS[0]
    purses.settle(one, 0.5)
    assert (one.held, purses.used(NAME)) == (1.0, 3.0)
    assert purses.reserve(one, 1.0) is None  # it holds that much
    assert purses.reserve(one, 1.1) == LIMITS[0]
    purses.release(one)
    purses.release(other)
    assert (purses.reserved, purses.left(LIMITS[0])) == ({}, 1.5)


@given(st.lists(st.tuples(st.integers(0, 5), CENTS, st.floats(0, 1)), max_size=60))
def test_nobody_overspends_by_more_than_one_estimate(steps: list[tuple[int, float, float]]) -> None:
    """Whatever calls do, in any order, they spend at most the limit and one estimate; nothing stays reserved."""
    purses, calls, largest = Purses(), [Reservation(limits=LIMITS) for _ in range(6)], 0.0
    for call, estimate, share in steps:
        if purses.reserve(calls[call], estimate) is None:
            largest = max(largest, estimate)
            purses.settle(calls[call], calls[call].held * share)
        assert purses.used(NAME) <= LIMITS[0].limit + largest + 1e-6
    for reservation in calls:
        purses.release(reservation)
    assert purses.reserved == {}
    assert purses.spent.get(NAME, 0.0) <= LIMITS[0].limit + largest + 1e-6


def test_threads_reserve_one_after_another() -> None:
    """Of 50 threads that reserve a dollar of two at once, two are granted it."""
    purses, granted, ready = Purses(), [], threading.Barrier(50)

    def reserve() -> None:
        ready.wait()
        if purses.reserve(Reservation(limits=LIMITS), 1.0) is None:
            granted.append(1)

    threads = [threading.Thread(target=reserve) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 2


def test_a_refusal_says_when_a_limit_renews() -> None:
    """Months and projects renew at the start of the next month, in December of the next year."""
    december = 1_798_675_200.0  # 2026-12-31
    assert refusal(LIMITS[0], 0.0, december).endswith("it renews on 2027-01-01 (UTC)")
    assert refusal(SpendLimit("key", "", 2.0, "h"), 0.0, december).endswith("it does not renew")


def test_a_bound_is_never_too_small() -> None:
    """The bound of a request covers all its choices, input that the provider has stored, and an absent output limit."""
    price = ModelPrice(1e-6, 1e-5, window=1_000)
    assert token_bound({"n": 3}, 500, 20, price) == (500, 60)
    assert token_bound({"previous_response_id": "r"}, 50, 20, price) == (1_000, 20)
    assert token_bound({}, 5_000, None, price, 64) == (1_000, 64)
    assert token_bound({}, 50, None, price) == (50, 128_000)
    assert price.cost(Usage(input=-5, output=-5)) == 0.0


def test_a_call_is_not_refused_because_of_its_own_hold() -> None:
    """A repeated attempt that is larger than the first one raises its hold, also where that alone exceeds the limit."""
    purses, limit = Purses(), SpendLimit("session", "s", 1.0, "s")
    call = Reservation(limits=[limit])
    assert purses.reserve(call, 1.0) is None
    assert purses.reserve(call, 1.5) is None
    assert purses.reserve(Reservation(limits=[limit]), 0.1) == limit


def test_a_refusal_shows_amounts_below_a_cent() -> None:
    """A limit of a fraction of a cent is not shown as $0.00."""
    limit = SpendLimit("session", "s", 0.0004, "s")
    assert refusal(limit, 0.0, 0.0).startswith("budget of $0.0004 for this session is spent")
    assert refusal(limit, 0.00007, 0.0).startswith("the $0.00007 left of the $0.0004 for this session are reserved")
