"""How long we were asked to wait: in headers, in a body, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 366 * 86_400.0  # more than a year is not a wait but a mistake


def wait_in_headers(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asked us to wait; None if it did not say.

    Dates are measured from the response's own `Date`, so no clock is needed and theirs and ours may differ.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is not None:
            seconds = _number(said, unit)
            if seconds is None and unit == 1.0:
                seconds = _until(_date(said), headers)
            if seconds is not None:
                return seconds
    return _spent_window(headers)


def _number(said: str, unit: float) -> float | None:
    try:
        return _sane(float(said) * unit)
    except ValueError:
        return None


def _sane(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 <= seconds <= LONGEST else None


_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_HTTP_DATE: Final = Pattern(r"(?:\w+,? )?(\d{1,2})[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)")


def _date(said: str) -> float | None:
    """An HTTP date, an RFC 3339 time or seconds since 1970, as the last of these."""
    from datetime import UTC, datetime

    try:
        match = _HTTP_DATE.match(said)
        if match is not None:
            day, month, year, hours, minutes, seconds = match.groups()
            midnight = datetime(int(year), _MONTHS[month.lower()], int(day), tzinfo=UTC).timestamp()
            return midnight + int(hours) * 3_600 + int(minutes) * 60 + int(seconds)
        if said[4:5] == "-":
            at = datetime.fromisoformat(said.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        return float(said)
    except (ValueError, KeyError, OverflowError):
        return None


def _until(at: float | None, headers: Mapping[str, str]) -> float | None:
    sent = _date(headers.get("date", ""))
    if at is None or sent is None:
        return None
    return _sane(max(0.0, at - sent))


_WINDOW: Final = Pattern(r"ratelimit-(?:.*-)?remaining")


def _spent_window(headers: Mapping[str, str]) -> float | None:
    """The longest reset among the rate limits of which nothing remains."""
    waits = []
    for name, left in headers.items():
        if _WINDOW.search(name) and left.strip() in {"0", "0.0"}:
            reset = headers.get(name.replace("remaining", "reset"), "")
            seconds = _number(reset, 1.0)
            if seconds is None:
                seconds = duration(reset)
            if seconds is None:
                seconds = _until(_date(reset), headers)
            if seconds is not None:
                waits.append(seconds)
    return max(waits, default=None)


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_TIMES: Final = Pattern(
    r"(\d{1,12}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])",
    re.IGNORECASE,
)


def duration(said: str, start: int = 0) -> float | None:
    """Seconds in "1m3.5s", "6hr 29min", "663 hours 23 minutes", "8 seconds"; None if there is no duration here."""
    total = 0.0
    end = start
    for match in _TIMES.finditer(said, start, start + 80):
        if said[end : match.start()].strip(" ,~") not in {"", "and", "for", "about"}:
            break
        unit = match[2].lower()
        total += float(match[1]) * (0.001 if unit.startswith(("ms", "mil")) else _UNITS[unit[0]])
        end = match.end()
    return _sane(total) if end > start else None


# By a word that must be there: what follows it as a field's name, and what follows it in a sentence.
_ASKED: Final = (
    ("etry", ("Delay", "_delay", "_after", "After"), (" after ", " in ")),
    ("eset", ("s_in_seconds", "_after"), (" in ", "s in ", " after ")),
    ("gain", (), (" in ", " after ")),
    ("ait ", (), ("", "for ")),
    ("stimated", ("_time",), ()),
)
_VALUE: Final = Pattern(r"(\w{0,12})\\*[\"']\s?:\s*\\*[\"']?(-?\d{1,12}(?:\.\d{1,9})?)(m?s)?")


def wait_in_text(text: str) -> float | None:
    """Seconds an error's own text asks us to wait: a field of its JSON, or "try again in 1m3.5s"."""
    for word, fields, followers in _ASKED:
        if word in text:
            seconds = _field(text, word, fields)
            if seconds is None:
                seconds = _sentence(text, word, followers)
            if seconds is not None:
                return seconds
    return None


def _field(text: str, word: str, endings: tuple[str, ...]) -> float | None:
    for ending in endings:
        at = text.find(word + ending)
        if at > 1 and text[at - 2].isalpha():
            continue  # totalRetryDelay: how long it has waited already
        value = None if at < 0 else _VALUE.match(text, at + len(word) + len(ending))
        if value is not None:
            milliseconds = value[3] == "ms" or value[1].lower().endswith("ms")
            return _sane(float(value[2]) * (0.001 if milliseconds else 1.0))
    return None


def _sentence(text: str, word: str, followers: tuple[str, ...]) -> float | None:
    for follower in followers:
        at = text.find(word + follower)
        seconds = None if at < 0 else duration(text, at + len(word) + len(follower))
        if seconds is not None:
            return seconds
    return None
