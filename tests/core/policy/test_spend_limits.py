"""Spend limits: which limits apply to a call, overrides at run time, and alert thresholds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.spend_limits import ALERT_PERCENTS, SpendLimits, month_of, month_start, reached_alert

NOVEMBER = 1_794_787_200.0  # 2026-11-16


def test_nothing_bounds_nothing() -> None:
    """Without a limit there is no purse."""
    assert not SpendLimits().has_limits
    assert SpendLimits().limits_for("s", "p", "2026-11") == []


def test_purses() -> None:
    """A call is paid from its month, its project and its session; a project's own limit goes before everybody's."""
    limits = SpendLimits(session=1.0, project=2.0, month=3.0, projects={"dear": 9.0})
    assert limits.has_limits
    assert [(purse.id, purse.limit) for purse in limits.limits_for("s", "dear", "2026-11")] == [
        ("budget/month/2026-11", 3.0),
        ("budget/project/dear/2026-11", 9.0),
        ("budget/session/s", 1.0),
    ]
    assert limits.limits_for("", "other", "2026-11")[-1].limit == 2.0
    assert SpendLimits(projects={"dear": 9.0}).has_limits


def test_what_people_set_weighs_more() -> None:
    """What was set in the journal takes the place of the file's; what was not set leaves it."""
    file = SpendLimits(session=1.0, month=3.0, projects={"a": 1.0})
    over = file.with_overrides({"monthly": 5.0, "session": None, "projects": {"b": 2.0}})
    assert (over.session, over.month, dict(over.projects)) == (1.0, 5.0, {"a": 1.0, "b": 2.0})
    assert file.with_overrides({}) == file


@pytest.mark.parametrize("bad", [{"session": -1.0}, {"month": "much"}, {"projects": {"a": float("nan")}}])
def test_limits_that_are_none(bad: dict[str, Any]) -> None:
    """A limit that is no number is refused by its name."""
    with pytest.raises(ConfigError, match=r"^(session|month|projects\.a): "):
        SpendLimits(**bad)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_marks(spent: float, limit: float) -> None:
    """The mark is the highest that is reached; nothing may be spent of nothing."""
    mark = reached_alert(spent, limit)
    if limit:
        reached = [one for one in ALERT_PERCENTS if 100 * spent / limit >= one]
        assert mark == (reached[-1] if reached else None)
    else:
        assert mark == (100 if spent else None)


def test_months() -> None:
    """A month is the calendar's, in UTC."""
    assert month_of(NOVEMBER) == "2026-11"
    assert month_of(month_start(NOVEMBER)) == "2026-11"
    assert month_of(month_start(NOVEMBER) - 1) == "2026-10"
