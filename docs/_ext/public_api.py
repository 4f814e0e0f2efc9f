"""API reference: a page `reference/api/NAME.md` gets every public name of the namespace, with its docstring.

Docstrings are written for `help()`. Tables in columns and fenced code become literal blocks, and a list gets the blank line that the
site's generator needs before it.
"""

from __future__ import annotations

import inspect
import re
from enum import Enum
from importlib import import_module
from types import ModuleType, UnionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

FOLDER: Final = "reference/api/"
COLUMNS: Final = re.compile(r"\S {2,}\S")
ITEM: Final = re.compile(r"\s*([-*]|\d+\.) ")


def add_names(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the public names of a namespace to its page: functions, classes, data, each in alphabetical order."""
    name = page.removeprefix(FOLDER)
    if not page.startswith(FOLDER) or name == "index":
        return
    module = import_module("rung" if name == "rung" else f"rung.{name}")
    names = sorted((each for each in module.__all__ if not each.startswith("_")), key=lambda each: _order(module, each))
    directives = [_directive(module, each) for each in names]
    source[0] += "\n\n```{eval-rst}\n" + "\n".join(line for line in directives if line) + "\n```\n"


def readable(_app: Sphinx, _what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Write a docstring, in place, as the generator reads it."""
    found: list[str] = []
    for paragraph in "\n".join(_without_fences(lines)).split("\n\n"):
        rows = paragraph.split("\n")
        if sum(bool(COLUMNS.search(row)) for row in rows) > 1 and not rows[0].startswith(" "):
            found += ["::", "", *(f"    {row}" for row in rows), ""]
        else:
            found += [*_with_room_for_lists(rows), ""]
    lines[:] = found


def _without_fences(lines: list[str]) -> Iterator[str]:
    """Write fenced code as a literal block."""
    is_code = False
    for line in lines:
        if line.strip().startswith("```"):
            is_code = not is_code
            yield from ("", line[: len(line) - len(line.lstrip())] + "::", "") if is_code else ("",)
        else:
            yield f"    {line}" if is_code and line.strip() else line


def _with_room_for_lists(rows: list[str]) -> Iterator[str]:
    for before, row in zip(["", *rows], rows, strict=False):
        if ITEM.match(row) and before.strip() and not ITEM.match(before) and not before.startswith(" "):
            yield ""
        yield row


def _order(module: ModuleType, name: str) -> tuple[bool, bool, str]:
    value = getattr(module, name)
    return not inspect.isroutine(value), not inspect.isclass(value), name.lower()


def _directive(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return ""  # a namespace, which has its own page
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    elif inspect.isroutine(value):
        kind = "autofunction"
    else:
        written = re.sub(r"[\w.]*\.(\w+)", r"\1", str(value)) if isinstance(value, UnionType) else type(value).__name__
        return f".. py:data:: {module.__name__}.{name}\n   :type: {written}\n"
    # A name that the root exports too is in the index once.
    again = "   :no-index:\n" if module.__name__ != "rung" and name in import_module("rung").__all__ else ""
    members = "   :undoc-members:\n" if inspect.isclass(value) and issubclass(value, Enum) else ""
    return f".. {kind}:: {module.__name__}.{name}\n{again}{members}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", add_names)
    app.connect("autodoc-process-docstring", readable, priority=400)  # before the sections are read
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
