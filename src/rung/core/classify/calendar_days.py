"""Read a day as people write it: "2026-07-28", "Nov 20th, 2025", "28. Juli", "10/3/2025", "next Monday", "the 1st", "7月28日"."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.rate_limit_headers import MONTHS

if TYPE_CHECKING:
    from collections.abc import Iterator


class Day(NamedTuple):
    """A day as written; what is absent is 0 or None."""

    year: int = 0
    month: int = 0
    day: int = 0
    weekday: int | None = None
    offset: int | None = None  # from today
    is_either: bool = False  # the month may be the day


_FOREIGN_MONTHS: Final = {
    "ene": 1, "janv": 1, "gen": 1, "fev": 2, "fév": 2, "mär": 3, "mrt": 3, "abr": 4, "avr": 4, "mai": 5, "mei": 5, "mag": 5, "giu": 6,
    "juin": 6, "juil": 7, "lug": 7, "ago": 8, "aoû": 8, "set": 9, "out": 10, "okt": 10, "ott": 10, "dez": 12, "dic": 12, "déc": 12,
    "янв": 1, "фев": 2, "мар": 3, "апр": 4, "мая": 5, "июн": 6, "июл": 7, "авг": 8, "сен": 9, "окт": 10, "ноя": 11, "дек": 12,
}  # fmt: skip
_NAMED_MONTHS: Final = MONTHS | _FOREIGN_MONTHS
_MAX_MONTH: Final = 12
_WEEKDAYS: Final = {name: number for number, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_YEAR_FIRST: Final = LazyPattern(r"(20\d\d)([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_CJK: Final = LazyPattern(r"(?:(20\d\d)\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号일]")
_NUMERIC: Final = LazyPattern(r"(\d{1,2})([/.])(\d{1,2})\2(20\d\d)(?!\d)|(\d\d)/(\d\d)(?![/\d])")
_WEEKDAY: Final = LazyPattern(
    r"(?:next\s|this\s|every\s|each\s)?(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|r|rsday|urday)?s?\b,?\s?",
    re.IGNORECASE,
)
_MONTH_FIRST: Final = LazyPattern(
    r"([^\W\d_]{3,4})[^\W\d_]{0,7}\.?\s(\d{1,2})(?:st|nd|rd|th)?\b(?![:/])(?:,?\s(20\d\d)\b)?", re.IGNORECASE
)
_DAY_FIRST: Final = LazyPattern(
    r"(\d{1,2})(?:st|nd|rd|th|\.|er)?[\s-](?:of\s|de\s)?([^\W\d_]{3,4})[^\W\d_]{0,7}\.?(?:,?[\s-](?:de\s)?(20\d\d)\b)?",
    re.IGNORECASE,
)
_OF_MONTH: Final = LazyPattern(
    r"(?:the\s)?(\d{1,2})(?:st|nd|rd|th)(?:\sday)?\b(?:\sof\s(?:the|each|every|next)\s(?:next\s|calendar\s|following\s)?month\b)?"
    r"|(?:the\s)?(first)\s(?:day\s)?of\s(?:the|each|every|next)\s(?:next\s|calendar\s|following\s)?month\b",
    re.IGNORECASE,
)
_RELATIVE_DAYS: Final = {
    "today": 0, "tonight": 0, "tomorrow": 1, "hoy": 0, "mañana": 1, "hoje": 0, "amanhã": 1, "heute": 0, "morgen": 1,
    "aujourd'hui": 0, "demain": 1, "oggi": 0, "domani": 1, "сегодня": 0, "завтра": 1, "今天": 0, "今日": 0, "明天": 1, "明日": 1,
    "오늘": 0, "내일": 1,
}  # fmt: skip
_RELATIVE_DAY: Final = LazyPattern(r"(" + "|".join(_RELATIVE_DAYS) + r")(?![a-zà-ÿа-я])", re.IGNORECASE)


def read_day(text: str, start: int, *, american: bool) -> tuple[Day | None, bool, int]:
    """Return the day written at `start` (None if there is none), whether in ISO form, and where it ends.

    `american` says that 3/4/2026 is a day in March.
    """
    found = _YEAR_FIRST.match(text, start)
    if found is not None:
        return Day(int(found[1]), int(found[3]), int(found[4])), True, found.end()
    found = _NUMERIC.match(text, start)
    if found is not None:
        return _numeric_day(found, american=american), False, found.end()
    found = _CJK.match(text, start)
    if found is not None:
        return Day(int(found[1] or 0), int(found[2]), int(found[3])), False, found.end()
    weekday = _WEEKDAY.match(text, start)
    named = _named_day(text, start if weekday is None else weekday.end())
    if named is not None:
        return named
    if weekday is not None:
        return Day(weekday=_WEEKDAYS[weekday[1].lower()]), False, weekday.end()
    return _relative_day(text, start)


def _numeric_day(found: re.Match[str], *, american: bool) -> Day:
    """Read 10/3/2025, 28.07.2026 and 08/01."""
    first, second, year = int(found[1] or found[5]), int(found[3] or found[6]), int(found[4] or 0)
    if found[2] == "." or first > _MAX_MONTH:
        return Day(year, second, first)  # dates with points are never written month first
    return Day(year, first, second, is_either=not american and second <= _MAX_MONTH and first != second)


def _named_day(text: str, start: int) -> tuple[Day, bool, int] | None:
    """Read a day whose month has a name."""
    for pattern, month, day in ((_MONTH_FIRST, 1, 2), (_DAY_FIRST, 2, 1)):
        found = pattern.match(text, start)
        if found is not None:
            name = found[month].lower()
            number = _NAMED_MONTHS.get(name) or _NAMED_MONTHS.get(name[:3])
            if number is not None:
                return Day(int(found[3] or 0), number, int(found[day])), False, found.end()
    return None


def _relative_day(text: str, start: int) -> tuple[Day | None, bool, int]:
    found = _RELATIVE_DAY.match(text, start)
    if found is not None:
        return Day(offset=_RELATIVE_DAYS[found[1].lower()]), False, found.end()
    found = _OF_MONTH.match(text, start)
    if found is not None:
        if "next" in found[0].lower() and found[1] not in {None, "1"}:
            raise ValueError(found[0])  # "the 20th of next month" may be five weeks ahead
        return Day(day=int(found[1] or 1)), False, found.end()
    return None, False, start


def days_from(day: Day | None, today: date) -> Iterator[date]:
    """Yield the dates that a written day may be, nearest first; without a day, those around today."""
    if day is None:
        yield from (today + timedelta(days=days) for days in (-1, 0, 1))
    elif day.offset is not None:
        yield today + timedelta(days=day.offset)
    elif day.weekday is not None:
        ahead = (day.weekday - today.weekday()) % 7
        yield from (today + timedelta(days=ahead + days) for days in (0, 7))
    elif day.is_either:
        yield from _only_near(day, today)
    elif day.year:
        yield date(day.year, day.month, day.day)
    elif day.month:
        yield from (date(year, day.month, day.day) for year in (today.year, today.year + 1))
    else:
        following = date(today.year + today.month // _MAX_MONTH, today.month % _MAX_MONTH + 1, 1)
        yield from (first.replace(day=day.day) for first in (today, following))


_NEAR: Final = timedelta(days=62)  # a month may have passed, or be ahead


def _only_near(day: Day, today: date) -> Iterator[date]:
    """Yield the date of 08/01 if only one of its two readings is near: the other one is half a year away."""
    years = (day.year,) if day.year else (today.year - 1, today.year, today.year + 1)
    pairs = ((day.month, day.day), (day.day, day.month))
    near = {date(year, *pair) for pair in pairs for year in years if abs(date(year, *pair) - today) <= _NEAR}
    if len(near) == 1:
        yield from near
