"""The few shapes every page is made of."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum

MARK = "<!-- Written by scripts/write_docs.py: change the code, then run `make docs`. -->"


def page(title: str, *parts: str) -> str:
    """A whole page; empty parts are left out."""
    return "\n\n".join([MARK, f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a pipe or a line break in a cell would end it, so they are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {item}" for item in items)


def numbered(items: Iterable[str]) -> str:
    """A list in which the order says something."""
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))


def fence(text: str, language: str = "text") -> str:
    """A block shown as it is."""
    return f"```{language}\n{text.rstrip()}\n```"


def code(value: object) -> str:
    """A name or value in code type."""
    return f"`{value}`"


def codes(values: Iterable[object]) -> str:
    """Several of them."""
    return ", ".join(code(value) for value in values)


def count(number: int, one: str) -> str:
    """A number with its noun: a regular one, or “try”."""
    many = one[:-1] + "ies" if one.endswith("y") else one + "s"
    return f"{number} {one if number == 1 else many}"


def doc(thing: object) -> str:
    """A docstring, its paragraphs each on one line; lines set in by hand stay as they are."""
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return "\n\n".join(_flowed(paragraph) for paragraph in paragraphs)


def remarks(choices: type[StrEnum]) -> dict[str, str]:
    """What the code says beside each member of an enumeration, by its value."""
    found = re.findall(r'^    [A-Z_]+ = "([^"]+)"(?:  # (?!noqa)(.*))?$', inspect.getsource(choices), re.MULTILINE)
    return dict(found)


def _flowed(paragraph: str) -> str:
    columns = re.compile(r"^\S.*\S {2,}\S")
    if any(columns.match(line) for line in paragraph.splitlines()):
        return fence(paragraph)
    return " ".join(paragraph.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
