"""Keys of one upstream: their states after failures, and which one is next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.policy.key_pool import (
    DEAD_SECONDS,
    EXHAUSTED_SECONDS,
    LIMITED_SECONDS,
    MIN_SECONDS,
    KeyState,
    KeyStatus,
    first_to_reopen,
    later,
    status_after,
    usable_keys,
)

NOW = 1_000.0
NAMES = ("A", "B", "C")
WAITS = st.none() | st.floats(0, 1e6)
STATUSES = st.builds(KeyStatus, st.sampled_from(KeyState), st.floats(0, 2 * NOW))
POOLS = st.dictionaries(st.sampled_from(NAMES), STATUSES)


def failed(kind: Kind, wait: float | None = None) -> Failure:
    return Failure(kind, retryable=False, rule="test", retry_after=wait, evidence=Evidence())


@pytest.mark.parametrize(
    ("kind", "wait", "state", "seconds"),
    [
        (Kind.RATE_LIMIT, 30.0, KeyState.LIMITED, 30.0),
        (Kind.RATE_LIMIT, 0.0, KeyState.LIMITED, MIN_SECONDS),
        (Kind.RATE_LIMIT, None, KeyState.LIMITED, LIMITED_SECONDS),
        (Kind.QUOTA_EXHAUSTED, 7_200.0, KeyState.EXHAUSTED, 7_200.0),
        (Kind.QUOTA_EXHAUSTED, None, KeyState.EXHAUSTED, EXHAUSTED_SECONDS),
        (Kind.AUTH_ERROR, None, KeyState.DEAD, DEAD_SECONDS),
        (Kind.MISSING_CREDENTIALS, 5.0, KeyState.DEAD, DEAD_SECONDS),
    ],
)
def test_states(kind: Kind, wait: float | None, state: KeyState, seconds: float) -> None:
    """A limit lasts as long as it says, a refusal ten minutes, and a limit without a time a default."""
    assert status_after(failed(kind, wait), NOW) == KeyStatus(state, NOW + seconds)


@given(st.sampled_from(Kind), WAITS)
def test_a_failed_key_rests(kind: Kind, wait: float | None) -> None:
    """A failure either says nothing about the key, or the key is not usable now and usable at its time."""
    status = status_after(failed(kind, wait), NOW)
    if kind in (Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED, Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS):
        assert status is not None
        assert not status.is_usable(NOW)
        assert status.is_usable(status.until)
    else:
        assert status is None


@given(POOLS, st.sets(st.sampled_from(NAMES)))
def test_choice(statuses: dict[str, KeyStatus], tried: set[str]) -> None:
    """Every key is either tried, usable, or reopens no earlier than the one that is first to reopen."""
    usable = usable_keys(NAMES, statuses, NOW, tried)
    first = first_to_reopen(NAMES, statuses)
    for name in NAMES:
        status = statuses.get(name, KeyStatus())
        assert (name in usable) == (name not in tried and status.is_usable(NOW))
        assert statuses.get(first, KeyStatus()).until <= status.until


@given(STATUSES, STATUSES)
def test_two_limits(one: KeyStatus, other: KeyStatus) -> None:
    """A key with two limits is usable when both have reopened."""
    both = later(one, other)
    assert both in (one, other)
    assert both.is_usable(NOW) == (one.is_usable(NOW) and other.is_usable(NOW))
