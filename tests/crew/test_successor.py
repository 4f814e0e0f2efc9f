"""A successor always has its task: instruction, hand-overs, saved work and what a person said, on every way to a dispatch."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.crew.handoff import Handoff
from rung.core.crew.plan import checked_plan
from rung.crew.plan_sync import apply_plan, insert_plan
from rung.crew.shutdown import shut_down
from rung.store.crew.briefing import worker_instructions
from rung.store.crew.operator_commands import OperatorReply, reply_to_task
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable
from tests.crew.review_text import review
from tests.crew.simulated import World
from tests.crew.test_conducted import RUNG, Place, place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rung.store.crew.rows import TaskRow

__all__ = ["place"]  # a fixture
TEXT = "Build the house.\n\nFour walls, one door, and a roof that holds."


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with the task `house` and no launched worker: the test is the worker."""
    made = World(tmp_path, 0, stormy=False, tasks=0)
    made.table.add_task(NewTask(task_id="house", instruction=TEXT, command=(), stale_after=120.0))
    return made


def house(world: World) -> TaskRow:
    return world.table.require_task("house")


def told(world: World) -> str:
    """Return the newest instruction of the conductor: what a worker in plain SQL reads."""
    said = world.table.messages("house", types=(MessageType.INSTRUCTION,))
    return next(one.message for one in reversed(said) if one.from_session == CONDUCTOR)


def crash(world: World, session: str) -> None:
    """Let a worker claim the task, report progress and fall silent."""
    claim = world.table.claim("house", session)
    world.table.heartbeat(claim, progress=f"{session} at work")
    world.watch(121)
    world.conductor.run_once()
    world.conductor.run_once()


HANDOVERS = {
    "free text": "Done: walls. Left: the door.",
    "the statement of the page": "HANDOFF: context is full\nDone: walls. Left: the door.",
    "a document": Handoff(
        session="s1", reason="context", context=70.0, completed=("walls",), instructions="Done: walls. Left: the door."
    ).body(),
}


@pytest.mark.parametrize("form", HANDOVERS)
def test_a_hand_over_in_any_form_reaches_the_successor(world: World, form: str) -> None:
    """It is given with the whole task, is no crash, and counts as no lost worker."""
    claim = world.table.claim("house", "s1")
    world.table.hand_off(claim, HANDOVERS[form])
    world.conductor.handle_pending()
    assert house(world).state is TaskState.FIX_PROPOSED
    assert world.table.restarts(3_600) == []
    assert TEXT in told(world)
    assert "Done: walls. Left: the door." in told(world)
    assert "crash" not in told(world)
    assert "scratch" not in told(world)


def test_the_tenth_successor_has_the_task_and_the_last_hand_over(world: World) -> None:
    """Nine lost workers later, the task, the hand-over of the first and the saved work of the last are there."""
    claim = world.table.claim("house", "s1")
    world.table.hand_off(claim, "Done: walls. Left: the door.")
    world.conductor.handle_pending()
    for number in range(2, 11):
        crash(world, f"s{number}")
        world.table.update_columns("house", redispatches=0)
    text = worker_instructions(world.table, house(world))
    assert text.count(TEXT) == 1
    assert "Done: walls. Left: the door." in text
    assert str(world.place / "runtime" / "partial" / f"house-{house(world).generation - 1}.md") in text
    assert "crash" in text


def test_an_answer_that_the_lost_worker_had_is_passed_on(world: World) -> None:
    """The review that sent the work back is known to the worker that takes over."""
    claim = world.table.claim("house", "s1")
    world.table.request_review(claim, "CHECKPOINT 1: the roof leaks", checkpoint=1)
    world.conductor.handle_pending()
    world.watch(121)
    world.conductor.run_once()
    world.conductor.run_once()
    assert "REVIEW FAILED" in told(world)


def test_an_approval_replaces_the_rejection_before_it(world: World) -> None:
    """A successor of a worker whose second review passed keeps that work, and is told of no failed review."""
    claim = world.table.claim("house", "s1")
    for text in ("CHECKPOINT 1: the roof leaks", review(1)):
        world.table.request_review(claim, text, checkpoint=1)
        world.conductor.handle_pending()
        world.table.resume(claim)
    world.watch(121)
    world.conductor.run_once()
    world.conductor.run_once()
    assert "REVIEW FAILED" not in told(world)
    assert "scratch" not in told(world)
    assert "Reviews approved so far: 1." in told(world)


def shut_down_and_start(world: World) -> None:
    world.table.claim("house", "s1")
    shut_down(world.conductor.crew, "context runs out")
    world.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
    world.conductor.handle_pending()


def escalate_and_restart(world: World) -> None:
    world.table.claim("house", "s1")
    world.conductor.crew.escalate(house(world), "a person must look")
    reply_to_task(world.table, "house", "the bricks are there now", OperatorReply.RESET)
    assert "the bricks are there now" in worker_instructions(world.table, house(world))


def escalate_and_fix(world: World) -> None:
    world.table.claim("house", "s1")
    world.conductor.crew.escalate(house(world), "a person must look")
    reply_to_task(world.table, "house", "use the red bricks", OperatorReply.FIX)
    assert "use the red bricks" in worker_instructions(world.table, house(world))


def block_a_claim(world: World) -> None:
    world.table.post_message("house", "s9", "CLAIM BLOCKED: locked", MessageType.CLAIM_BLOCKED)
    world.conductor.handle_pending()


def die_unseen(world: World) -> None:
    world.table.claim("house", "s1")
    world.watch(121)
    world.conductor.run_once()
    world.conductor.run_once()


