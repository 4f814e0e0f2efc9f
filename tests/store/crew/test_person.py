"""What a person says to a task is done by the same rules wherever they say it; and the board shows what matters first."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from rung.core.crew.contract import ASKS_PREFIX, HAND_OVER_PREFIX, PERSON, STOP_KEY, MessageType, TaskState
from rung.core.domain.errors import ConfigError, IllegalTransition, TaskChanged
from rung.store.crew import board
from rung.store.crew.operator_commands import OperatorReply, allowed_replies, reply_to_task, request_stop
from rung.store.crew.rows import NewTask

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable


def task(table: CrewTable, state: TaskState, name: str = "task-01") -> TaskLease | None:
    """A task in this state, and who has it."""
    table.add_task(NewTask(task_id=name, instruction="do it", title=f"the work of {name}"))
    if state is TaskState.WATCHING:
        return None
    claim = table.claim(name, f"session-{name}")
    if state is TaskState.ERROR:
        table.report_error(claim, "it broke")
    if state in (TaskState.NEEDS_REVIEW, TaskState.COMPLETE):
        table.request_review(claim, "look", checkpoint=1)
    if state is TaskState.COMPLETE:
        reply_to_task(table, name, "fine", OperatorReply.APPROVE)
        table.complete(claim)
    if state is TaskState.EXITED:
        table.hand_off(claim, "HANDOFF: tired")
    assert table.require_task(name).state is state
    return claim


SITUATIONS = (
    TaskState.WATCHING,
    TaskState.WORKING,
    TaskState.ERROR,
    TaskState.NEEDS_REVIEW,
    TaskState.EXITED,
    TaskState.COMPLETE,
)


@pytest.mark.parametrize("state", SITUATIONS)
@pytest.mark.parametrize("how", [word for word in OperatorReply if word is not OperatorReply.TELL])
def test_what_is_offered_is_what_is_legal(table: CrewTable, state: TaskState, how: OperatorReply) -> None:
    """Each act that is offered is done; each that is not is refused by the table, and nothing is written."""
    task(table, state)
    row = table.require_task("task-01")
    said = len(table.messages("task-01"))
    if how in allowed_replies(row):
        assert reply_to_task(table, "task-01", "do so", how).state is not state
        assert table.messages("task-01")[-1].message == "do so"
        return
    with pytest.raises(IllegalTransition, match=r"legal|final"):
        reply_to_task(table, "task-01", "do so", how)
    assert table.require_task("task-01").state is state
    assert len(table.messages("task-01")) == said


def test_words_reach_the_worker_as_a_persons(table: CrewTable) -> None:
    """Telling changes no state."""
    task(table, TaskState.WORKING)
    reply_to_task(table, "task-01", "mind the tests")
    last = table.messages("task-01")[-1]
    assert (last.from_session, last.message, last.message_type) == (PERSON, "mind the tests", MessageType.INSTRUCTION)
    assert table.require_task("task-01").state is TaskState.WORKING


def test_who_decided_about_another_version_is_refused(table: CrewTable) -> None:
    """A review that was asked for again since is not approved by accident; nothing is written."""
    claim = cast("TaskLease", task(table, TaskState.ERROR))
    seen = table.require_task("task-01").version
    reply_to_task(table, "task-01", "so", OperatorReply.FIX)
    table.resume(claim)
    with pytest.raises(TaskChanged, match="task-01 has changed"):
        reply_to_task(table, "task-01", "never mind", OperatorReply.EXIT, version=seen)
    assert table.require_task("task-01").state is TaskState.WORKING


def test_a_task_that_was_given_up_begins_again(table: CrewTable) -> None:
    """A reset clears what was held against it, and the next claim has it."""
    task(table, TaskState.EXITED)
    table.update_columns("task-01", outcome="escalated", note="3 deaths", redispatches=3)
    assert table.require_task("task-01").needs_person
    row = reply_to_task(table, "task-01", "mind the door", OperatorReply.RESET)
    assert (row.state, row.outcome, row.note, row.redispatches) == (TaskState.WATCHING, "", "", 0)
    assert not row.needs_person
    assert table.claim("task-01", "another").generation > 1


def test_a_crew_is_stopped_for_good_or_for_another_conductor(table: CrewTable) -> None:
    """What the conductor reads says which."""
    request_stop(table, "enough")
    assert table.get_fact(STOP_KEY) == "enough"
    request_stop(table, "a new version", hand_over=True)
    assert table.get_fact(STOP_KEY) == f"{HAND_OVER_PREFIX}a new version"


def test_what_needs_a_person_stands_first(table: CrewTable) -> None:
    """Then who waits for an answer, who works, what could begin, what is over; page by page, none twice, none left out."""
    for number, state in enumerate(
        (TaskState.COMPLETE, TaskState.WATCHING, TaskState.WORKING, TaskState.EXITED, TaskState.ERROR) * 2
    ):
        task(table, state, f"task-{number:02}x")
    task(table, TaskState.NEEDS_REVIEW, "zz")
    table.update_columns("zz", note=f"{ASKS_PREFIX}shall it pass?")
    found: list[str] = []
    after = ""
    while True:
        page = board.load_page(table, 3, after=after)
        found += [row.task_id for row in page.tasks]
        after = page.after
        if not after:
            break
    states = [table.require_task(name).state.value for name in found]
    assert states == ["needs_review", *("error",) * 2, *("working",) * 2, *("watching",) * 2, *("exited",) * 2, *("complete",) * 2]  # fmt: skip
    assert len(set(found)) == len(found) == 11
    head = board.load_header(table)
    assert (head.tasks, head.for_person, head.counts[TaskState.ERROR]) == (11, 1, 2)
    assert [row.task_id for row in board.load_page(table, 5, for_person=True).tasks] == ["zz"]


def test_tasks_are_found_by_state_and_text(table: CrewTable) -> None:
    """Also where the text has letters that mean something to SQL; a cursor that is none is refused."""
    task(table, TaskState.WATCHING, "task-01")
    task(table, TaskState.WORKING, "task_02")
    assert [row.task_id for row in board.load_page(table, 9, text="K_0").tasks] == ["task_02"]
    assert [row.task_id for row in board.load_page(table, 9, text="WORK OF TASK-01").tasks] == ["task-01"]
    assert [row.task_id for row in board.load_page(table, 9, states=(TaskState.WORKING,)).tasks] == ["task_02"]
    with pytest.raises(ConfigError, match="cursor"):
        board.load_page(table, 9, after="nonsense")


def test_an_error_is_not_approved(table: CrewTable) -> None:
    """Approving an error is refused with the replies that are legal; a context warning may be approved."""
    claim = task(table, TaskState.ERROR)
    with pytest.raises(IllegalTransition, match=r"task-01 reports an error.*legal here: tell, fix, exit"):
        reply_to_task(table, "task-01", "fine", OperatorReply.APPROVE)
    reply_to_task(table, "task-01", "so", OperatorReply.FIX)
    assert claim is not None
    table.warn_context(claim, "Context Usage: 70%")
    assert reply_to_task(table, "task-01", "go on", OperatorReply.APPROVE).state is TaskState.REVIEW_APPROVED
