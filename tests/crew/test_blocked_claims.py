"""A blocked claim is an entry point: by its message alone, within one poll."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.store.crew.operator_commands import reply_to_task
from rung.store.crew.rows import NewTask
from tests.crew.simulated import World
from tests.crew.test_conducted import RUNG, Place, place

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.crew.rows import TaskRow

__all__ = ["place"]  # a fixture
TEXT = "Build the house.\nWith a door."


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world whose conductor has launched a worker for the task `task-01`, which has not claimed it yet."""
    made = World(tmp_path, 0, stormy=False, tasks=0)
    made.table.add_task(NewTask(task_id="task-01", instruction=TEXT, stale_after=120.0))
    made.conductor.run_once()
    return made


def task(world: World) -> TaskRow:
    return world.table.require_task("task-01")


def blocked(world: World, session: str = "") -> None:
    """Let the launched worker say that its claim was blocked, without a fallback row."""
    sender = session or world.table.running_sessions()["task-01"]
    world.table.post_message("task-01", sender, "CLAIM BLOCKED: who knows", MessageType.CLAIM_BLOCKED)


def instructions(world: World) -> list[str]:
    said = world.table.messages("task-01", types=(MessageType.INSTRUCTION,))
    return [one.message for one in said if one.from_session == CONDUCTOR]


def test_a_message_alone_is_seen_at_the_next_poll(world: World) -> None:
    """The failed worker is ended, the instruction is sent again with its text, and another worker is launched."""
    first = world.table.running_sessions()["task-01"]
    blocked(world)
    world.conductor.run_once()
    assert task(world).state is TaskState.WATCHING
    assert instructions(world) == [TEXT, TEXT]
    assert world.table.running_sessions()["task-01"] != first
    world.conductor.run_once()
    assert len(instructions(world)) == 2


def test_a_successor_whose_claim_is_blocked_is_told_what_it_was_told_before(world: World) -> None:
    """The hand-over and the words of a person are in the instruction that is sent again."""
    claim = world.table.claim("task-01", world.table.running_sessions()["task-01"])
    world.table.hand_off(claim, "Done: walls. Left: the door.")
    world.conductor.run_once()
    reply_to_task(world.table, "task-01", "the door faces south")
    blocked(world)
    world.conductor.run_once()
    again = instructions(world)[-1]
    assert again.startswith("HANDOFF (dirty): you take over task-01")
    assert all(part in again for part in (TEXT, "Left: the door.", "the door faces south"))


def test_a_second_blocked_claim_is_a_persons(world: World) -> None:
    """The task is given up with a report."""
    blocked(world)
    world.conductor.run_once()
    blocked(world)
    world.conductor.run_once()
    assert task(world).outcome == "escalated"
    assert "two claims of it were blocked" in task(world).note


def test_a_collision_is_resolved_by_the_session_that_works(world: World) -> None:
    """The failed worker is ended; the owner goes on, also when it waits for a fix."""
    failed = world.table.running_sessions()["task-01"]
    owner = world.table.claim("task-01", "another")
    blocked(world)
    world.table.report_error(owner, "ImportError: No module named foo")
    world.conductor.run_once()
    assert failed not in world.table.running_sessions().values()
    assert task(world).state is TaskState.FIX_PROPOSED
    assert world.table.heartbeat(owner) is TaskState.FIX_PROPOSED
    assert instructions(world) == [TEXT]


def test_an_old_message_is_not_handled_again(world: World) -> None:
    """A conductor that starts anew, or was killed half-way, finds that the task was given out since."""
    blocked(world)
    world.conductor.run_once()
    world.table.set_fact("claim_blocked_seen", "0")
    world.conductor.run_once()
    assert len(instructions(world)) == 2
    assert task(world).outcome == ""


@pytest.mark.usefixtures("measured_processes")
def test_a_worker_that_only_says_so_is_replaced(place: Place) -> None:
    """A real worker writes the message and waits; its successor has the task long before `claim_within`."""
    say = (
        "import os, sqlite3, time\n"
        "with sqlite3.connect(os.environ['RUNG_CREW'], timeout=30) as crew:\n"
        '    crew.execute("INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES'
        " ('house', ?, 'CLAIM BLOCKED: x', 'claim_blocked')\", [os.environ['RUNG_SESSION']])\n"
        "time.sleep(600)\n"
    )
    (place.folder / "say.py").write_text(say)
    second = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sh", "-c", "cat >heard"]
    quoted = " ".join(f"'{word}'" for word in second)
    script = f"if test -e been; then exec {quoted}; fi; touch been; exec {RUNG[0]} say.py"
    place.plan([{"id": "house", "instruction": TEXT, "workdir": ".", "command": ["sh", "-c", script]}])
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert TEXT in (place.folder / "heard").read_text()
