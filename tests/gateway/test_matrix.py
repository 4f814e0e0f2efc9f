"""A seeded sample of the recovery matrix (`make matrix` runs all of it, and other gateways)."""

from __future__ import annotations

from random import Random

import pytest

from tests.gateway.behind import Behind
from tests.gateway.cells import CELLS, POLICY, TIMEOUTS, Cell, as_good_as_can_be, measure

SEED = 7
SLICE = sorted(Random(SEED).sample(CELLS, 40), key=str)  # not for security


@pytest.mark.parametrize("cell", SLICE, ids=str)
def test_a_cell_is_as_good_as_can_be(cell: Cell) -> None:
    """The answer is complete if possible, else a well-formed error; nothing is lost or repeated."""
    with Behind(policy=POLICY, timeouts=TIMEOUTS) as behind:
        bare = measure(behind.lab, behind.lab.url, cell) if cell.case.startswith("refusal") else None
        found = measure(behind.lab, behind.url, cell)
        assert as_good_as_can_be(cell, found, bare), found
