"""Public names explain themselves: docstrings in Google's style that name every argument, with examples that run."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import logging
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.policy.parser import POLICY_KEYS
from rung.engine.recovery_arguments import Ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Data, and aliases of types, that have no docstring of their own.
WITHOUT_DOCSTRING = {"rung.__version__", "rung.testing.FAULTS", "rung.types.Event"}


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public name of the root and of its namespaces."""
    for name in sorted(rung.__all__):
        value = getattr(rung, name)
        yield f"rung.{name}", value
        if isinstance(value, ModuleType):
            yield from ((f"rung.{name}.{inner}", getattr(value, inner)) for inner in value.__all__)


def methods(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of Rung defines."""
    for attribute, value in vars(cls).items():
        found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not attribute.startswith("_") and inspect.isfunction(found):
            yield f"{name}.{attribute}", found


PUBLIC = {name: value for name, value in public_names() if name not in WITHOUT_DOCSTRING}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}
METHODS = {name: value for owner, cls in CLASSES.items() for name, value in methods(owner, cls)}
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


def own_docstring(value: Any) -> str:
    """The docstring that this object itself has, not one that it inherits or that Python made up."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return "" if not isinstance(text, str) or text.startswith(f"{getattr(value, '__name__', '')}(") else text


def section(text: str, *titles: str) -> str:
    """The text of these sections of a docstring in Google's style."""
    found = re.findall(
        rf"^ *(?:{'|'.join(titles)}):\n((?:[ \t]+.*\n|\n)*)", inspect.cleandoc(text) + "\n", re.MULTILINE
    )
    return "\n".join(found)


def described(text: str) -> set[str]:
    """The names that a section describes."""
    return set(re.findall(r"^ {4}\*{0,2}(\w+): \S", text, re.MULTILINE))


def parameters(function: Callable[..., Any]) -> set[str]:
    return {name for name in inspect.signature(function).parameters if name not in ("self", "cls", "_")}


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_every_public_name_has_a_docstring(name: str) -> None:
    """Each public name, method and property has a docstring, whose first line is a sentence."""
    text = own_docstring((PUBLIC | METHODS)[name])
    assert text, f"{name} has no docstring"
    assert text.splitlines()[0].rstrip().endswith((".", "?")), f"{name}: the first line is no sentence"


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_every_argument_is_described(name: str) -> None:
    """A function or method that takes arguments describes each of them."""
    function = (FUNCTIONS | METHODS)[name]
    expected = {parameter for parameter in parameters(function) if parameter not in ("ports", "settings")}
    if not expected or isinstance(inspect.getattr_static(function, "fget", None), property):
        return
    assert expected <= described(section(own_docstring(function), "Args")), name


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_is_described(name: str) -> None:
    """A class describes its public fields, and the arguments of its constructor."""
    cls = CLASSES[name]
    text = own_docstring(cls)
    found = described(section(text, "Args", "Attributes"))
    if dataclasses.is_dataclass(cls):
        expected = {field.name for field in dataclasses.fields(cls) if field.init and not field.name.startswith("_")}
    elif hasattr(cls, "_fields"):
        expected = set(cls._fields)
    else:
        own = vars(cls).get("__init__")
        expected = parameters(own) if inspect.isfunction(own) and not getattr(cls, "_is_protocol", False) else set()
    assert expected <= found, f"{name}: {sorted(expected - found)}"


@pytest.mark.parametrize("function", [rung.recover, rung.recover_sync, rung.guarded], ids=lambda one: one.__name__)
def test_every_keyword_of_a_recovery_is_described(function: Callable[..., Any]) -> None:
    """`help` lists every keyword argument of a recovery with its meaning."""
    assert set(Ports.__annotations__) <= described(section(own_docstring(function), "Args"))


def test_every_setting_of_a_policy_is_described() -> None:
    """`help(rung.policy)` lists every setting."""
    assert set(POLICY_KEYS) <= described(section(own_docstring(rung.policy), "Args"))


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in the docstring of a public name runs and shows what it prints."""
    monkeypatch.setattr(logging.getLogger("rung"), "disabled", True)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for name, value in (PUBLIC | METHODS).items():
        for test in finder.find(value, name, globs={}):
            runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 30
