"""Format times, durations, dollars, sizes and percentages for people, in few characters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rung.core.domain.dollars import format_dollars as format_amount

NO_VALUE: Final = "-"
_ROUNDS_TO_TEN: Final = 9.95  # from here on, a number has two digits without a decimal
_UNIT_STEP: Final = 1_000


def format_time(at: float | None, *, to: str = "seconds") -> str:
    """Return a time in UTC; with `to="minutes"`, without seconds."""
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M" if to == "minutes" else "%Y-%m-%d %H:%M:%S")


def format_duration(seconds: float | None) -> str:
    """Return a duration with two significant digits: 40 ms, 1.5 s, 12 min, 3.1 h."""
    if seconds is None:
        return NO_VALUE
    if seconds < 1:
        return f"{seconds * _UNIT_STEP:.0f} ms" if seconds else "0 s"
    unit, name = next((unit, name) for limit, unit, name in _UNITS if seconds < limit)
    return f"{_two_digits(seconds / unit)} {name}"


_UNITS: Final = ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h"), (float("inf"), 86_400, "days"))


def format_dollars(dollars: float | None) -> str:
    """Return an amount, with as many digits as it needs below ten cents; "-" if it is unknown."""
    return NO_VALUE if dollars is None else format_amount(dollars)


def format_bytes(amount: float) -> str:
    """Return a number of bytes with a decimal unit: 12 kB, 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if amount < _UNIT_STEP:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{_two_digits(amount)} {unit}"
        amount /= _UNIT_STEP
    return f"{_two_digits(amount)} TB"


def format_percent(share: float | None) -> str:
    """Return a share in percent; a share above 0 is never shown as 0.0, one below 1 never as 100.0."""
    if share is None:
        return NO_VALUE
    text = f"{100 * share:.1f}"
    if text == "0.0" and share:
        return "<0.1 %"
    return f"{'99.9' if text == '100.0' and share < 1 else text} %"


def _two_digits(amount: float) -> str:
    return f"{amount:.1f}" if amount < _ROUNDS_TO_TEN else f"{amount:.0f}"
