"""A worker in Python: it beats by itself, waits for answers, obeys, and never ends without a word."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.domain.errors import ClaimBlocked, ConfigError, IllegalTransition, LeaseExpired, NoTaskAvailable
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable
from tests.store.crew.stranger import OLD

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK = 0.02  # seconds between two beats


@pytest.fixture
def task(table: CrewTable) -> str:
    table.add_task(NewTask(task_id="task-01", instruction="write the parser"))
    return "task-01"


def conducting(place: str, act: Callable[[CrewTable], object]) -> threading.Thread:
    """A conductor beside the worker: it waits until there is something to decide."""

    def run() -> None:
        with CrewTable.open(place) as table:
            while not table.tasks(TaskState.NEEDS_REVIEW, TaskState.ERROR):
                threading.Event().wait(QUICK)
            act(table)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_worker_claims_reports_is_reviewed_and_completes(table: CrewTable, place: str, task: str) -> None:
    """The whole path, with a conductor that answers beside it."""

    def fix(table: CrewTable) -> None:
        table.reply(
            table.require_task(task), TaskState.FIX_PROPOSED, "FIX PROPOSAL: import it", MessageType.FIX_PROPOSAL
        )

    def approve(table: CrewTable) -> None:
        table.reply(table.require_task(task), TaskState.REVIEW_APPROVED, "REVIEW APPROVED", MessageType.APPROVAL)

    with rung.crew.CrewWorker(place, task, session="s1", beat_every=QUICK) as worker:
        assert [message.message for message in worker.messages()] == ["write the parser"]
        assert worker.beat("read") is TaskState.WORKING
        assert worker.error("no module named parser") == 1
        answering = conducting(place, fix)
        assert worker.wait_for_answer(30, poll=QUICK) == (TaskState.FIX_PROPOSED, "FIX PROPOSAL: import it")
        answering.join()
        assert worker.review("all done", checkpoint=1) == 1
        answering = conducting(place, approve)
        assert worker.wait_for_answer(30, poll=QUICK).state is TaskState.REVIEW_APPROVED
        answering.join()
        worker.complete()
    found = table.require_task(task)
    assert (found.state, found.session_id, found.error_tries, found.progress) == (TaskState.COMPLETE, "s1", 1, "read")
    assert [message.message_type for message in table.messages(task)] == [
        "instruction",
        "error",
        "fix_proposal",
        "review_request",
        "approval",
        "completion",
    ]


def test_it_gives_signs_of_life_while_it_does_something_else(table: CrewTable, place: str, task: str) -> None:
    """In a thread of its own."""
    with rung.crew.CrewWorker(place, task, beat_every=QUICK):
        table.connection.execute("UPDATE orchestration_tasks SET last_heartbeat = ? WHERE task_id = ?", [OLD, task])
        for _ in range(500):
            if not table.require_task(task).is_stale:
                break
            threading.Event().wait(QUICK)
        assert not table.require_task(task).is_stale


@pytest.mark.parametrize("how", ["exception", "silence"])
def test_whoever_leaves_without_completing_hands_over(table: CrewTable, place: str, task: str, how: str) -> None:
    """With the reason, and what it noted for its successor."""

    def work() -> None:
        with rung.crew.CrewWorker(place, task, session="s1") as worker:
            worker.notes.append("step 3 is half done")
            if how == "exception":
                raise ValueError("out of ideas")

    if how == "exception":
        with pytest.raises(ValueError, match="out of ideas"):
            work()
    else:
        work()
    assert table.require_task(task).state is TaskState.EXITED
    (said,) = table.messages(task, types=[MessageType.HANDOFF])
    assert "step 3 is half done" in said.message
    assert ("ValueError: out of ideas" in said.message) == (how == "exception")


def test_a_worker_whose_task_was_ended_and_that_is_interrupted_adds_no_hand_over(
    table: CrewTable, place: str, task: str
) -> None:
    """The conductor ends a lost worker by a signal: what the worker says then would count as an orderly hand-over."""

    def work() -> None:
        with rung.crew.CrewWorker(place, task, session="s1"):
            table.reply(table.require_task(task), TaskState.EXITED, "EVICTED", MessageType.SYSTEM)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not table.messages(task, types=[MessageType.HANDOFF])


def test_it_obeys_when_it_is_asked_to_stop(table: CrewTable, place: str, task: str) -> None:
    """The block ends quietly, and the task is handed over."""
    reached = []
    with rung.crew.CrewWorker(place, task, session="s1") as worker:
        worker.warn_context("70 % used")
        table.reply(table.require_task(task), TaskState.EXIT_REQUESTED, "stop, hand over", MessageType.EXIT_REQUEST)
        worker.wait_for_answer(30, poll=QUICK)
        reached.append("never")
    assert not reached
    found = table.require_task(task)
    assert (found.state, found.error_tries, found.warnings) == (TaskState.EXITED, 0, 1)
    assert "asked to stop" in table.messages(task, types=[MessageType.HANDOFF])[0].message


def test_its_next_word_says_what_the_beat_was_told(table: CrewTable, place: str, task: str) -> None:
    """Somebody else has the task: nothing more is written, not even a hand-over."""

    def work() -> None:
        with rung.crew.CrewWorker(place, task, session="s1") as worker:
            table.reply(table.require_task(task), TaskState.EXITED, "", MessageType.SYSTEM)
            table.reply(table.require_task(task), TaskState.WATCHING, "", MessageType.SYSTEM)
            table.claim(task, "s2")
            worker.error("too late")

    with pytest.raises(LeaseExpired, match="stop working on it"):
        work()
    found = table.require_task(task)
    assert (found.state, found.session_id, found.error_tries) == (TaskState.WORKING, "s2", 0)
    assert [message.message_type for message in table.messages(task)] == ["instruction"]


def test_a_pause_and_its_end_are_no_answer(table: CrewTable, place: str, task: str) -> None:
    """What the conductor tells all workers after its fix does not take the place of the fix."""
    with rung.crew.CrewWorker(place, task, session="s1") as worker:
        worker.error("no module named parser")
        row = table.require_task(task)
        table.reply(row, TaskState.FIX_PROPOSED, "FIX PROPOSAL: import it", MessageType.FIX_PROPOSAL)
        for text in ("PAUSE: the plan is being changed", "RESUME: the plan stays as it is"):
            table.post_message(task, CONDUCTOR, text, MessageType.EMERGENCY)
        assert worker.wait_for_answer(30, poll=QUICK).text == "FIX PROPOSAL: import it"
        worker.hand_off("HANDOFF: enough")


def test_nobody_answers(table: CrewTable, place: str, task: str) -> None:
    """Whoever waits only so long is told, and hands over."""

    def work() -> None:
        with rung.crew.CrewWorker(place, task) as worker:
            worker.error("boom")
            worker.wait_for_answer(0, poll=QUICK)

    with pytest.raises(TimeoutError, match="no reply within 0 s"):
        work()
    assert table.require_task(task).state is TaskState.EXITED


def test_what_cannot_be_claimed_is_said(table: CrewTable, place: str, task: str) -> None:
    """Somebody has it; or there is nothing at all."""
    table.claim(task, "s1")
    with pytest.raises(ClaimBlocked, match="owned by s1"), rung.crew.CrewWorker(place, task, session="s2"):
        pass
    with pytest.raises(NoTaskAvailable), rung.crew.CrewWorker(place):
        pass
    with pytest.raises(ConfigError, match="a worker that has claimed"):
        _ = rung.crew.CrewWorker(place).claim


def test_without_an_approval_nothing_is_complete(table: CrewTable, place: str, task: str) -> None:
    """The table refuses it, and the task stays this worker's."""
    with rung.crew.CrewWorker(place, task) as worker:
        with pytest.raises(IllegalTransition, match="once a review has approved it"):
            worker.complete()
        assert worker.beat() is TaskState.WORKING


def test_a_worker_that_was_started_knows_who_it_is(table: CrewTable, place: str, task: str) -> None:
    """By its environment."""
    code = "import rung\nwith rung.crew.CrewWorker.launched() as worker: print(worker.task_id, worker.session)"
    environment = {"RUNG_CREW": place, "RUNG_TASK": task, "RUNG_SESSION": "s7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "task-01 s7\n", done.stderr
    lost = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=False)
    assert "RUNG_CREW: ''" in lost.stderr
