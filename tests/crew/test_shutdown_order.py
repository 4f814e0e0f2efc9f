"""Shutdown of a crew whose workers go on meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import CONDUCTOR, SHUTDOWN_PREFIX, TaskState
from rung.crew.shutdown import shut_down
from rung.store.crew.table import CrewTable
from tests.crew.review_text import review
from tests.crew.simulated import SimulatedProcesses, World

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_worker_that_claims_during_the_shutdown_is_marked_before_its_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first worker is ended, the second one claims its task: it is marked, and then signalled."""
    world = World(tmp_path, 0, stormy=False, tasks=2)
    world.table.update_columns("task-02", depends_on=[])
    world.conductor.run_once()
    end = SimulatedProcesses.end

    def end_slowly(self: SimulatedProcesses, name: str, grace: float = 0.0) -> int | None:
        code = end(self, name, grace)
        for worker in self.running.values():
            worker.act(world.table, world.now)
        return code

    monkeypatch.setattr(SimulatedProcesses, "end", end_slowly)
    shut_down(world.conductor.crew, "a test")
    assert world.table.counts()[TaskState.EXITED] == 1
    check_marked(world)


def test_a_task_that_changes_while_it_is_marked_is_marked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker requests a review between the conductor's read and its write: it is marked in that state."""
    world = World(tmp_path, 0, stormy=False, tasks=1)
    world.conductor.run_once()
    worker = world.processes.running["task-01"]
    worker.act(world.table, world.now)
    reply = CrewTable.reply

    def reply_late(self: CrewTable, *arguments: Any, **columns: Any) -> bool:
        if worker.claim is not None and self.require_task("task-01").state is TaskState.WORKING:
            self.request_review(worker.claim, review(1), checkpoint=1)
        return reply(self, *arguments, **columns)

    monkeypatch.setattr(CrewTable, "reply", reply_late)
    shut_down(world.conductor.crew, "a test")
    assert world.table.require_task("task-01").state is TaskState.EXITED
    check_marked(world)


def test_a_hand_over_that_a_person_set_is_kept(tmp_path: Path) -> None:
    """A conductor whose row was set to `context_recovery` ends in that state, also if a signal stops it."""
    world = World(tmp_path, 0, stormy=False, tasks=1)
    world.conductor.run_once()
    world.table.heartbeat_self(CONDUCTOR, TaskState.CONTEXT_RECOVERY)
    shut_down(world.conductor.crew, "a test", to=TaskState.EXIT_REQUESTED)
    own = world.table.task(CONDUCTOR)
    assert own is not None
    assert own.state is TaskState.CONTEXT_RECOVERY
    check_marked(world)


def check_marked(world: World) -> None:
    """Assert that no worker was signalled before its task was marked."""
    assert [mistake for mistake in world.processes.mistakes if "before it was marked" in mistake] == []
    for row in world.table.tasks(TaskState.EXITED):
        assert row.note == f"{SHUTDOWN_PREFIX} a test"
