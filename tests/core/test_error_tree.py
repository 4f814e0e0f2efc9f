"""Drawing of the exception tree in core/domain/errors.py."""

from __future__ import annotations

import ast
from pathlib import Path

import rung
from rung.core.domain import errors

PACKAGE = Path(rung.__file__).parent


ROOTS = {"BaseException", "Exception", "ClickException", "ValueError", "TimeoutError"}


def test_every_exception_is_in_the_drawing() -> None:
    """A new exception class anywhere in the package has to be drawn, with its module where it lives elsewhere."""
    classes: list[tuple[str, set[str]]] = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                classes.append((node.name, {ast.unparse(base).rpartition(".")[2] for base in node.bases}))
    found: set[str] = set()
    while fresh := {name for name, bases in classes if bases & (ROOTS | found)} - found:
        found |= fresh
    assert len(found) > 20
    assert errors.__doc__ is not None
    drawn = errors.__doc__.replace("\n", " ").replace(",", " ").split()
    assert [name for name in sorted(found) if name not in drawn] == []


def test_what_reaches_a_caller_has_one_base() -> None:
    """Every exception that core/errors.py defines is a RungError, but the two that no catch-all may swallow."""
    defined = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == errors.__name__
    ]
    assert [one for one in defined if not issubclass(one, errors.RungError)] == [
        errors.LeaseLost,
        errors.ConductorReplaced,
    ]
