"""Fixtures of the engine tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.durable import temporal_server
from tests.engines.fleets import ENGINES, EngineFleet, fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def temporal_address() -> Iterator[str]:
    """Address of a Temporal server for all tests of this process."""
    with temporal_server.server() as address:
        yield address


@pytest.fixture(params=ENGINES)
def engine_fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EngineFleet]:
    """A fleet of each engine."""
    if request.param == "temporal":
        monkeypatch.setenv(temporal_server.GIVEN, request.getfixturevalue("temporal_address"))
    with fleet(request.param, tmp_path) as made:
        yield made
