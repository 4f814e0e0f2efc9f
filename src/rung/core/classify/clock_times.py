"""Read a point in time as people write it: "3pm (Europe/Lisbon)", "Nov 20th, 2025 6:34 AM", "10/3/2025", an ISO time.

The clock and the local zone are arguments. A time without a date is the next one, a date without a year the nearest.
What is ambiguous (3/4/2026, an unknown zone, an ISO time without a zone) is not read.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.rate_limit_headers import MONTHS, from_timestamp
from rung.core.classify.time_zones import read_zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

# Clients round to minutes and print late: a time of day that passed this recently is not that of tomorrow.
JUST_PASSED_SECONDS: Final = 1_800.0


class _Day(NamedTuple):
    """A day as written; what is absent is 0 or None."""

    year: int = 0
    month: int = 0
    day: int = 0
    weekday: int | None = None
    offset: int | None = None  # from today


class _Clock(NamedTuple):
    hour: int = 0
    minute: int = 0
    second: int = 0


_TIMESTAMP: Final = LazyPattern(r"(\d{13}|\d{10})(?!\d)")
_SEPARATOR: Final = LazyPattern(r"[,T]?\s{0,3}(?:(?:at|@|a las)\s)?", re.IGNORECASE)
_CLOCK: Final = LazyPattern(
    r"(?:(\d{1,2})(?::(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?(?:\s?([ap])\.?\s?m\b\.?)?(?![\d:/])|(midnight|noon)\b)",
    re.IGNORECASE,
)


def parse_time(text: str, start: int, now: float, zone: tzinfo | None, *, american: bool = False) -> float | None:
    """Return the Unix timestamp of the time written at `start`; None if there is none, or which one is not certain.

    `american` says that 3/4/2026 is a day in March.
    """
    stamp = _TIMESTAMP.match(text, start)
    if stamp is not None:
        return from_timestamp(float(stamp[1]))
    try:
        day, is_iso, end = _read_day(text, start, american=american)
        clock, end = _read_clock(text, end, has_day=day is not None)
        if clock is None:
            return None
        there = read_zone(text, end, None if is_iso else zone)
        return None if there is None else _resolve(day, clock, now, there)
    except (ValueError, OverflowError, OSError):  # there is no such day, time or year
        return None


_FOREIGN_MONTHS: Final = {"ene": 1, "fev": 2, "abr": 4, "mai": 5, "ago": 8, "set": 9, "out": 10, "dez": 12, "dic": 12}
_NAMED_MONTHS: Final = MONTHS | _FOREIGN_MONTHS  # English, Spanish, Portuguese
_NOON: Final = 12
_MAX_MONTH: Final = 12
_WEEKDAYS: Final = {name: number for number, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_YEAR_FIRST: Final = LazyPattern(r"(20\d\d)[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_NUMERIC: Final = LazyPattern(r"(\d{1,2})/(\d{1,2})/(20\d\d)(?!\d)")
_WEEKDAY: Final = LazyPattern(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\b,?\s?", re.IGNORECASE)
_MONTH_FIRST: Final = LazyPattern(
    r"([a-z]{3})[a-z]{0,6}\.?\s(\d{1,2})(?:st|nd|rd|th)?\b(?![:/])(?:,?\s(20\d\d)\b)?", re.IGNORECASE
)
_DAY_FIRST: Final = LazyPattern(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?([a-z]{3})[a-z]{0,6}\.?(?:,?\s(?:de\s)?(20\d\d)\b)?", re.IGNORECASE
)
_RELATIVE_DAY: Final = LazyPattern(r"(today|tomorrow)\b", re.IGNORECASE)


def _read_day(text: str, start: int, *, american: bool) -> tuple[_Day | None, bool, int]:
    """Return the day written at `start` (None if there is none), whether in ISO form, and where it ends."""
    found = _YEAR_FIRST.match(text, start)
    if found is not None:
        return _Day(*map(int, found.groups())), True, found.end()
    found = _NUMERIC.match(text, start)
    if found is not None:
        first, second = int(found[1]), int(found[2])
        if not american and first <= _MAX_MONTH >= second and first != second:
            raise ValueError(text[start : found.end()])
        month, day = (second, first) if first > _MAX_MONTH else (first, second)
        return _Day(int(found[3]), month, day), False, found.end()
    weekday = _WEEKDAY.match(text, start)
    begin = start if weekday is None else weekday.end()
    for pattern, month, day in ((_MONTH_FIRST, 1, 2), (_DAY_FIRST, 2, 1)):
        found = pattern.match(text, begin)
        if found is not None and found[month].lower() in _NAMED_MONTHS:
            named = _NAMED_MONTHS[found[month].lower()]
            return _Day(int(found[3] or 0), named, int(found[day])), False, found.end()
    if weekday is not None:
        return _Day(weekday=_WEEKDAYS[weekday[1].lower()]), False, begin
    relative = _RELATIVE_DAY.match(text, start)
    if relative is not None:
        return _Day(offset=int(relative[1].lower() == "tomorrow")), False, relative.end()
    return None, False, start


def _read_clock(text: str, start: int, *, has_day: bool) -> tuple[_Clock | None, int]:
    """Return the time of day written at `start` and where it ends; a day without one begins at midnight."""
    separator = _SEPARATOR.match(text, start) if has_day else None
    found = _CLOCK.match(text, start if separator is None else separator.end())
    if found is not None and found[5]:
        return _Clock(hour=_NOON if found[5].lower() == "noon" else 0), found.end()
    if found is None or not (found[2] or found[4]):
        return (_Clock(), start) if has_day else (None, start)
    hour = int(found[1])
    if found[4]:
        if not 1 <= hour <= _NOON:
            raise ValueError(found[0])
        hour = hour % _NOON + (_NOON if found[4].lower() == "p" else 0)
    return _Clock(hour, int(found[2] or 0), int(found[3] or 0)), found.end()


def _resolve(day: _Day | None, clock: _Clock, now: float, zone: tzinfo) -> float | None:
    """Return the first time that fits and has not passed long ago."""
    today = datetime.fromtimestamp(now, zone).date()
    for candidate in _days(day, today):
        for fold in (0, 1):  # an hour that the clocks repeat in autumn
            moment = datetime(
                candidate.year, candidate.month, candidate.day, *clock, tzinfo=zone, fold=fold
            ).timestamp()
            if moment > now - JUST_PASSED_SECONDS:
                return moment
    return None


def _days(day: _Day | None, today: date) -> Iterator[date]:
    if day is None:
        yield from (today + timedelta(days=days) for days in (-1, 0, 1))
    elif day.offset is not None:
        yield today + timedelta(days=day.offset)
    elif day.weekday is not None:
        ahead = (day.weekday - today.weekday()) % 7
        yield from (today + timedelta(days=ahead + days) for days in (0, 7))
    elif day.year:
        yield date(day.year, day.month, day.day)
    else:
        for year in (today.year, today.year + 1):
            yield date(year, day.month, day.day)
