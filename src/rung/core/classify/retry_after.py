"""Parse the wait that a server requests: from headers, a JSON body or a sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_WAIT_SECONDS: Final = 366 * 86_400.0  # a longer wait is taken as an error


def wait_in_headers(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that the response headers ask to wait; None if they do not say.

    Dates are compared with the `Date` header of the response, so clock skew between server and client does not matter.
    Without that header they are compared with `now` (UTC seconds); a date in the past then says nothing.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None:
            seconds = _parse_number(value, unit)
            if seconds is None and unit == 1.0:
                seconds = _seconds_until(_parse_date(value), headers, now)
            if seconds is not None:
                return seconds
    return _exhausted_window_reset(headers, now)


def _parse_number(value: str, unit: float) -> float | None:
    try:
        return _plausible(float(value) * unit)
    except ValueError:
        return None


def _plausible(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 <= seconds <= MAX_WAIT_SECONDS else None


_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_HTTP_DATE: Final = LazyPattern(r"(?:\w+,? )?(\d{1,2})[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)")


def _parse_date(value: str) -> float | None:
    """Return an HTTP date, an RFC 3339 time or a Unix timestamp as a Unix timestamp."""
    from datetime import UTC, datetime

    try:
        match = _HTTP_DATE.match(value)
        if match is not None:
            day, month, year, hours, minutes, seconds = match.groups()
            midnight = datetime(int(year), _MONTHS[month.lower()], int(day), tzinfo=UTC).timestamp()
            return midnight + int(hours) * 3_600 + int(minutes) * 60 + int(seconds)
        if value[4:5] == "-":
            at = datetime.fromisoformat(value.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        return float(value)
    except (ValueError, KeyError, OverflowError):
        return None


def _seconds_until(at: float | None, headers: Mapping[str, str], now: float | None) -> float | None:
    sent = _parse_date(headers.get("date", ""))
    if at is not None and sent is not None:
        return _plausible(max(0.0, at - sent))
    return None if at is None or now is None or at <= now else _plausible(at - now)


_REMAINING_HEADER: Final = LazyPattern(r"ratelimit-(?:.*-)?remaining")


def _exhausted_window_reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the longest reset among the rate-limit windows with nothing remaining."""
    waits = []
    for name, left in headers.items():
        if _REMAINING_HEADER.search(name) and left.strip() in {"0", "0.0"}:
            reset = headers.get(name.replace("remaining", "reset"), "")
            seconds = _parse_number(reset, 1.0)
            if seconds is None:
                seconds = parse_duration(reset)
            if seconds is None:
                seconds = _seconds_until(_parse_date(reset), headers, now)
            if seconds is not None:
                waits.append(seconds)
    return max(waits, default=None)


_UNIT_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION_PART: Final = LazyPattern(
    r"(\d{1,12}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])",
    re.IGNORECASE,
)


def parse_duration(text: str, start: int = 0) -> float | None:
    """Return the seconds in "1m3.5s", "6hr 29min", "663 hours 23 minutes", "8 seconds"; None without a duration."""
    total = 0.0
    end = start
    for match in _DURATION_PART.finditer(text, start, start + 80):
        if text[end : match.start()].strip(" ,~") not in {"", "and", "for", "about"}:
            break
        unit = match[2].lower()
        total += float(match[1]) * (0.001 if unit.startswith(("ms", "mil")) else _UNIT_SECONDS[unit[0]])
        end = match.end()
    return _plausible(total) if end > start else None


# Marker (its first letter is left out, so that case does not matter), endings as a field name, endings in a sentence.
_WAIT_HINTS: Final = (
    ("etry", ("Delay", "_delay", "_after", "After"), (" after ", " in ")),
    ("eset", ("s_in_seconds", "_after"), (" in ", "s in ", " after ")),
    ("gain", (), (" in ", " after ")),
    ("ait ", (), ("", "for ")),
    ("stimated", ("_time",), ()),
)
_FIELD_VALUE: Final = LazyPattern(r"(\w{0,12})\\*[\"']\s?:\s*\\*[\"']?(-?\d{1,12}(?:\.\d{1,9})?)(m?s)?")


def wait_in_text(text: str) -> float | None:
    """Return the seconds that an error's text asks to wait: a JSON field, or "try again in 1m3.5s"."""
    for word, fields, followers in _WAIT_HINTS:
        if word in text:
            seconds = _wait_in_field(text, word, fields)
            if seconds is None:
                seconds = _wait_in_sentence(text, word, followers)
            if seconds is not None:
                return seconds
    return None


def _wait_in_field(text: str, word: str, endings: tuple[str, ...]) -> float | None:
    for ending in endings:
        at = text.find(word + ending)
        if at > 1 and text[at - 2].isalpha():
            continue  # totalRetryDelay is the time already waited
        value = None if at < 0 else _FIELD_VALUE.match(text, at + len(word) + len(ending))
        if value is not None:
            milliseconds = value[3] == "ms" or value[1].lower().endswith("ms")
            return _plausible(float(value[2]) * (0.001 if milliseconds else 1.0))
    return None


def _wait_in_sentence(text: str, word: str, followers: tuple[str, ...]) -> float | None:
    for follower in followers:
        at = text.find(word + follower)
        seconds = None if at < 0 else parse_duration(text, at + len(word) + len(follower))
        if seconds is not None:
            return seconds
    return None
