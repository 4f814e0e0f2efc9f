"""Restart intensity of a fan-out."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.restart_intensity import RestartIntensity, SiblingRestarts


@given(st.integers(0, 20), st.integers(1, 100), st.lists(st.integers(0, 100), max_size=40), st.integers(100, 200))
def test_room_is_what_recent_restarts_leave(restarts: int, seconds: int, earlier: list[int], now: int) -> None:
    """There is room for as many restarts as the limit has over those within the window, and never for fewer than none."""
    recent = [at for at in earlier if at > now - seconds]
    room = RestartIntensity(restarts=restarts, seconds=seconds).remaining(earlier, now)
    assert room == max(0, restarts - len(recent))


def test_a_storm_of_restarts_is_stopped() -> None:
    """By default a fourth restart within a minute is one too many, and a minute later there is room again."""
    intensity = RestartIntensity()
    assert intensity.remaining([10, 20, 30], 40) == 0
    assert intensity.remaining([10, 20, 30], 69.9) == 0
    assert intensity.remaining([10, 20, 30], 70) == 1
    assert intensity.remaining([10, 20, 30], 90) == 3


def test_a_limit_for_life() -> None:
    """With an endless window restarts are counted for ever."""
    assert RestartIntensity(restarts=2, seconds=math.inf).remaining([0, 1], 1e12) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("restarts", -1),
        ("restarts", 1.5),
        ("restarts", math.nan),
        ("restarts", True),
        ("seconds", 0),
        ("seconds", -1),
        ("seconds", math.nan),
    ],
)
def test_what_an_intensity_cannot_be(key: str, value: Any) -> None:
    """A limit that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        RestartIntensity(**{key: value})
    assert raised.value.key == f"intensity.{key}"
    assert raised.value.value is value


def test_what_siblings_may_do() -> None:
    """The siblings of a failed job go on, are cancelled, or only the failed ones are tried again."""
    assert list(SiblingRestarts) == ["continue", "cancel", "retry_failed_only"]
