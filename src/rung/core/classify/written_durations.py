"""Read durations as sentences write them: "an hour", "1,234 seconds", "2h30", "02:13:45", "PT5H30M", "3 小时", "5 минут".

`durations` reads the usual English forms, which are those of headers and fields. This module is for sentences about a
limit, in the languages of public issues.
"""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

# Seconds of each unit, with its names as patterns. Months are left out: their length varies.
_UNITS: Final = (
    (0.001, "milliseconds? ms"),
    (1.0, ("seconds? secs? segundos? secondes? sekunden? sekunder? seconden secondi sekund[ayę]? секунд[уы]? сек 秒钟? 秒鐘? 초 ثواني ثانية "
          "giây saniye detik s с")),
    (60.0, "minutes? mins? minutos? minuten? minuter minuti? minut[ayę]? минут[уы]? мин 分钟? 分鐘? 분 دقائق دقيقة phút dakika menit m м"),
    (3_600.0, ("hours? hrs? horas? heures? stunden? std uur timmar ora ore godzin[ayę]? час(?:а|ов)? 个?小时 個?小時 時間 시간 ساعات ساعة "
              "giờ saat jam h ч")),
    (86_400.0, "days? d[ií]as? jours? tage?n? dag(?:en|ar)? giorn[oi] dni дн(?:я|ей)? день 天 日間? 일 أيام يوم ngày gün hari d j"),
    (604_800.0, "weeks? semanas? semaines? wochen? we?ken недел[юияь] 周 週間? 주일? tuần w"),
)  # fmt: skip
_WORDS: Final = {
    "half an": 0.5, "half a": 0.5, "another": 1.0, "an": 1.0, "a": 1.0, "one": 1.0, "two": 2.0, "three": 3.0,
    "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0, "ten": 10.0, "twelve": 12.0,
    "una": 1.0, "uma": 1.0, "une": 1.0, "un": 1.0, "einer": 1.0, "eine": 1.0,
}  # fmt: skip
_UNIT: Final = "|".join("(" + names.replace(" ", "|") + ")" for _, names in _UNITS)
_PART: Final = LazyPattern(
    r"(?:(\d{1,3}(?:,\d{3}){1,2}(?![\d,])|\d{1,12}(?:[.,]\d{1,9})?)\s?|(" + "|".join(_WORDS) + r")\s)"
    rf"(?:{_UNIT})(?![a-zà-ÿа-я])\.?",
    re.IGNORECASE,
)
_JOINER: Final = LazyPattern(r"\s?,?\s?(?:and|y|e|et|und|и)?\s{0,8}(?=\d)", re.IGNORECASE)
_CLOCK: Final = LazyPattern(
    r"(?:(\d{1,3})d\s)?(\d{1,3}):([0-5]\d):([0-5]\d(?:\.\d{1,9})?)(?![\d:]|\s?[ap]\.?m)", re.IGNORECASE
)
_ISO: Final = LazyPattern(
    r"P(?=\d|T\d)(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?(?![\w.])"
)
_ISO_SECONDS: Final = (604_800.0, 86_400.0, 3_600.0, 60.0, 1.0)
_FRENCH: Final = LazyPattern(r"(\d{1,2})\s?h\s?([0-5]\d)(?![\dms])", re.IGNORECASE)


# The letters with which names of units begin, optional first letters included. Most numbers in errors have no unit, and
# this check fails sooner than a hundred names. A number is not given back: no unit begins with a digit, "." or ",".
_UNIT_LETTERS: Final = "".join(
    sorted({name[at] for _, names in _UNITS for name in names.split() for at in ((0, 2) if name[1:2] == "?" else (0,))})
)
# Two patterns, because one that begins with a digit, or with a letter, is found fast. They never match the same place.
_DIGITS: Final = LazyPattern(
    rf"\d(?<![\w-]\d)[\d.,]{{0,14}}+(?:(?=\s?(?i:[{_UNIT_LETTERS}]))(?:\s?(?i:{_UNIT})(?![a-zA-Zà-ÿа-я])|\s?h\s?\d)"
    r"|:\d\d:\d)"
)
_ISO_START: Final = LazyPattern(r"P(?:T\d|\dD)")
_UNIT_WORDS: Final = (" hour", " day", " minute", " week")
_NUMBER_WORD: Final = LazyPattern(rf"\b(?:{'|'.join(_WORDS)})$", re.IGNORECASE)


def durations_in(text: str) -> list[re.Match[str]]:
    """Return what looks like a duration or the first part of one: a quick check before sentences are taken apart."""
    found = [*_DIGITS.finditer(text)]
    if "P" in text:
        found += _ISO_START.finditer(text)
    for unit in _UNIT_WORDS:
        at = text.find(unit)
        while at >= 0:
            number = _NUMBER_WORD.search(text, max(0, at - 8), at)
            found += () if number is None else (number,)
            at = text.find(unit, at + 1)
    return sorted(found, key=lambda match: match.start()) if found else found


def read_duration(text: str, start: int) -> tuple[float, int] | None:
    """Return the seconds of the duration written at `start` and where it ends; None if there is none."""
    iso = _ISO.match(text, start)
    if iso is not None:
        return sum(float(part or 0) * unit for part, unit in zip(iso.groups(), _ISO_SECONDS, strict=True)), iso.end()
    clock = _CLOCK.match(text, start)
    if clock is not None:
        return sum(
            float(part or 0) * unit for part, unit in zip(clock.groups(), _ISO_SECONDS[1:], strict=True)
        ), clock.end()
    french = _FRENCH.match(text, start)
    if french is not None:
        return float(french[1]) * 3_600 + float(french[2]) * 60, french.end()
    return _parts(text, start)


def _parts(text: str, start: int) -> tuple[float, int] | None:
    total, at, end, last = 0.0, start, start, float("inf")
    while True:
        part = _PART.match(text, at)
        if part is None:
            break
        unit = next(seconds for group, (seconds, _) in enumerate(_UNITS, start=3) if part[group])
        if unit >= last:  # "in 2 hours, 5 hours" names two durations
            break
        total += _number(part[1], part[2]) * unit
        last, end = unit, part.end()
        joiner = _JOINER.match(text, end)
        if joiner is None:
            break
        at = joiner.end()
    return (total, end) if end > start else None


def _number(digits: str | None, word: str | None) -> float:
    if digits is None:
        return _WORDS[(word or "").lower()]
    head, comma, tail = digits.partition(",")
    if comma and len(tail.partition(",")[0]) == 3:  # noqa: PLR2004  # 1,234 is a thousand; 1,5 is one and a half
        return float(digits.replace(",", ""))
    return float(f"{head}.{tail}" if comma else digits)
