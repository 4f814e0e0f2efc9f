"""Heartbeats that are late although their workers are well: a busy machine, a slow or a new conductor, a long outage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from tests.crew.simulated import STALE, World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crew.simulated import Worker


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a crew in simulated time whose two workers have claimed their tasks."""
    made = World(tmp_path, 0, stormy=False, tasks=2)
    made.conductor.run_once()
    for worker in made.processes.running.values():
        worker.steps_needed = 1_000
    beat(made)
    made.conductor.run_once()
    return made


def beat(world: World) -> None:
    """Let every worker beat once."""
    for worker in list(world.processes.running.values()):
        worker.act(world.table, world.now)


def generations(world: World) -> list[int]:
    """Return the generations of the tasks that their first workers still work on: 1 each."""
    return [row.generation for row in world.table.tasks(TaskState.WORKING)]


def silence(world: World) -> Worker:
    """Stop one worker for ever, and return it."""
    worker = next(iter(world.processes.running.values()))
    worker.stopped_until = float("inf")
    return worker


def test_a_new_conductor_counts_from_its_own_start(world: World) -> None:
    """Conductor and table were away for longer than a worker may be silent: the next conductor evicts nobody for it."""
    world.now += 2 * STALE
    world.conductor = world.new_conductor()
    world.conductor.run_once()
    assert generations(world) == [1, 1]
    silent = silence(world)
    for _ in range(26):
        world.now += world.poll
        beat(world)
        world.conductor.run_once()
    assert (silent.alive, len(generations(world)), world.processes.mistakes) == (False, 1, [])


def test_a_slow_conductor_evicts_nobody(world: World) -> None:
    """On a machine so busy that the conductor looks seldom, a worker whose heartbeats are as late as its looks is kept."""
    for _ in range(3):
        world.now += STALE * 0.45
        world.conductor.run_once()
    assert generations(world) == [1, 1]
    beat(world)
    assert (generations(world), world.processes.mistakes) == ([1, 1], [])


def test_a_task_with_less_patience_counts_too(world: World) -> None:
    """A pause of the whole machine is no silence of a task whose own `stale_after` is shorter than the crew's."""
    world.now += STALE * 1.5  # less than half of the crew's own 540 seconds
    world.conductor.run_once()
    assert generations(world) == [1, 1]


def test_a_long_poll_still_finds_a_silent_worker(world: World) -> None:
    """A conductor that polls less often than half of `stale_after` evicts a silent worker, and keeps one that beats."""
    world.poll = STALE * 0.75
    world.conductor = world.new_conductor()
    silent = silence(world)
    for _ in range(4):
        world.now += world.poll
        beat(world)
        world.conductor.run_once()
    assert (silent.alive, len(generations(world)), world.processes.mistakes) == (False, 1, [])
