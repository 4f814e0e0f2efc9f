"""What the commands share on the way to the screen: JSON, amounts in words, near names, the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.policy.policy import WorstCase

MINUTE: Final = 60
HOUR: Final = 3600
WIDTH: Final = 100  # longer lines are no easier to read

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def print_json(value: object) -> None:
    """One JSON document on stdout: a line for programs, indented for people."""
    import json
    import sys

    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, indent=indent, ensure_ascii=False))


def console() -> Any:
    """Rich's console: colour on a terminal only, at most as wide as reads well, 80 columns in a pipe."""
    from rich.console import Console

    made = Console(highlight=False, emoji=False, markup=False)
    made.width = min(made.width, WIDTH)
    return made


def seconds(amount: float | None) -> str:
    """A duration as people say it."""
    if amount is None:
        return "no time limit"
    for unit, name in ((HOUR, "h"), (MINUTE, "min")):
        if amount and amount % unit == 0:
            return f"{amount / unit:g} {name}"
    return f"{amount:g} s"


def dollars(amount: float) -> str:
    """Money, with as many digits as it needs."""
    return f"${amount:.2f}" if amount >= 1 or round(amount, 2) == amount else f"${amount:.6f}".rstrip("0")


def count(number: int, one: str, many: str = "") -> str:
    """A number and its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def worst(case: WorstCase) -> str:
    """The most an incident can take, in words."""
    attempts = "any number of attempts" if case.attempts is None else count(case.attempts, "attempt")
    price = "no price known" if not case.dollars else dollars(case.dollars)
    return f"{attempts}, {seconds(case.seconds)}, {price}"


def paragraph(text: str, indent: int = 0, hang: int = 0) -> str:
    """Text broken at the width of the screen, every line indented, all but the first a little more."""
    import shutil
    from textwrap import fill

    width = min(shutil.get_terminal_size().columns, WIDTH)
    first, later = " " * indent, " " * (indent + hang)
    return fill(text, max(width, indent + 30), initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def row(label: str, text: str | Sequence[str], width: int = 13) -> None:
    """A label and the text beside it; several texts as a list."""
    items = (text,) if isinstance(text, str) else [f"- {item}" for item in text]
    for item in items:
        body = paragraph(item, indent=width + 2, hang=0 if isinstance(text, str) else 2)
        click.echo(f"  {click.style(f'{label:<{width}}', dim=True)}{body[width + 2 :]}")
        label = ""
