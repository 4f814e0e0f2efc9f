"""Nothing is completed on trust: no task without an instruction, no review without evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.core.crew.evidence import NOBODY_CHECKED
from rung.crew.judgement import CommandJudgement
from rung.store.crew.conductor_key import load_key
from rung.store.crew.rows import NewTask
from tests.crew.review_text import review
from tests.crew.simulated import World
from tests.crew.test_conducted import RUNG, Place, place
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.crew.rows import TaskRow

__all__ = ["place"]  # a fixture


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with one task and no launched worker: the test is the worker."""
    made = World(tmp_path, 0, stormy=False, tasks=0)
    made.table.add_task(NewTask(task_id="house", instruction="Build it.", command=(), stale_after=120.0))
    return made


def house(world: World) -> TaskRow:
    return world.table.require_task("house")


def insert_row(world: World) -> None:
    """Insert a row as a program with the crew's key does, without a word of what to do."""
    connection = world.table.connection
    connection.begin()
    connection.execute("INSERT INTO crew_conductor (key) VALUES (?)", [load_key(connection)])
    connection.execute("INSERT INTO orchestration_tasks (task_id, state) VALUES ('empty', 'watching')")
    connection.execute("DELETE FROM crew_conductor")
    connection.commit()


def test_a_row_without_an_instruction_is_escalated_and_never_launched(world: World) -> None:
    """Its report says what is missing; no worker is launched for it."""
    insert_row(world)
    world.conductor.run_once()
    row = world.table.require_task("empty")
    assert (row.state, row.outcome) == (TaskState.EXITED, "escalated")
    assert "no instruction" in row.note
    assert "empty" not in world.processes.running


def test_an_empty_task_that_was_claimed_first_is_not_approved(world: World) -> None:
    """A worker that claims it before the conductor sees it gets no approval."""
    insert_row(world)
    claim = world.table.claim("empty", "s1")
    world.table.request_review(claim, review(0), checkpoint=1)
    world.conductor.handle_pending()
    assert world.table.require_task("empty").outcome == "escalated"


def test_a_row_with_an_instruction_message_is_a_task(world: World) -> None:
    """The first instruction message of a program that knows only SQL is its instruction."""
    insert_row(world)
    world.table.post_message("empty", "task-00", "Build the shed.", MessageType.INSTRUCTION)
    world.conductor.run_once()
    assert "empty" in world.processes.running


def without_tests(tests: str) -> str:
    return review(0).replace("Tests: all pass", f"Tests: {tests}" if tests else "")


@pytest.mark.parametrize("tests", ["not run", "", "should pass", "n/a"])
def test_a_review_without_evidence_is_sent_back(world: World, tests: str) -> None:
    """The best grade does not help; the answer says what evidence is."""
    claim = world.table.claim("house", "s1")
    world.table.request_review(claim, without_tests(tests), checkpoint=1)
    world.conductor.handle_pending()
    assert house(world).state is TaskState.REVIEW_FAILED
    assert "12 passed (make test)" in world.table.messages("house", types=(MessageType.REJECTION,))[-1].message


@pytest.mark.parametrize(
    ("approve", "state"), [("true", TaskState.REVIEW_APPROVED), ("false", TaskState.REVIEW_FAILED)]
)
def test_a_judge_may_approve_without_tests(world: World, approve: str, state: TaskState) -> None:
    """A judge that has read the work decides."""
    world.conductor.crew.judgement = CommandJudgement(["sh", "-c", f"echo '{{\"approve\": {approve}}}'"])
    claim = world.table.claim("house", "s1")
    world.table.request_review(claim, without_tests("not run"), checkpoint=1)
    wait_until(lambda: world.conductor.handle_pending() and house(world).state is not TaskState.NEEDS_REVIEW)
    assert house(world).state is state


def run(place: Place, *options: str, **crew: object) -> tuple[int, str]:
    command = [
        *RUNG,
        "worker",
        "run",
        *options,
        "--poll-interval",
        "0.1",
        "--",
        "sh",
        "-c",
        "cat >/dev/null; echo x >>ran",
    ]
    place.plan([{"id": "house", "workdir": ".", "command": command}], **crew)
    place.start()
    return place.end()


@pytest.mark.usefixtures("measured_processes")
def test_a_worker_without_a_check_is_warned_of_and_not_approved(place: Place) -> None:
    """The plan's owner is told before; the finished work waits for a person, and the command is not run again."""
    code, said = run(place)
    assert code == 4, said
    assert "house: rung worker run has no --check" in said
    assert (place.folder / "ran").read_text() == "x\n"
    assert (place.task("house").outcome, place.task("house").note) == ("escalated", NOBODY_CHECKED)
    assert NOBODY_CHECKED in (place.runtime / "escalations" / "house.md").read_text()


@pytest.mark.usefixtures("measured_processes")
def test_a_person_approves_the_work_that_nobody_checked(place: Place) -> None:
    """In an attended crew the worker waits for that person."""
    command = [*RUNG, "worker", "run", "--poll-interval", "0.1", "--", "true"]
    place.plan([{"id": "house", "command": command}], attended=True)
    place.start()
    place.until(lambda: place.state("house") is TaskState.NEEDS_REVIEW and place.task("house").note.startswith("asks:"))
    assert place.say("crew", "reply", "house", "I looked", "--approve").returncode == 0
    code, said = place.end()
    assert code == 0, said


@pytest.mark.usefixtures("measured_processes")
def test_a_failing_check_is_never_approved(place: Place) -> None:
    """Five reviews say that the tests fail, then the task is a person's."""
    code, said = run(place, "--check", "false")
    assert code == 4, said
    assert place.task("house").state is TaskState.EXITED
    assert all("tests fail" in text for text in place.messages("house", MessageType.REJECTION))
    assert len((place.folder / "ran").read_text().split()) == 6


@pytest.mark.usefixtures("measured_processes")
def test_a_judge_approves_the_work_of_a_worker_without_a_check(place: Place) -> None:
    """The judge is asked, and nobody is warned."""
    judge = [sys.executable, "-c", "print('{\"approve\": true}')"]
    code, said = run(place, judge=judge)
    assert code == 0, said
    assert "--check" not in said
