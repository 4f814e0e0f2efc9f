"""Types of options that are numbers: within bounds that everything behind them can hold."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

MAX_COUNT: Final = 2**31 - 1  # of rows, messages and generations: fits every database
MAX_DAYS: Final = 36_500.0
COUNT: Final = click.IntRange(1, MAX_COUNT)
NUMBER_OF: Final = click.IntRange(0, MAX_COUNT)


class FiniteRange(click.FloatRange):
    """Range of numbers without nan and infinity, which pass comparisons and break clocks."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"'{value}' is not a valid number", param, ctx)
        return number


SECONDS: Final = FiniteRange(0)
SOME_SECONDS: Final = FiniteRange(0, min_open=True)


def refresh_option(seconds: float) -> Callable[[F], F]:
    """Return the option `--interval` of a command that refreshes a screen, with its default."""
    return click.option(
        "--interval",
        "every",
        type=FiniteRange(0.1, 3_600),
        default=seconds,
        show_default=True,
        metavar="SECONDS",
        help="Seconds between two refreshes.",
    )
