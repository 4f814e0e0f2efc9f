"""Stall limits: when an attempt without progress is ended, by the durations of earlier ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.parser import merge_tables, parse_policy, policy
from rung.core.policy.serializer import policy_table
from rung.core.policy.stalls import StallLimits, overdue_after

DURATIONS = st.lists(st.floats(0, 1e6), max_size=60)


@given(DURATIONS, st.integers(1, 20), st.floats(1, 10))
def test_what_was_seen_before_is_never_a_stall(durations: list[float], samples: int, factor: float) -> None:
    """The limit is above every earlier duration and the minimum; with too few durations there is none."""
    limit = StallLimits(samples=samples, factor=factor).limit(durations)
    assert (limit is None) == (len(durations) < samples)
    if limit is not None:
        assert limit >= max(600.0, factor * max(durations))
    assert StallLimits(enabled=False).limit(durations) is None


def test_a_share_of_the_durations() -> None:
    """With a share, the slowest ones do not count."""
    assert overdue_after([*range(1, 101)], factor=2, samples=5, share=0.5) == 102
    assert overdue_after([1.0], factor=2, samples=2) is None


@pytest.mark.parametrize(
    ("key", "value"), [("enabled", 1), ("factor", 0.5), ("factor", "x"), ("samples", 0), ("min_seconds", 0)]
)
def test_bad_values(key: str, value: Any) -> None:
    """A wrong value is an error that names its key."""
    with pytest.raises(ConfigError, match=f"stalls.{key}"):
        policy("task", stalls={key: value})


def test_part_of_a_policy() -> None:
    """The table of a policy file is merged key by key, and written back."""
    merged = merge_tables({"stalls": {"factor": 8}}, {"stalls": {"enabled": False}})
    read = parse_policy(merged)
    assert read.stalls == StallLimits(enabled=False, factor=8)
    assert parse_policy(policy_table(read)).stalls == read.stalls
