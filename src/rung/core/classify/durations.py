"""Parse durations as errors write them: "1m3.5s", "6hr 29min", "5 days 22 hours", "~1 week"."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

MAX_WAIT_SECONDS: Final = 366 * 86_400.0  # a longer wait is taken as an error

_UNIT_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART: Final = LazyPattern(
    r"(\d\d{0,11}(?:\.\d{1,9})?)\s?"  # begins with one digit, which is found fast
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])",
    re.IGNORECASE,
)
_JOINERS: Final = frozenset({"", "and", "for", "about", "approximately", "around"})
_MAX_CHARS: Final = 80


def plausible(seconds: float | None) -> float | None:
    """Return a wait from 0 to a year; None for any other."""
    return seconds if seconds is not None and 0 <= seconds <= MAX_WAIT_SECONDS else None


def parse_duration(text: str, start: int = 0) -> float | None:
    """Return the seconds in "1m3.5s", "6hr 29min", "663 hours 23 minutes", "8 seconds"; None without a duration."""
    total = 0.0
    end = start
    for match in _PART.finditer(text, start, start + _MAX_CHARS):
        if text[end : match.start()].strip(" ,~\r\n\t") not in _JOINERS:
            break
        unit = match[2].lower()
        total += float(match[1]) * (0.001 if unit.startswith(("ms", "mil")) else _UNIT_SECONDS[unit[0]])
        end = match.end()
    return plausible(total) if end > start else None
