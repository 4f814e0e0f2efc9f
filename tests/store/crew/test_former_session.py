"""Statements of a session that has lost its task, one by one in a plain shell, which goes on after a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.rows import NewTask
from tests.store.crew.shells import typed

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskLease, TaskRow
    from rung.store.crew.table import CrewTable

TASK = "task-01"
# The conductor's document, word for word.
ERROR = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES (
    'task-01', '{session}',
    'ERROR (Retry 1/5):
     Context Usage: 20%
     Self-Correction: NO
     Error: tests fail
     Report: docs/implementation/reports/task-01-error-retry-1.md
     Awaiting conductor fix proposal',
    'error'
);

UPDATE orchestration_tasks
SET state = 'error',
    retry_count = retry_count + 1,
    last_error = 'tests fail',
    last_heartbeat = datetime('now')
WHERE task_id = 'task-01';
"""
WARNING = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type)
VALUES ('task-01', '{session}', 'CONTEXT WARNING: 65% used; two steps are left', 'context_warning');
UPDATE orchestration_tasks
SET state = 'error', last_error = 'context_exhaustion_warning', last_heartbeat = datetime('now')
WHERE task_id = 'task-01';
"""
REVIEW = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type)
VALUES ('task-01', '{session}', 'CHECKPOINT 1: REVIEW REQUEST', 'review_request');
UPDATE orchestration_tasks SET state = 'needs_review', last_heartbeat = datetime('now') WHERE task_id = 'task-01';
"""
HANDOFF = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type)
VALUES ('task-01', '{session}', 'HANDOFF: the context is full', 'handoff');
UPDATE orchestration_tasks SET state = 'exited', last_heartbeat = datetime('now') WHERE task_id = 'task-01';
"""
SELF_APPROVAL = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type)
VALUES ('task-01', 'task-00', 'REVIEW APPROVED', 'approval');
UPDATE orchestration_tasks SET state = 'review_approved', last_heartbeat = datetime('now') WHERE task_id = 'task-01';
UPDATE orchestration_tasks SET approved = 1 WHERE task_id = 'task-01';
"""


@pytest.fixture
def owner(table: CrewTable) -> TaskLease:
    """The lease of the session `new`, which has the task after `former` has lost it."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    table.claim(TASK, "former")
    table.reply(table.require_task(TASK), TaskState.EXITED, "EVICTED", MessageType.SYSTEM)
    table.reply(table.require_task(TASK), TaskState.WATCHING, "again", MessageType.INSTRUCTION)
    return table.claim(TASK, "new")


def seen(task: TaskRow) -> tuple[object, ...]:
    return (
        task.state,
        task.session_id,
        task.generation,
        task.error_tries,
        task.warnings,
        task.retry_count,
        task.last_error,
    )


@pytest.mark.parametrize("sql", [ERROR, WARNING, REVIEW, HANDOFF])
def test_a_former_session_changes_nothing(table: CrewTable, owner: TaskLease, place: str, sql: str) -> None:
    """Both statements of a former session are refused, and the task of its new owner stays as it is."""
    before, said = seen(table.require_task(TASK)), table.messages()
    done = typed(place, sql.format(session="former"), goes_on=True)
    assert "stop working on it" in done.stderr
    assert "legal from there" in done.stderr
    assert seen(table.require_task(TASK)) == before
    assert table.messages() == said
    assert table.heartbeat(owner) is TaskState.WORKING


@pytest.mark.parametrize("sql", [ERROR, WARNING, REVIEW, HANDOFF])
@pytest.mark.parametrize("session", ["new"])
@pytest.mark.usefixtures("owner")
def test_the_owner_needs_no_transaction(table: CrewTable, place: str, sql: str, session: str) -> None:
    """The same statements of the session that has the task take effect."""
    done = typed(place, sql.format(session=session), goes_on=True)
    assert done.stderr == ""
    states = {ERROR: "error", WARNING: "error", REVIEW: "needs_review", HANDOFF: "exited"}
    task = table.require_task(TASK)
    assert task.state == states[sql]
    assert (task.error_tries, task.warnings) == (int(sql == ERROR), int(sql == WARNING))


def test_an_old_message_does_not_cover_a_new_report(table: CrewTable, owner: TaskLease, place: str) -> None:
    """The owner's answered error does not let a former session report another one."""
    table.report_error(owner, "tests fail")
    table.reply(table.require_task(TASK), TaskState.FIX_PROPOSED, "FIX PROPOSAL", MessageType.FIX_PROPOSAL)
    table.resume(owner)
    before = seen(table.require_task(TASK))
    done = typed(place, ERROR.format(session="former"), goes_on=True)
    assert "after its message" in done.stderr
    assert seen(table.require_task(TASK)) == before


@pytest.mark.parametrize("session", ["new", "former"])
def test_a_worker_does_not_approve_itself(table: CrewTable, owner: TaskLease, place: str, session: str) -> None:
    """An approval without the crew's key is refused, whichever statement it is."""
    table.request_review(owner, "done", checkpoint=1)
    done = typed(place, SELF_APPROVAL.replace("'task-00'", f"'{session}'"), goes_on=True)
    assert done.stderr.count("rung: ") == 3, done.stderr
    task = table.require_task(TASK)
    assert (task.state, task.approved) == (TaskState.NEEDS_REVIEW, False)
    done = typed(place, SELF_APPROVAL, goes_on=True)
    assert done.stderr.count("rung: ") == 3, done.stderr
    assert not table.require_task(TASK).approved
