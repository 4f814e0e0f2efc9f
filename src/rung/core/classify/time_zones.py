"""Read the time zone that is written behind a time of day: "(Europe/Lisbon)", "UTC", "PT", "UTC+8"."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

_PACIFIC, _MOUNTAIN, _CENTRAL, _EASTERN = "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York"
_ABBREVIATIONS: Final = {
    **dict.fromkeys(("Z", "UTC", "GMT"), "UTC"),
    **dict.fromkeys(("PT", "PST", "PDT", "Pacific"), _PACIFIC),
    **dict.fromkeys(("MT", "MST", "MDT", "Mountain"), _MOUNTAIN),
    **dict.fromkeys(("CT", "CDT", "Central"), _CENTRAL),
    **dict.fromkeys(("ET", "EST", "EDT", "Eastern"), _EASTERN),
    **dict.fromkeys(("CET", "CEST"), "Europe/Paris"),
    **dict.fromkeys(("EET", "EEST"), "Europe/Helsinki"),
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    **dict.fromkeys(("CST", "IST", "BST", "AST", "SST", "MSK", "HKT", "SGT", "WIB", "WET", "WEST", "NZST", "NZDT"), ""),
}  # an empty name: a zone, but which one is not certain
_IN_PARENTHESES: Final = LazyPattern(r"\s{0,2}\(([^()\n]{1,40})\)")
_BARE: Final = LazyPattern(r"\s{0,2}([A-Z]{1,4}|Pacific|Mountain|Central|Eastern)(?![a-z])([+-]\d{1,2}(?::?\d\d)?)?")
_BARE_NAME: Final = LazyPattern(r"\s{1,2}([A-Z][A-Za-z]{2,9}/[A-Z][A-Za-z0-9_+-]{1,30}(?:/[A-Z][A-Za-z_]{1,30})?)")
_BEIJING: Final = LazyPattern(r"\s{0,2}\(?(?:beijing|china standard|北京)\b", re.IGNORECASE)
_OFFSET: Final = LazyPattern(r"(?:UTC|GMT)?\s?([+-])(\d{1,2}):?(\d\d)?$")
_NAME: Final = LazyPattern(r"[A-Za-z_]{2,14}(?:/[A-Za-z0-9_+-]{1,30}){1,2}$")


def read_zone(text: str, start: int, local: tzinfo | None) -> tzinfo | None:
    """Return the zone written at `start`; the local one if none is written there; None if it is not known."""
    if _BEIJING.match(text, start):
        return _zone("Asia/Shanghai")
    enclosed = _IN_PARENTHESES.match(text, start)
    if enclosed is not None:
        name = enclosed[1].strip()
        return _zone(name) if name.isupper() or "/" in name or name in _ABBREVIATIONS else local
    offset = _OFFSET.match(text[start : start + 6])
    if offset is not None:
        return _zone(offset[0])
    named = _BARE_NAME.match(text, start)
    if named is not None:
        return _zone(named[1])
    bare = _BARE.match(text, start)
    if bare is None or bare[1] not in _ABBREVIATIONS:
        return local
    return _zone(bare[1] + bare[2]) if bare[2] else _zone(bare[1])


def _zone(name: str) -> tzinfo | None:
    offset = _OFFSET.match(name)
    if offset is not None:
        delta = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-delta if offset[1] == "-" else delta) if delta < timedelta(hours=15) else None
    name = _ABBREVIATIONS.get(name, name)
    if name == "UTC":
        return UTC
    return _named_zone(name) if _NAME.match(name) else None


def _named_zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # not a zone, a directory of zones, or a machine without zone data
        return None
