"""Simulated time in SQLite: replaces `datetime` and `julianday` by functions that read a given clock."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

UNIX_EPOCH_JULIAN_DAY: Final = 2_440_587.5  # of 1970-01-01
DAY_SECONDS: Final = 86_400.0


def install_clock(raw: Any, clock: Callable[[], float]) -> None:
    """Make `datetime` and `julianday` of this connection, also in triggers, use this clock."""

    def to_julian_day(text: str | None) -> float | None:
        return clock() / DAY_SECONDS + UNIX_EPOCH_JULIAN_DAY if text == "now" else _julian_day(text)

    def to_datetime(text: str | None) -> str | None:
        julian_day = to_julian_day(text)
        return (
            None
            if julian_day is None
            else format_time((julian_day - UNIX_EPOCH_JULIAN_DAY) * DAY_SECONDS if text != "now" else clock())
        )

    create = raw.create_scalar_function if hasattr(raw, "create_scalar_function") else None
    for name, function in (("julianday", to_julian_day), ("datetime", to_datetime)):
        if create is not None:
            create(name, function, 1)
        else:
            raw.create_function(name, 1, function)


def format_time(seconds: float) -> str:
    """Format a time as SQLite does: UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


@lru_cache(maxsize=4_096)
def _julian_day(text: str | None) -> float | None:
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() / DAY_SECONDS + UNIX_EPOCH_JULIAN_DAY
