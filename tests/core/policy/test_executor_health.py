"""Health of an executor from its heartbeat, its lease and the time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import ExecutorHealth, beat_interval, executor_health

SECONDS = st.integers(0, 10_000)
LEASES = st.integers(1, 1_000)


@given(SECONDS, LEASES, SECONDS)
def test_dead_only_after_the_lease(heartbeat: int, lease: int, now: int) -> None:
    """An executor is dead exactly when its heartbeat is older than its lease."""
    assert (executor_health(heartbeat, lease, now) is ExecutorHealth.DEAD) == (now - heartbeat > lease)


@given(SECONDS, LEASES, SECONDS, st.integers(0, 1_000))
def test_silence_never_makes_healthier(heartbeat: int, lease: int, now: int, more: int) -> None:
    """With more silence the health is the same or worse."""
    order = list(ExecutorHealth)
    before, after = executor_health(heartbeat, lease, now), executor_health(heartbeat, lease, now + more)
    assert order.index(before) <= order.index(after)


def test_one_missing_beat_is_not_late() -> None:
    """An executor that beats on time is live, one whose second beat is missing is late."""
    lease = 30.0
    assert executor_health(100, lease, 100 + beat_interval(lease)) is ExecutorHealth.LIVE
    assert executor_health(100, lease, 120) is ExecutorHealth.LIVE
    assert executor_health(100, lease, 120.1) is ExecutorHealth.LATE
    assert executor_health(100, lease, 130) is ExecutorHealth.LATE
    assert executor_health(100, lease, 130.1) is ExecutorHealth.DEAD


@given(SECONDS, LEASES, SECONDS, SECONDS)
def test_a_time_without_database_is_no_silence(heartbeat: int, lease: int, now: int, since: int) -> None:
    """Nobody is dead before the observer has read the database for a whole lease without a gap."""
    if executor_health(heartbeat, lease, now, since) is ExecutorHealth.DEAD:
        assert now - since > lease
        assert executor_health(heartbeat, lease, now) is ExecutorHealth.DEAD


def test_a_clock_set_back_kills_nobody() -> None:
    """A heartbeat in the future counts as live."""
    assert executor_health(500, 30, 100) is ExecutorHealth.LIVE


@pytest.mark.parametrize("lease", [0, -1, math.inf, math.nan, "30", True, None])
def test_lease_is_checked(lease: Any) -> None:
    """A lease that is no number of seconds above zero is rejected by name."""
    with pytest.raises(ConfigError, match=r"lease: .* must be seconds, more than 0"):
        beat_interval(lease)
