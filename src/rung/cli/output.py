"""Output helpers of the commands: JSON, durations, costs, paragraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rung.cli.terminal import MAX_WIDTH
from rung.core.domain.dollars import format_dollars
from rung.core.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.policy.worst_case import WorstCase

MINUTE: Final = 60
HOUR: Final = 3600

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def print_json(value: object) -> None:
    """Print one JSON document: indented on a terminal, on one line otherwise."""
    import sys

    click.echo(json_text(value, indent=2 if sys.stdout.isatty() else None))


def json_text(value: object, indent: int | None = None) -> str:
    """Return a JSON document with the letters of every language, unless standard output cannot have them unchanged."""
    import json
    import sys

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # another locale, or bytes of a command that are no text
        return json.dumps(value, indent=indent)
    return text if printable(text) == text else json.dumps(value, indent=indent)  # the streams remove control sequences


def format_seconds(amount: float | None) -> str:
    """Return a duration as text: 2 h, 5 min, 1.5 s."""
    if amount is None:
        return "no time limit"
    for unit, name in ((HOUR, "h"), (MINUTE, "min")):
        if amount and amount % unit == 0:
            return f"{amount / unit:g} {name}"
    return f"{amount:g} s"


def pluralize(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in the right form."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_worst_case(case: WorstCase) -> str:
    """Return the most attempts, time and money that an incident can take, as text."""
    attempts = "any number of attempts" if case.attempts is None else pluralize(case.attempts, "attempt")
    price = "no price known" if not case.dollars else format_dollars(case.dollars)
    return f"{attempts}, {format_seconds(case.seconds)}, {price}"


def paragraph(text: str, indent: int = 0, hang: int = 0) -> str:
    """Return text wrapped at the width of the terminal; lines after the first are indented by `hang` more."""
    import shutil
    from textwrap import fill

    text = printable(text)
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    first, later = " " * indent, " " * (indent + hang)
    return fill(text, max(width, indent + 30), initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def print_row(label: str, text: str | Sequence[str], width: int = 13) -> None:
    """Print a label and the text beside it; several texts become a list."""
    items = (text,) if isinstance(text, str) else [f"- {item}" for item in text]
    for item in items:
        body = paragraph(item, indent=width + 2, hang=0 if isinstance(text, str) else 2)
        click.echo(f"  {click.style(f'{label:<{width}}', dim=True)}{body[width + 2 :]}")
        label = ""
