"""Fixtures of crews of real processes, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crew.running import RunningCrew
from tests.store.conftest import new_schema, postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["postgres_server"]


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningCrew]:
    """Return a crew on either store; its processes are killed afterwards."""
    if request.param == "sqlite":
        made = RunningCrew(tmp_path)
        yield made
        made.close()
        return
    with new_schema(request.getfixturevalue("postgres_server")) as url:
        made = RunningCrew(tmp_path, url)
        yield made
        made.close()
