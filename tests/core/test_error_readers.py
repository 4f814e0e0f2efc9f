"""Registry of error readers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.classify.error_readers import READERS, reader_for, register_table
from rung.core.domain.failures import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = Evidence(text="own")
TABLE = {"pkg_a": f"{__name__}:read", "pkg_b": f"{__name__}:read"}


def read(_: object) -> Evidence:
    return Evidence(text="from the table")


def own(_: object) -> Evidence:
    return OWN


@pytest.fixture
def table() -> Iterator[None]:
    READERS["pkg_b"] = own
    register_table(f"{__name__}:TABLE")
    yield
    for package in TABLE:
        READERS.pop(package, None)


def test_a_table_is_loaded_at_the_first_lookup(table: None) -> None:
    """A target is imported when it is asked for; a reader registered by hand stays; an unknown package has none."""
    assert "pkg_a" not in READERS
    found = reader_for("pkg_a")
    assert found is not None
    assert found(object()) == Evidence(text="from the table")
    assert reader_for("pkg_b") is own
    assert reader_for("pkg_c") is None


def test_every_import_of_rung_knows_the_adapters() -> None:
    """Whichever module comes first, an SDK's own object is read by its adapter, and no adapter is loaded before."""
    code = (
        "from rung.core.classify.classifier import classify; import sys, json\n"
        "assert not [name for name in sys.modules if name.startswith('rung.adapters')]\n"
        "try: json.loads('{')\n"
        "except ValueError as error: print(classify(error).kind, 'rung.adapters.errors.validation' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["malformed_output", "True"]
