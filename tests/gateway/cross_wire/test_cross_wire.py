"""The matrix of clients and other providers: each pair of wires with each content, or all of it with RUNG_MATRIX=1."""

from __future__ import annotations

import os

import pytest

from tests.gateway.cross_wire.cells import CELLS, SLICE, Cell
from tests.gateway.cross_wire.rig import KEY, KEY_ENV, problems


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.mark.parametrize("cell", CELLS if os.environ.get("RUNG_MATRIX") else SLICE, ids=str)
def test_a_cell(cell: Cell) -> None:
    """The client's SDK gets the whole answer once, and the other provider accepts the translated request."""
    assert problems(cell) == []
