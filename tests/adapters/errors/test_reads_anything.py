"""What holds for every adapter: it loads nothing foreign, and no object breaks it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.errors.registry import READERS
from rung.core.domain.failures import Evidence

MODULES = sorted({target.partition(":")[0] for target in READERS.values()})


class Hostile:
    """Every attribute of it breaks."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no text")


class HostileError(Exception):
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Strange(Exception):
    """Every attribute of it is the same strange value."""

    def __init__(self, value: object) -> None:
        super().__init__(value)
        self.value = value

    def __getattr__(self, name: str) -> Any:
        return None if name.startswith("__") else self.value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from(["error", "Error", "type", "code", "details", "ResponseMetadata"]), inner)
        | inner.map(Strange)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("name", MODULES)
@given(value=VALUES)
def test_no_exception_breaks_it(name: str, value: object) -> None:
    """Whatever stands in its attributes."""
    assert isinstance(import_module(name).read(Strange(value)), Evidence | None)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    "thing", [None, 5, "text", {}, [], object, Hostile(), HostileError()], ids=lambda thing: type(thing).__name__
)
def test_no_object_breaks_it(name: str, thing: object) -> None:
    """What is no exception, and what breaks when it is looked at."""
    assert isinstance(import_module(name).read(thing), Evidence | None)


def test_no_adapter_loads_what_it_reads() -> None:
    """Reading an object needs nothing but the object."""
    foreign = sorted(set(READERS) - set(sys.stdlib_module_names))
    code = (
        f"import importlib, sys\n"
        f"for name in {MODULES!r}: importlib.import_module(name)\n"
        f"print([name for name in {foreign!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
