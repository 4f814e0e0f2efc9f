"""One gateway for the tests of a module; each test sets what its upstream sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.upstream.scripted import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig() as rig:
        yield rig
