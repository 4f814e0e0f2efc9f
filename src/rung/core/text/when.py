"""Times as people and programs write them: an age, a date, an ISO 8601 time, or Unix seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOWED: Final = "an age (30m, 12h, 7d, 2w), a date (2026-11-01), an ISO 8601 time or Unix seconds"
UNIT_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS: Final = re.compile(r"\d{9,11}(?:\.\d+)?")


def parse_when(text: str, now: float) -> float:
    """Return a time in Unix seconds. A date or time without a zone is UTC. Raises ValueError if the text is none."""
    text = text.strip()
    ago = _AGE.fullmatch(text)
    if ago:
        return now - float(ago[1]) * UNIT_SECONDS[ago[2]]
    if _SECONDS.fullmatch(text):
        return float(text)
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
