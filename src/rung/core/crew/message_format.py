"""The text format of crew messages: a header, then labelled lines (`Label: value`).

Workers often write these by hand, so the parser ignores case, indentation, list markers, bold labels and order.
Further lines of a value begin with a bar (`|`), so that their text is never parsed as a label.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONTINUATION: Final = "| "
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\.\d{1,6})?")
_YES_NO: Final = re.compile(r"\W*(yes|true|no|false)\b", re.IGNORECASE)
_NONE_WORDS: Final = frozenset({"none", "no", "0", "nothing", "n/a", "na", "-"})


def format_message(header: str, fields: Iterable[tuple[str, str]]) -> str:
    """Return the header and one line for each field that has a value."""
    lines = [header]
    for label, value in fields:
        first, *more = value.strip().split("\n")
        if first:
            lines += [f"{label}: {first}", *(CONTINUATION + line for line in more)]
    return "\n".join(lines)


def parse_fields(text: str, labels: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the values by field name. `labels` has the accepted spellings of each; the last line of a label wins."""
    name_of = {spelling.lower(): name for name, spellings in labels.items() for spelling in spellings}
    pattern = _label_pattern(tuple(sorted(name_of, key=len, reverse=True)))
    values: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        stripped = line.lstrip(" \t")
        if stripped.startswith("|"):
            value = stripped.removeprefix("|").removeprefix(" ")
        elif match := pattern.match(line):
            current = values[name_of[match[1].lower()]] = []
            value = match[2]
        else:
            value = line
        if current is not None:
            current.append(value)
    return {name: "\n".join(lines).strip() for name, lines in values.items()}


@lru_cache(maxsize=32)
def _label_pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(spelling) for spelling in spellings)
    return re.compile(rf"[\s>#*+-]*({names})\**[ \t]*:\**[ \t]*(.*)", re.IGNORECASE | re.DOTALL)


def parse_number(text: str, low: float, high: float) -> float | None:
    """Return the first number in a text if it is within the bounds, else None."""
    match = _NUMBER.search(text)
    number = float(match[0]) if match else None
    return number if number is not None and low <= number <= high else None


def parse_int(text: str, low: int, high: int) -> int | None:
    """Return the first number in a text if it is an integer within the bounds, else None."""
    number = parse_number(text, low, high)
    return int(number) if number is not None and number == int(number) else None


def parse_yes_no(text: str) -> bool | None:
    """Return the yes or no (true or false) at the start of a text, or None."""
    match = _YES_NO.match(text)
    return match[1].lower() in {"yes", "true"} if match else None


def format_yes_no(value: bool | None) -> str:  # noqa: FBT001  # the value to format, not a flag
    """Return YES or NO; empty for None."""
    return "" if value is None else "YES" if value else "NO"


def format_percent(value: float | None) -> str:
    """Return a percentage; empty for None."""
    return "" if value is None else f"{value:g}%"


def means_none(text: str) -> bool:
    """Return whether a text only says that there is nothing to report (none, n/a, 0)."""
    return text.strip().strip(".").lower() in _NONE_WORDS


def parse_severity(text: str) -> str:
    """Return the worst severity (high, medium, low) in a text about deviations; empty if there is none."""
    lowered = text.lower()
    for level in ("high", "medium", "low"):
        if re.search(rf"(?<!no )(?<!0 )\b{level}\b", lowered):
            return level
    return ""
