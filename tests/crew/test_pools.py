"""Crews whose service is limited or overloaded, in simulated time: their tasks wait together and nobody is charged."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.crew.pool import PoolState
from rung.store.crew.operator_commands import wake_pools
from rung.store.crew.rows import TaskLease
from tests.crew.outage import HOUR, OutageWorld

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("RUNG_CREW_SEEDS", "12"))
LIMIT = (300.0, 300.0 + 5 * HOUR, True)  # a five-hour plan window that is used up after five minutes
OVERLOAD = (6 * HOUR, 6 * HOUR + 600.0, False)


def nobody_is_charged(world: OutageWorld) -> None:
    """Assert that all tasks are complete, and that no error, restart or lost worker was counted."""
    world.check()
    rows = world.table.tasks()
    assert {row.state for row in rows} == {TaskState.COMPLETE}
    assert {(row.error_tries, row.redispatches) for row in rows} == {(0, 0)}
    assert world.table.restarts(1e9) == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_crew_of_eight_outlasts_a_plan_limit(tmp_path: Path, seed: int) -> None:
    """Five hours without service: every task completes, uncharged, with no start before the reset and then one probe."""
    world = OutageWorld(tmp_path, seed, [LIMIT])
    world.run()
    nobody_is_charged(world)
    limit = world.outages[0]
    closed_at = min(at for at, _, is_open in world.served.launches if not is_open)
    assert closed_at >= limit.end
    assert len(world.probes()) == 1
    assert world.refusals <= 8
    assert world.now < limit.end + HOUR


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_crew_of_eight_outlasts_an_overload(tmp_path: Path, seed: int) -> None:
    """Ten minutes of 529 that kill the agents: every task completes, uncharged, with at most one probe a minute."""
    world = OutageWorld(tmp_path, seed, [(200.0, 800.0, False)])
    world.run()
    nobody_is_charged(world)
    assert 2 <= len(world.probes()) <= 10
    assert world.most_probes_in_a_minute() == 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_kill_everything_in_the_middle_of_the_park(tmp_path: Path, seed: int) -> None:
    """The conductor and all workers are killed during the park: the next conductor waits until the same time, then goes on."""
    world = OutageWorld(tmp_path, seed, [LIMIT])
    limit = world.outages[0]
    world.run_until(limit.begin + 2 * HOUR)
    before = world.table.pools()["default"]
    assert (before.state, before.until) == (PoolState.PARKED, limit.end)
    world.kill_everything()
    world.run_until(limit.begin + 3 * HOUR)
    assert world.table.pools()["default"] == before
    world.run()
    nobody_is_charged(world)
    assert min(world.probes()) >= limit.end


@pytest.mark.parametrize("seed", range(min(SEEDS, 6)))
def test_a_conductor_killed_at_any_write(tmp_path: Path, seed: int) -> None:
    """The conductor is killed every minute, at any of its writes: every task completes, with at most one probe a minute."""
    world = OutageWorld(tmp_path, seed, [(150.0, 750.0, seed % 2 == 0)])
    for turn in range(200):
        world.turn()
        if turn % 5 == 0:
            world.kill_during_a_write()
    world.run()
    world.check()
    assert world.kills > 5
    assert {(row.state, row.error_tries) for row in world.table.tasks()} == {(TaskState.COMPLETE, 0)}
    assert world.most_probes_in_a_minute() <= 1


def test_both_in_one_day(tmp_path: Path) -> None:
    """Twenty-four tasks on eight workers through a plan limit and an overload: none is charged."""
    world = OutageWorld(tmp_path, 1, [LIMIT, (5.2 * HOUR, 5.2 * HOUR + 600.0, False)], tasks=24)
    world.run()
    nobody_is_charged(world)
    assert world.most_probes_in_a_minute() == 1


def test_the_others_start_one_after_the_other(tmp_path: Path) -> None:
    """After the probe has opened the pool, the others start at least five seconds apart."""
    world = OutageWorld(tmp_path, 3, [LIMIT])
    world.run()
    after = starts_after(world)
    assert len(after) >= 5
    assert min(later - earlier for earlier, later in pairwise(after)) >= 5.0


def starts_after(world: OutageWorld) -> list[float]:
    """Return when tasks were started after the first outage, without its probe."""
    return [at for at, _, is_open in world.served.launches if is_open and at > world.outages[0].end]


def test_a_small_crew_is_soon_at_work_again(tmp_path: Path) -> None:
    """After the pool has opened, a crew of two spreads two starts; then no worker is missing while tasks are ready."""
    world = OutageWorld(tmp_path, 3, [LIMIT], tasks=40, workers=2, steps=(1, 2))
    while len(starts_after(world)) < 2:
        world.turn()
    missing = []
    while ready := [row for row in world.table.tasks(TaskState.WATCHING) if row.task_id not in world.processes.running]:
        if len(world.processes.running) < 2:
            missing.append((world.now, [row.task_id for row in ready]))
        world.turn()
    assert missing == []
    world.run()
    nobody_is_charged(world)


def test_a_large_crew_never_starts_together(tmp_path: Path) -> None:
    """Thirty tasks that waited for their pool start one after the other, also the last ones."""
    world = OutageWorld(tmp_path, 3, [LIMIT], tasks=30, workers=30)
    world.run()
    nobody_is_charged(world)
    starts = starts_after(world)
    assert len(starts) >= 25
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 5.0


def test_a_pool_of_its_own_goes_on(tmp_path: Path) -> None:
    """A task with another account starts and completes while the default pool is parked."""
    world = OutageWorld(tmp_path, 0, [], tasks=2)
    world.table.set_task_pool("task-02", "other")
    first = world.table.claim("task-01", "s1")
    world.table.report_error(first, f"rate limit exceeded, resets at {int(world.now) + 7_200}")
    world.conductor.run_once()
    assert list(world.processes.running) == ["task-02"]
    world.table.hand_off(first, "HANDOFF: asked to stop")
    world.run_until(world.now + HOUR)
    assert [row.state for row in world.table.tasks()] == [TaskState.FIX_PROPOSED, TaskState.COMPLETE]


def test_one_task_cannot_keep_the_others_from_their_work(tmp_path: Path) -> None:
    """A task whose errors look like an outage closes the pool: others probe it and complete, then its error is its own."""
    world = OutageWorld(tmp_path, 0, [], tasks=4, workers=1, always_refused=["task-01"])
    world.run_until(world.now + 3 * HOUR)
    rows = {row.task_id: row for row in world.table.tasks()}
    assert {rows[name].state for name in ("task-02", "task-03", "task-04")} == {TaskState.COMPLETE}
    assert rows["task-01"].error_tries > 0


def test_a_quota_without_a_reset_is_asked_for_once(tmp_path: Path) -> None:
    """An exhausted quota of unknown end ends the unattended crew with one report; the tasks keep their place until woken."""
    world = OutageWorld(tmp_path, 0, [])
    world.conductor.run_once()
    for name, worker in list(world.processes.running.items())[:3]:
        worker.act(world.table, world.now)
        assert worker.claim is not None
        world.table.report_error(worker.claim, "You exceeded your current quota, please check your plan and billing")
        assert world.table.require_task(name).state is TaskState.ERROR
    world.run()
    rows = world.table.tasks()
    assert sorted(row.state for row in rows) == [TaskState.COMPLETE] * 5 + [TaskState.FIX_PROPOSED] * 3
    assert {(row.outcome, row.error_tries, row.redispatches) for row in rows} == {("complete", 0, 0), ("", 0, 0)}
    assert [file.name for file in (tmp_path / "runtime" / "escalations").iterdir()] == ["pool-default.md"]
    said = [one.message for one in world.table.messages(CONDUCTOR, types=(MessageType.SYSTEM,))]
    assert sum("blocked" in text for text in said) == 1
    assert wake_pools(world.table, world.now) == ["default"]
    world.run()
    nobody_is_charged(world)


def test_an_attended_crew_waits_for_the_person(tmp_path: Path) -> None:
    """With a person at hand, a crew whose pool is blocked does not end; it goes on when the pool is opened."""
    world = OutageWorld(tmp_path, 0, [], tasks=1)
    world.conductor.crew.settings = replace(world.conductor.crew.settings, attended=True)
    world.table.report_error(world.table.claim("task-01", "s1"), "You exceeded your current quota, check your billing")
    world.conductor.run_once()
    world.table.hand_off(lease(world), "HANDOFF: asked to stop")
    world.run_until(world.now + HOUR)
    assert world.table.pools()["default"].state is PoolState.BLOCKED
    assert not world.conductor.finish_if_idle()
    wake_pools(world.table, world.now)
    world.run()
    nobody_is_charged(world)


def lease(world: OutageWorld) -> TaskLease:
    """Return the lease of the session that has the only task."""
    row = world.table.require_task("task-01")
    return TaskLease(task_id=row.task_id, session=row.session_id, generation=row.generation)


def test_patience_ends_and_the_ladder_goes_on(tmp_path: Path) -> None:
    """After six hours of overload the failures are counted as before, and the tasks end with a report."""
    world = OutageWorld(tmp_path, 0, [(100.0, 1e9, False)], tasks=3)
    started = world.now
    world.run()
    world.check()
    assert 6 * HOUR <= world.now - started <= 8 * HOUR
    assert {row.outcome for row in world.table.tasks()} == {"escalated"}


def test_a_person_opens_the_pool(tmp_path: Path) -> None:
    """`wake` opens a parked pool at once."""
    world = OutageWorld(tmp_path, 0, [(300.0, 400.0, True)], tasks=2)
    world.outages[0] = type(world.outages[0])(world.outages[0].begin, world.outages[0].end + 9 * HOUR, True)
    world.run_until(world.now + HOUR)
    assert world.table.pools()["default"].state is PoolState.PARKED
    world.outages.clear()
    assert wake_pools(world.table, world.now) == ["default"]
    world.run(hours=1.0)
    nobody_is_charged(world)
