"""Format a coming moment for people: its time of day in a zone, and how long it takes until then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400
_NEAR_SECONDS: Final = 120  # a moment this near is given to the second


def format_moment(at: float, now: float, zone: tzinfo | None = None) -> str:
    """Return "16:20 (WET)", on another day "20 Nov 06:34 (WET)". Without a zone: UTC."""
    moment, today = (datetime.fromtimestamp(each, zone or UTC) for each in (at, now))
    day = "" if moment.date() == today.date() else f"{moment.day} {moment:%b} "
    clock = f"{moment:%H:%M:%S}" if at - now < _NEAR_SECONDS else f"{moment:%H:%M}"
    return f"{day}{clock} ({getattr(zone, 'key', None) or moment.tzname()})"


def rfc3339(at: float) -> str:
    """Return a moment for programs: "2026-11-17T16:20:00Z", to the nearest second."""
    return datetime.fromtimestamp(round(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_time(at: float) -> str:
    """Return a moment for programs to the millisecond: "2026-11-17T16:20:00.250Z"."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_span(seconds: float) -> str:
    """Return the time until a moment in two units: 40 s, 2 h 10 min, 3 days 4 h."""
    whole = max(0, round(seconds))
    if whole < _NEAR_SECONDS:
        return f"{whole} s"
    if whole < _DAY:
        hours, minutes = divmod(round(whole / _MINUTE), _HOUR // _MINUTE)
        return " ".join(([f"{hours} h"] if hours else []) + ([f"{minutes} min"] if minutes else []))
    days, hours = divmod(round(whole / _HOUR), _DAY // _HOUR)
    return f"{days} day{'s' * (days != 1)}" + (f" {hours} h" if hours else "")
