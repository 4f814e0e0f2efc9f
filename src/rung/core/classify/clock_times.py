"""Read a point in time as people write it: "3pm (Europe/Lisbon)", "Nov 20th, 2025 6:34 AM", "10/3/2025", an ISO time.

The clock and the local zone are arguments. A time without a date is the next one, a date without a year the nearest.
What is ambiguous (3/4/2026, an unknown zone, an ISO time without a zone) is not read.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.calendar_days import Day, days_from, read_day
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.rate_limit_headers import from_timestamp
from rung.core.classify.time_zones import read_zone

if TYPE_CHECKING:
    from datetime import tzinfo

# Clients round to minutes and print late: a time of day that passed this recently is not that of tomorrow.
_JUST_PASSED_SECONDS: Final = 1_800.0
# A date that passed within this time is still that of the limit: clocks and zones differ. An older one is of another event.
MAX_PAST_SECONDS: Final = 86_400.0


class _ClockTime(NamedTuple):
    hour: int = 0
    minute: int = 0
    second: int = 0


_TIMESTAMP: Final = LazyPattern(r"(\d{13}|\d{10})(?:\.\d{1,6})?(?!\d)")


def parse_time(
    text: str, start: int, now: float, zone: tzinfo | None, *, american: bool = False, iso_zone: tzinfo | None = None
) -> float | None:
    """Return the Unix timestamp of the time written at `start`; None if there is none, or which one is not certain.

    `american` says that 3/4/2026 is a day in March. `iso_zone` is that of ISO times without a zone.
    """
    stamp = _TIMESTAMP.match(text, start)
    if stamp is not None:
        return from_timestamp(float(stamp[1]))
    try:
        there = _leading_zone(text, start)
        if there is not None:
            zone, start = there
        day, is_iso, day_end = read_day(text, start, american=american)
        clock, end = _read_clock(text, day_end, day)
        if clock is None:
            return None
        zone = read_zone(text, end, iso_zone if is_iso and end > day_end and there is None else zone)
        if day is None:
            day = _day_behind(text, end)
        return None if zone is None else _resolve(day, clock, now, zone)
    except (ValueError, OverflowError, OSError):  # there is no such day, time or year
        return None


_BEIJING: Final = LazyPattern(r"(?:北京时间|北京時間)\s?")


def _leading_zone(text: str, start: int) -> tuple[tzinfo, int] | None:
    found = _BEIJING.match(text, start)
    there = None if found is None else read_zone("(Asia/Shanghai)", 0, None)
    return None if found is None or there is None else (there, found.end())


_TO_DAY: Final = LazyPattern(r"(?: ?\([^()\n]{1,40}\)| [A-Z]{2,4}\b)?,? (?:on )?(?=[\dA-Za-zА-Яа-я])")


def _day_behind(text: str, start: int) -> Day | None:
    """Return the day behind a time of day: "8am next Monday", "3pm (UTC) on Nov 20"."""
    gap = _TO_DAY.match(text, start)
    return None if gap is None else read_day(text, gap.end(), american=False)[0]


_NOON: Final = 12
_SEPARATOR: Final = LazyPattern(
    r"[,T]?\s{0,3}(?:[-–·@]\s)?(?:(?:at|@|a las|às|à|um|alle|kl\.|om|в|by|from|after)\s)?(?:exactly\s)?", re.IGNORECASE
)
_CLOCK: Final = LazyPattern(
    r"(?:(\d{1,2})(?::(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?)?(?:\s?([ap])\.?\s?m\b\.?)?(?![\d:/])|(midnight|noon|mitternacht|minuit)\b)",
    re.IGNORECASE,
)
_HOURS: Final = LazyPattern(r"(\d{1,2})\s?(?:h|uhr)\s?([0-5]\d)?(?:min|m)?(?![\w])", re.IGNORECASE)  # 15h30, 15 Uhr
_CJK: Final = LazyPattern(
    r"(?:(上午|早上|凌晨|午前|오전)|(下午|晚上|午後|오후))?\s?(\d{1,2})\s?(?:[:：](\d\d)|[点點時시]\s?(?:(\d{1,2})\s?[分분]|(半))?)"
)


def _read_clock(text: str, start: int, day: Day | None) -> tuple[_ClockTime | None, int]:
    """Return the time of day written at `start` and where it ends; a day without one begins at midnight."""
    separator = _SEPARATOR.match(text, start) if day is not None else None
    begin = start if separator is None else separator.end()
    found = _CLOCK.match(text, begin)
    if found is not None and found[5]:
        return _ClockTime(hour=_NOON if found[5].lower() == "noon" else 0), found.end()
    if found is not None and (found[2] or found[4]):
        return _ClockTime(_hour(int(found[1]), found[4]), int(found[2] or 0), int(found[3] or 0)), found.end()
    found = _HOURS.match(text, begin)
    if found is not None:
        return _ClockTime(int(found[1]), int(found[2] or 0)), found.end()
    found = _CJK.match(text, begin)
    if found is not None:
        hour = _hour(int(found[3]), "a" if found[1] else "p" if found[2] else None)
        return _ClockTime(hour, 30 if found[6] else int(found[4] or found[5] or 0)), found.end()
    # "tomorrow" alone is no certain time: the limits of many services reopen at midnight in another zone.
    return (_ClockTime(), start) if day is not None and day.offset is None else (None, start)


def _hour(hour: int, half: str | None) -> int:
    """Return the hour of 24; `half` is "a" or "p"."""
    if not half:
        return hour
    if not 1 <= hour <= _NOON:
        raise ValueError(hour)
    return hour % _NOON + (_NOON if half.lower() == "p" else 0)


def _resolve(day: Day | None, clock: _ClockTime, now: float, zone: tzinfo) -> float | None:
    """Return the first time that fits and has not passed long ago."""
    today = datetime.fromtimestamp(now, zone).date()
    max_past = MAX_PAST_SECONDS if day is not None and day.month else _JUST_PASSED_SECONDS
    for candidate in days_from(day, today):
        for fold in (0, 1):  # an hour that the clocks repeat in autumn
            moment = datetime(
                candidate.year, candidate.month, candidate.day, *clock, tzinfo=zone, fold=fold
            ).timestamp()
            if moment > now - max_past:
                return moment
    return None
