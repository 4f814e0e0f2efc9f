"""Simulated time in SQLite: the functions that know what time it is, asking a clock of ours instead."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

UNIX_EPOCH_JULIAN_DAY: Final = 2_440_587.5  # the Julian day of 1970
DAY_SECONDS: Final = 86_400.0


def install_clock(raw: Any, clock: Callable[[], float]) -> None:
    """Let `datetime` and `julianday` of this connection go by that clock, in triggers, too."""

    def day(text: str | None) -> float | None:
        return clock() / DAY_SECONDS + UNIX_EPOCH_JULIAN_DAY if text == "now" else _day(text)

    def moment(text: str | None) -> str | None:
        found = day(text)
        return None if found is None else format_time((found - UNIX_EPOCH_JULIAN_DAY) * DAY_SECONDS if text != "now" else clock())

    make = raw.create_scalar_function if hasattr(raw, "create_scalar_function") else None
    for name, function in (("julianday", day), ("datetime", moment)):
        if make is not None:
            make(name, function, 1)
        else:
            raw.create_function(name, 1, function)


def format_time(seconds: float) -> str:
    """A time as SQLite writes it: UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


@lru_cache(maxsize=4_096)
def _day(text: str | None) -> float | None:
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() / DAY_SECONDS + UNIX_EPOCH_JULIAN_DAY
