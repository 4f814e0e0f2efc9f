"""Coming moments for people."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from rung.core.text.moments import format_moment, format_span

NOON = 1_795_003_200.0  # 2026-11-18 12:00 UTC


@pytest.mark.parametrize(
    ("seconds", "zone", "text"),
    [
        (4 * 3_600 + 20 * 60, "Europe/Lisbon", "16:20 (Europe/Lisbon)"),
        (3, "Europe/Lisbon", "12:00:03 (Europe/Lisbon)"),
        (12 * 3_600, "Europe/Lisbon", "19 Nov 00:00 (Europe/Lisbon)"),
        (5_000, "America/Los_Angeles", "05:23 (America/Los_Angeles)"),
    ],
)
def test_a_moment(seconds: float, zone: str, text: str) -> None:
    """A moment of today has no date; a near one has seconds; the zone is named."""
    assert format_moment(NOON + seconds, NOON, ZoneInfo(zone)) == text


def test_a_moment_without_a_zone() -> None:
    """Without a zone the time is in UTC."""
    assert format_moment(NOON, NOON - 600) == "12:00 (UTC)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (40, "40 s"),
        (150, "2 min"),
        (3_600, "1 h"),
        (7_800, "2 h 10 min"),
        (86_400, "1 day"),
        (511_860, "5 days 22 h"),
    ],
)
def test_a_span(seconds: float, text: str) -> None:
    """A span has at most two units."""
    assert format_span(seconds) == text
