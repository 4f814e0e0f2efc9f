"""Text made of labelled lines (`Label: value`): how workers and a conductor write to one another.

Written by hand as often as by us, so reading forgives: case, indentation, list marks, bold labels, any order.
A value of several lines goes on in lines that begin with a bar, so that what it says is never taken for a label.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BAR: Final = "| "
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\.\d{1,6})?")
_YES: Final = re.compile(r"\W*(yes|true|no|false)\b", re.IGNORECASE)
NOTHING: Final = frozenset({"none", "no", "0", "nothing", "n/a", "na", "-"})


def written(header: str, fields: Iterable[tuple[str, str]]) -> str:
    """The header and a line for each field that has a value."""
    lines = [header]
    for label, value in fields:
        first, *more = value.strip().split("\n")
        if first:
            lines += [f"{label}: {first}", *(BAR + line for line in more)]
    return "\n".join(lines)


def fields_in(text: str, labels: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The values by name; `labels` has the spellings of each. Of two lines with one label the last counts."""
    spelled = {spelling.lower(): name for name, spellings in labels.items() for spelling in spellings}
    pattern = _pattern(tuple(sorted(spelled, key=len, reverse=True)))
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        bare = line.lstrip(" \t")
        if bare.startswith("|"):
            more = bare.removeprefix("|").removeprefix(" ")
        elif match := pattern.match(line):
            current = found[spelled[match[1].lower()]] = []
            more = match[2]
        else:
            more = line
        if current is not None:
            current.append(more)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


@lru_cache(maxsize=32)
def _pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(spelling) for spelling in spellings)
    return re.compile(rf"[\s>#*+-]*({names})\**[ \t]*:\**[ \t]*(.*)", re.IGNORECASE | re.DOTALL)


def number_in(text: str, low: float, high: float) -> float | None:
    """The first number of a text, where it is between these; None where there is none."""
    match = _NUMBER.search(text)
    number = float(match[0]) if match else None
    return number if number is not None and low <= number <= high else None


def whole_in(text: str, low: int, high: int) -> int | None:
    """The first number of a text, where it is a whole one between these."""
    number = number_in(text, low, high)
    return int(number) if number is not None and number == int(number) else None


def yes_in(text: str) -> bool | None:
    """What a yes or no at the start of a text says; None for neither."""
    match = _YES.match(text)
    return match[1].lower() in {"yes", "true"} if match else None


def yes_or_no(value: bool | None) -> str:  # noqa: FBT001  # it is the value that is written
    """The word for it; nothing where it is not known."""
    return "" if value is None else "YES" if value else "NO"


def percent(value: float | None) -> str:
    """A percentage as it is written; nothing where it is not known."""
    return "" if value is None else f"{value:g}%"


def says_nothing(text: str) -> bool:
    """Does this only say that there is nothing to say (none, n/a, 0)?"""
    return text.strip().strip(".").lower() in NOTHING


def severity_in(text: str) -> str:
    """The worst severity a text about deviations names (high, medium, low), or nothing."""
    said = text.lower()
    for level in ("high", "medium", "low"):
        if re.search(rf"(?<!no )(?<!0 )\b{level}\b", said):
            return level
    return ""