WAYS: dict[str, Callable[[World], None]] = {
    "first": lambda _: None,
    "crash without progress": die_unseen,
    "crash": lambda world: crash(world, "s1"),
    "shutdown": shut_down_and_start,
    "restart by a person": escalate_and_restart,
    "fix by a person": escalate_and_fix,
    "blocked claim": block_a_claim,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_dispatch_carries_the_whole_task(world: World, way: str) -> None:
    """The newest instruction of the conductor has the text, on every way to a new worker."""
    WAYS[way](world)
    assert house(world).open_for_claim
    assert TEXT in told(world)
    assert worker_instructions(world.table, house(world)).count(TEXT) == 1


def test_words_of_a_person_outlive_the_worker_they_were_said_to(world: World) -> None:
    """A later successor still reads them."""
    claim = world.table.claim("house", "s1")
    reply_to_task(world.table, "house", "the door faces south")
    world.table.hand_off(claim, "walls done")
    world.conductor.handle_pending()
    assert "the door faces south" in told(world)


def test_a_revised_task_is_told_as_revised(tmp_path: Path) -> None:
    """After a new plan the new text is the task, also for the next but one."""
    world = World(tmp_path, 0, stormy=False, tasks=0)
    plan = {"crew": {"worker": ["w"]}, "task": [{"id": "house", "instruction": "of wood", "stale_after": 120.0}]}
    insert_plan(world.table, plan, tmp_path)
    world.table.claim("house", "s1")
    new = {**plan, "task": [{"id": "house", "instruction": "of stone"}]}
    apply_plan(world.conductor.crew, new, checked_plan(new))
    assert "of stone" in told(world)
    crash(world, "s2")
    assert "of stone" in told(world)
    assert "of wood" not in told(world)


def test_a_row_that_a_stranger_reset_is_told_all_the_same(world: World) -> None:
    """Without a message of the conductor, `rung worker` still knows the text of the task."""
    world.table.claim("house", "s1")
    world.table.reply(house(world), TaskState.EXITED, "", MessageType.SYSTEM)
    world.table.reply(house(world), TaskState.WATCHING, "go", MessageType.INSTRUCTION)
    assert TEXT in worker_instructions(world.table, house(world))


def test_a_hand_over_of_any_size_is_passed_on(world: World) -> None:
    """A message has a limit; the task stays whole, and the hand-over is cut in its middle."""
    claim = world.table.claim("house", "s1")
    world.table.hand_off(claim, "walls\n" + "x" * 900_000 + "\ndoor")
    world.conductor.handle_pending()
    assert TEXT in told(world)
    assert "walls" in told(world)
    assert "door" in told(world)
    assert len(told(world)) < 100_000


# -- real processes -----------------------------------------------------------------------------------


def worker(script: str) -> list[str]:
    return [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sh", "-c", script]


@pytest.mark.usefixtures("measured_processes")
def test_the_command_of_a_third_successor_has_its_task(place: Place) -> None:
    """Three workers are killed; the standard input of each command has the whole task."""
    script = "n=$(ls in_* 2>/dev/null | wc -l); cat >in_$n; test $n -ge 3 || kill -9 0"
    place.plan([{"id": "house", "instruction": TEXT, "workdir": ".", "command": worker(script)}])
    place.start()
    code, said = place.end()
    assert code == 0, said
    heard = [(place.folder / f"in_{number}").read_text() for number in range(4)]
    assert all(TEXT in text for text in heard)
    assert "Saved work" in heard[3]


@pytest.mark.usefixtures("measured_processes")
@pytest.mark.parametrize("form", ["cli", "sql"])
def test_a_free_hand_over_reaches_the_command(place: Place, form: str) -> None:
    """`rung worker handoff --body` and the SQL of the page are read by the command of `rung worker run`."""
    first = place.folder / "first.sh"
    statement = (
        "BEGIN; INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES ('house', "
        "'$RUNG_SESSION', 'HANDOFF: tired\nDone: walls. Left: the door.', 'handoff'); UPDATE orchestration_tasks SET "
        "state = 'exited', last_heartbeat = datetime('now') WHERE task_id = 'house'; COMMIT;"
    )
    leave = {
        "cli": f'{sys.executable} -m rung worker handoff --body "Done: walls. Left: the door."',
        "sql": f'{sys.executable} {place.folder}/sql.py "{statement}"',
    }[form]
    (place.folder / "sql.py").write_text(
        "import os, sqlite3, sys\nconnection = sqlite3.connect(os.environ['RUNG_CREW'], timeout=30)\n"
        "connection.executescript(sys.argv[1])\n"
    )
    first.write_text(f'eval "$({sys.executable} -m rung worker claim --shell)"\n{leave}\n')
    second = " ".join(f"'{word}'" for word in worker("cat >heard"))
    script = f"if test -e been; then exec {second}; fi; touch been; sh {first}"
    place.plan([{"id": "house", "instruction": TEXT, "workdir": ".", "command": ["sh", "-c", script]}])
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    heard = (place.folder / "heard").read_text()
    assert TEXT in heard
    assert "Done: walls. Left: the door." in heard
    with CrewTable.open(str(place.db)) as table:
        assert table.restarts(3_600) == []


def test_a_claim_prints_the_whole_task(tmp_path: Path) -> None:
    """`rung worker claim` of a successor prints task and hand-over, also from a file."""
    file = tmp_path / "house.md"
    file.write_text(TEXT)
    environment = {**os.environ, "RUNG_CREW": str(tmp_path / "crew.db")}

    def rung(*words: str) -> str:
        done = subprocess.run([*RUNG, *words], env=environment, text=True, capture_output=True, check=True)
        return done.stdout

    rung("crew", "init")
    rung("crew", "add", "house", "--instruction", str(file))
    assert TEXT in rung("worker", "claim", "--task", "house", "--session", "s1")
