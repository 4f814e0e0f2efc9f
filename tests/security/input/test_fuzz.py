"""A slice of `make fuzz`: each reader at the edges gets some odd inputs in the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.input.fuzz_targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_readers(target: Callable[[], None]) -> None:
    """Whatever it gets, the reader answers or refuses; nothing else is raised."""
    target()
