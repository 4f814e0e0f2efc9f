"""What was measured, as people read it: times, durations, money and sizes, in few characters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

NOTHING: Final = "-"
TEN: Final = 9.95  # what is rounded to ten or more needs no further digit
HALF_A_CENT: Final = 0.005
STEP: Final = 1_000


def when(at: float | None, *, to: str = "seconds") -> str:
    """A time as people read it, in UTC; `to` minutes leaves the seconds out."""
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M" if to == "minutes" else "%Y-%m-%d %H:%M:%S")


def took(seconds: float | None) -> str:
    """A measured time with two digits that matter: 40 ms, 1.5 s, 12 min, 3.1 h."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * STEP:.0f} ms" if seconds else "0 s"
    unit, name = next((unit, name) for limit, unit, name in _UNITS if seconds < limit)
    return f"{_short(seconds / unit)} {name}"


_UNITS: Final = ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h"), (float("inf"), 86_400, "days"))


def money(dollars: float | None) -> str:
    """Dollars and cents; less than a cent is not nothing."""
    if dollars is None:
        return NOTHING
    return f"${dollars:,.2f}" if dollars >= HALF_A_CENT or not dollars else "<$0.01"


def size(amount: float) -> str:
    """Bytes, as files are measured."""
    for unit in ("B", "kB", "MB", "GB"):
        if amount < STEP:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{_short(amount)} {unit}"
        amount /= STEP
    return f"{_short(amount)} TB"


def percent(share: float | None) -> str:
    """A share of one, in percent; little is not nothing, and nearly all is not all."""
    if share is None:
        return NOTHING
    text = f"{100 * share:.1f}"
    if text == "0.0" and share:
        return "<0.1 %"
    return f"{'99.9' if text == '100.0' and share < 1 else text} %"


def _short(amount: float) -> str:
    return f"{amount:.1f}" if amount < TEN else f"{amount:.0f}"
