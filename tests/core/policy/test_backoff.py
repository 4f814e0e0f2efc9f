"""Backoff: waits are bounded, finite and never below a server's hint."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.backoff import Backoff

AMOUNT = st.floats(0, 1.7e308) | st.floats(0, 1000) | st.integers(0, 10**6) | st.integers(0, 10**300)
GROWTH = st.floats(1, 1.7e308) | st.floats(1, 4) | st.integers(1, 10**6) | st.just(math.nextafter(1.0, 2.0))
BACKOFFS = st.builds(Backoff, base=AMOUNT, multiplier=GROWTH, cap=AMOUNT, jitter=st.booleans())
REPEATS = st.integers(1, 10**9) | st.integers(1, 20)
CHANCE = st.floats(0, 1, exclude_max=True)


@given(BACKOFFS, REPEATS, CHANCE)
@example(Backoff(base=5e-324, cap=1e308), 10**9, 0.5)
@example(Backoff(base=1e308, cap=5e-324), 2, 0.5)
@example(Backoff(base=1, multiplier=2, cap=10**300), 10**9, 0.0)
def test_never_above_the_cap(backoff: Backoff, repeat: int, chance: float) -> None:
    """Whatever the settings and however many repeats, a wait is finite, not negative and at most the cap."""
    for wait in (backoff.ceiling(repeat), backoff.wait(repeat, chance)):
        assert math.isfinite(wait)
        assert 0 <= wait <= backoff.cap


@given(BACKOFFS, REPEATS, CHANCE, st.floats(0, 10**9))
def test_never_below_a_hint(backoff: Backoff, repeat: int, chance: float, hint: float) -> None:
    """A server's hint is waited for in full, and jitter adds at most a quarter of it and no more than the ceiling."""
    wait = backoff.wait(repeat, chance, hint)
    assert hint <= wait <= hint * 1.25
    assert wait <= hint + backoff.ceiling(repeat)


@given(BACKOFFS, REPEATS)
def test_never_shorter_later(backoff: Backoff, repeat: int) -> None:
    """The ceiling of a later repeat is no lower than that of an earlier one."""
    assert backoff.ceiling(repeat) <= backoff.ceiling(repeat + 1)


@given(BACKOFFS, REPEATS, CHANCE)
def test_full_jitter(backoff: Backoff, repeat: int, chance: float) -> None:
    """With jitter the wait is a random part of the ceiling, without it the ceiling itself."""
    ceiling = backoff.ceiling(repeat)
    assert backoff.wait(repeat, chance) == (ceiling * chance if backoff.jitter else ceiling)


def test_doubles_up_to_the_cap() -> None:
    """By default the ceilings are 1, 2, 4, 8, 16 seconds, and from then on 30."""
    assert [Backoff().ceiling(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_other_growth() -> None:
    """A multiplier of 1 keeps the wait, a base above the cap waits the cap, and a base of 0 not at all."""
    assert [Backoff(base=3, multiplier=1).ceiling(n) for n in (1, 2, 99)] == [3, 3, 3]
    assert [Backoff(base=50, cap=20).ceiling(n) for n in (1, 2, 99)] == [20, 20, 20]
    assert [Backoff(base=0).ceiling(n) for n in (1, 2, 10**9)] == [0, 0, 0]
    assert Backoff(base=1.5, multiplier=3, cap=100).ceiling(4) == 40.5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base", -1),
        ("base", math.nan),
        ("base", math.inf),
        ("base", True),
        ("base", "1"),
        ("base", None),
        ("base", 10**400),
        ("multiplier", 0.99),
        ("multiplier", math.nan),
        ("multiplier", 10**400),
        ("cap", -0.1),
        ("cap", math.inf),
        ("cap", [30]),
        ("jitter", 1),
        ("jitter", "yes"),
        ("jitter", None),
    ],
)
def test_what_cannot_be(key: str, value: Any) -> None:
    """A setting that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        Backoff(**{key: value})
    assert raised.value.key == f"backoff.{key}"
    assert raised.value.value is value
