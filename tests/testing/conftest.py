"""One lab for all tests of a process, with a new script for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rung.testing
from tests.testing.clients import Asker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared() -> Iterator[tuple[rung.testing.Lab, Asker]]:
    with rung.testing.lab() as lab, Asker(lab.url) as asker:
        yield lab, asker


@pytest.fixture
def lab(shared: tuple[rung.testing.Lab, Asker]) -> rung.testing.Lab:
    shared[0].use()
    return shared[0]


@pytest.fixture
def asker(shared: tuple[rung.testing.Lab, Asker]) -> Asker:
    return shared[1]
