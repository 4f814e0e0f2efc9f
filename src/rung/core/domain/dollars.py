"""Amounts of US dollars as text."""

from __future__ import annotations

from math import floor, log10
from typing import Final

_FEW_CENTS: Final = 0.1  # below, cents alone would be too coarse
_CENT_DIGITS: Final = 2
_MAX_DIGITS: Final = 9  # as precisely as costs are kept


def format_dollars(amount: float) -> str:
    """Return dollars and cents; below ten cents, two significant digits: $0.0004."""
    if amount == 0 or abs(amount) >= _FEW_CENTS:
        return f"${amount:,.2f}"
    digits = min(_MAX_DIGITS, 1 - floor(log10(abs(amount))))
    dollars, _, fraction = f"{amount:.{digits}f}".partition(".")
    return f"${dollars}.{fraction.rstrip('0').ljust(_CENT_DIGITS, '0')}"
