"""Find the time at which a limit reopens in an error's text, and return the seconds until then.

Read are timestamps and ISO times in fields ("resets_at"), the suffix of Claude Code's "limit reached|1760004000", and
times in sentences about a limit: "resets 3pm (Europe/Lisbon)", "try again at Nov 20th, 2025 6:34 AM". Other times, as
those of log lines, are not: a wrong time would make a run wait for nothing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.reopening import MAX_RESET_SECONDS, names_limit, openings

if TYPE_CHECKING:
    from datetime import tzinfo

_LATE_SECONDS: Final = 60.0  # the wait for a reset that has passed: clients round to minutes
_HEAD: Final = 3_000  # characters of a long text that are searched
_TAIL: Final = 5_000
_MAX_TIMES: Final = 20
# Beginnings of the forms that are read, without their first letter, so that case does not matter.
_MARKERS: Final = (
    "eset", "gain", "etry", "ntil", "vailable", "ait", "enew", "efresh", "eached|", "esum", "ext ", "ack ", "ontinue", "nlock", "open",
    "nds ", "tarts", "egins", "estor", "ifted", "lear", "efill", "eplenish", "echarge", "rolls over", "blocked", "left", "emaining",
    "ntent", "nténta", "edefinid", "establec", "einici", "enov", "enueva", "tent", "éinit", "enouvel", "éessa", "iprist", "iprov", "zurück", "erneu", "erfüg",
    "брос", "бнов", "овтор", "опробу", "重", "再", "恢", "刷新", "リセット", "초기화", "재설정", "다시",
)  # fmt: skip


_MONTHS: Final = (
    "[Jj]an [Ff]e[bv] [Ff]év [Mm]a[ryi] [Mm]är [Aa]pr [Aa]br [Aa]vr [Jj]u[nl] [Jj]uil [Aa]ug [Aa]go [Aa]oû [Ss]e[pt] "
    "[Oo][ck]t [Oo]ut [Nn]ov [Dd]e[cz] [Dd]éc [Dd]ic [Ee]ne янв фев апр мая июн июл авг сен окт ноя дек"
)
# What looks like a point in time, or a part of one. Patterns that begin with a digit are found fast.
_DIGITS: Final = LazyPattern(
    r"\d(?::\d\d|/\d\d\b|\s?[aApP]\.?\s?[mM]\b|\d{9}|[-/.]\d\d?[-/.]\d|(?:st|nd|rd|th)\b|\s?[hH]\d\d\b|\s?h\b|\s?[Uu]hr|[年点點時시月월]"
    rf"|\.?\s(?:of\s|de\s)?(?:{_MONTHS.replace(' ', '|')}))"
)
_DAY_NAMES: Final = (
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    "midnight", "Midnight", "noon", "first of", "first day",
)  # fmt: skip
_DAYS: Final = LazyPattern("|".join(_DAY_NAMES))


def _spots(text: str) -> list[re.Match[str]]:
    """Return what looks like a point in time, or a part of one."""
    found = [*_DIGITS.finditer(text)]
    for name in _DAY_NAMES:
        if name in text:
            found += _DAYS.finditer(text)
            break
    return sorted(found, key=lambda match: match.start())


def names_reset(text: str) -> bool:
    """Return whether the text may name a time at which a limit reopens: then the wait depends on the clock."""
    for marker in _MARKERS:
        if marker in text:
            return bool(_spots(text))
    return False


def reset_wait(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the seconds from `now` until the limit in this text reopens; None if the text does not say it clearly.

    `zone` is the local zone, in which command-line clients print their times. Without it, only times that carry a zone
    of their own are read. Of several sentences the last one counts: it is the newest of a log.
    """
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    at = _field_time(text, now, zone)
    if at is None:
        at = _sentence_time(text, now, zone)
    if at is None:
        return None
    return at - now if at > now else _LATE_SECONDS


_FIELD: Final = LazyPattern(
    r"(?<!last_)(?<!last)(?:reset|retry_at|available_at|until)[\w-]{0,24}(?:\\{0,8}[\"']\s?:|=)\s?\\{0,8}[\"']?(?=\d{10}|20\d\d-\d\d-\d\d[T ]\d\d)"
    r"|limit reached\|(?=\d{10})",
    re.IGNORECASE,
)


def _field_time(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the first time in a field that can be that of a reset."""
    for match in islice(_FIELD.finditer(text), _MAX_TIMES):
        if names_limit(text, match.start(), match.end()):
            at = _coming_time(text, match.end(), now, zone)
            if at is not None:
                return at
    return None


_SHORT_WINDOW: Final = LazyPattern(r"session limit|5[- ]?hour limit", re.IGNORECASE)
_SHORT_SECONDS: Final = 5.5 * 3_600.0  # a session has five hours: a time of day further ahead has passed already
_SAME_SENTENCE: Final = 60


def _sentence_time(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the last time in a sentence about a limit that can be that of its reset."""
    iso_zone = _iso_zone(text)
    for opening in openings(text, _spots(text)):
        if not opening.time or not names_limit(text, opening.verb, opening.start):
            continue
        at = _coming_time(text, opening.start, now, zone, american=opening.american, iso_zone=iso_zone)
        low = max(0, opening.verb - _SAME_SENTENCE)
        is_short = _SHORT_WINDOW.search(text, low, opening.start) is not None
        if at is not None and not (is_short and at - now > _SHORT_SECONDS):
            return at
    return None


# Services in China write the time of their place without its zone: "您的限额将在 2026-08-25 07:41:44 重置".
_CHINESE: Final = LazyPattern(
    r"[\u4e00-\u9fff]{2}|\b13(?:08|10|16|17)\b.{0,60}limit|Usage limit reached for \d{1,2} hour\b|Weekly/Monthly Limit Exhausted",
    re.IGNORECASE,
)


def _iso_zone(text: str) -> tzinfo | None:
    from rung.core.classify.time_zones import read_zone

    return read_zone("(Asia/Shanghai)", 0, None) if _CHINESE.search(text) else None


def _coming_time(
    text: str, start: int, now: float, zone: tzinfo | None, *, american: bool = False, iso_zone: tzinfo | None = None
) -> float | None:
    from rung.core.classify.clock_times import MAX_PAST_SECONDS, parse_time

    at = parse_time(text, start, now, zone, american=american, iso_zone=iso_zone)
    return at if at is not None and -MAX_PAST_SECONDS < at - now <= MAX_RESET_SECONDS else None
