"""Whole crews in simulated time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from tests.crew.simulated import World

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("RUNG_CREW_SEEDS", "12"))


def test_in_fair_weather_everything_is_done(tmp_path: Path) -> None:
    """Eight workers complete forty tasks in dependency order."""
    world = World(tmp_path, 0, stormy=False)
    world.run()
    world.check()
    assert {row.state for row in world.table.tasks()} == {TaskState.COMPLETE}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_in_a_storm_every_task_ends_honestly(tmp_path: Path, seed: int) -> None:
    """Workers fail in every way and the conductor is killed twice: no task is lost or done twice."""
    world = World(tmp_path, seed)
    world.run()
    world.check()
