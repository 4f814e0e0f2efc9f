"""Parse the wait that a server requests: from headers, a JSON body or a sentence.

A wait that depends on the clock (a date, a time of day, a timestamp) is read by `reset_times`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.durations import MAX_WAIT_SECONDS, parse_duration, plausible
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.rate_limit_headers import parse_date, seconds_until, window_wait
from rung.core.classify.reopening import reopening_wait

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_WAIT_SECONDS", "parse_duration", "wait_in_headers", "wait_in_text"]


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
                seconds = seconds_until(parse_date(value), headers, now)
            if seconds is not None:
                return seconds
    return window_wait(headers, now)


def _parse_number(value: str, unit: float) -> float | None:
    try:
        return plausible(float(value) * unit)
    except ValueError:
        return None


# Marker (its first letter is left out, so that case does not matter), endings as a field name, endings in a sentence.
_WAIT_HINTS: Final = (
    ("etry", ("Delay", "_delay", "_after", "After", "_in", "In"), (" after ", " in ")),
    (
        "eset",
        ("s_in_seconds", "_after", "Delay", "sInSeconds", "_in_seconds", "_in", "s_in", "In", "sIn"),
        (" in ", "s in ", " after ", "s after "),
    ),
    ("gain", (), (" in ", " after ")),
    ("ait", ("_seconds", "_time", "Seconds", "Time", "_s"), (" ", " for ")),
    ("等待", (), ("",)),
    ("stimated", ("_time",), ()),
    ("lear", ("s_in", "sIn"), ()),
)
_LIMIT_WORDS: Final = (
    "imit", "apacity", "essages", "equests", "udget", " cap", "ímite", "uota", "sage", "redit", "llowance", "xceeded", "xhausted", "oo many", "hrottl", "ontingent", "имит", "вот", "限", "额度",
    "配额", "上限", "한도",
)  # fmt: skip
_MAX_CHARS: Final = 5_000
_FIRST_TIMESTAMP: Final = 1_000_000_000.0  # a larger number is a time
_FIELD_VALUE: Final = LazyPattern(r"(\w{0,12})\\*[\"']?\s?:\s*\\*[\"']?(-?\d{1,12}(?:\.\d{1,9})?)([a-z]?)")
_PROTO_SECONDS: Final = LazyPattern(r"\s?\{\s{0,12}seconds:\s?(\d{1,9})")  # Google's errors in protobuf text


def wait_in_text(text: str) -> float | None:
    """Return the seconds that an error's text asks to wait: a JSON field, or "try again in 1m3.5s"."""
    for word, fields, followers in _WAIT_HINTS:
        if word in text:
            seconds = _wait_in_field(text, word, fields)
            if seconds is None:
                seconds = _wait_in_sentence(text, word, followers)
            if seconds is not None:
                return seconds
    return _wait_in_limit(text)


def _wait_in_field(text: str, word: str, endings: tuple[str, ...]) -> float | None:
    for ending in endings:
        at = text.find(word + ending)
        if at < 0 or (at > 1 and text[at - 2].isalpha() and not text.startswith("quotaR", at - 6)):
            continue  # totalRetryDelay is the time already waited
        end = at + len(word) + len(ending)
        value = _FIELD_VALUE.match(text, end)
        if value is None:
            block = _PROTO_SECONDS.match(text, end)
            if block is not None:
                return plausible(float(block[1]))
        elif value[3]:
            return parse_duration(text, value.start(2))
        else:
            return plausible(float(value[2]) * (0.001 if value[1].lower().endswith("ms") else 1.0))
    return None


_NOT_A_WAIT: Final = ("not ", "n't ", "onnection ", "tream ")  # before "retry in 5 s", "reset after 30 s"


def _wait_in_sentence(text: str, word: str, followers: tuple[str, ...]) -> float | None:
    for follower in followers:
        at = text.find(word + follower)
        seconds = (
            None
            if at < 0 or text.endswith(_NOT_A_WAIT, 0, at - 1)
            else parse_duration(text, at + len(word) + len(follower))
        )
        if seconds is not None:
            return seconds
    return None


_KEY_VALUE: Final = LazyPattern(
    r"(?:resets?|retry|wait|cooldown)(?:_\w{1,16})?=(\d{1,9}(?:\.\d{1,6})?)(?![\d.:-])(ms|[smhd])?"
)
_COUNTED: Final = LazyPattern(r"\d{1,3}(?:/| of )\d{1,3}\b")
_COUNT_REACH: Final = 50


def _names_limit(text: str) -> bool:
    for word in _LIMIT_WORDS:  # noqa: SIM110  # a generator expression costs more than the search
        if word in text:
            return True
    return False


def _wait_in_limit(text: str) -> float | None:
    """Return the wait that a sentence about a limit names in any other form, or that a client announces for it."""
    if not _names_limit(text):
        return None
    at = text.rfind("etrying in ")
    if at >= 0 and _COUNTED.search(text, at, at + _COUNT_REACH):
        return None  # "Retrying in 26 s (attempt 5/10)" is the client's own backoff
    seconds = None if at < 0 else parse_duration(text, at + len("etrying in "))
    if seconds is None:
        seconds = _wait_in_key_value(text)
    if seconds is None:
        seconds = reopening_wait(text if len(text) <= _MAX_CHARS else text[-_MAX_CHARS:])
    return seconds


def _wait_in_key_value(text: str) -> float | None:
    """Return the wait of "resets_in=3600s" in a line of keys and values."""
    found = _KEY_VALUE.search(text) if "=" in text else None
    if found is None:
        return None
    if found[2]:
        return parse_duration(text, found.start(1))
    return plausible(float(found[1])) if float(found[1]) < _FIRST_TIMESTAMP else None
