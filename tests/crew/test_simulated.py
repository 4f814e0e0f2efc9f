"""Whole crews in simulated time."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from tests.crew.simulated import World
from tests.crew.storm.simulated_storm import StormWorld

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
    """Workers fail and lie, helpers talk nonsense, conductors are killed, stopped and woken: no task is lost or done twice."""
    with closing(StormWorld(tmp_path, seed)) as world:
        world.run()
        world.check()


def test_after_an_outage_of_the_table_no_worker_is_blamed(tmp_path: Path) -> None:
    """Nobody could write a heartbeat for an hour: the workers are not evicted, and the silent one of them is, later."""
    world = World(tmp_path, 0, stormy=False, tasks=2)
    world.conductor.run_once()
    workers = list(world.processes.running.values())
    for worker in workers:
        worker.act(world.table, world.now)
    world.conductor.run_once()
    world.now += 3_600.0
    world.conductor.run_once()
    assert [row.generation for row in world.table.tasks() if row.state is TaskState.WORKING] == [1, 1]
    workers[0].stopped_until = float("inf")
    for _ in range(14):
        world.now += 10.0
        workers[1].act(world.table, world.now)
        world.conductor.run_once()
    assert [workers[0].alive, world.processes.mistakes] == [False, []]
    world.run()
    world.check()
