"""Public names: the typing block of the root, its table and `__all__` agree, and every name can be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rung

ROOT: Any = rung  # whose tables are private
SOURCE = Path(rung.__file__).read_text(encoding="utf-8")
NAMESPACES: tuple[str, ...] = ROOT._NAMESPACES
MAX_NAMES = 26


def typed() -> dict[str, str]:
    """The public names in the typing block, and the modules they are imported from."""
    (block,) = (
        node
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            if str(alias.asname).startswith("_"):
                continue
            assert alias.asname == alias.name  # else it is not exported
            names[alias.name] = str(node.module)
    return names


def test_the_tables_agree() -> None:
    """The typing block, the table of homes and `__all__` have the same names from the same modules."""
    homes = {**ROOT._HOMES, **dict.fromkeys(NAMESPACES, "rung")}
    assert typed() == homes
    assert set(rung.__all__) == {"__version__", *homes}
    assert dir(rung) == sorted(rung.__all__)


def test_the_root_is_small() -> None:
    """The root has at most 26 names, besides its sub-namespaces."""
    assert len(ROOT._HOMES) <= MAX_NAMES


@pytest.mark.parametrize("name", [name for name in rung.__all__ if name != "__version__"])
def test_every_name_imports(name: str) -> None:
    """Every exported name is there, and is the very object of its home."""
    value = getattr(rung, name)
    home = typed()[name]
    assert value is (import_module(f"rung.{name}") if home == "rung" else getattr(import_module(home), name))


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_namespaces(namespace: str) -> None:
    """Every name of a sub-namespace is there, and the root has none of those twice but the errors people raise."""
    module = import_module(f"rung.{namespace}")
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) & set(ROOT._HOMES) <= {"AttemptError", "recover", "recover_sync"}


def test_a_misspelt_name() -> None:
    """A misspelt name is an error at run time, and no type checker is told otherwise."""
    with pytest.raises(AttributeError, match="no attribute 'recoverr'"):
        _ = ROOT.recoverr
    shown = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in [node.name for node in shown]


def test_nothing_is_loaded_before_it_is_used() -> None:
    """Importing the root imports only the places where error readers and the opener of journals are registered."""
    code = "import sys, rung; print(*sorted(name for name in sys.modules if name.startswith('rung')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    readers = ["rung.core", "rung.core.classify", "rung.core.classify.error_readers"]
    assert done.stdout.split() == ["rung", *readers, "rung.engine", "rung.engine.journal_opener"]
