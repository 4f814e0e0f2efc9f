"""What a person does to a crew: says something, answers what a task waits for, begins it again, ends all of it.

The one place for it: the command line and the service both come here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.crew.contract import CONTEXT_WARNING as WARNING
from rung.core.crew.contract import (
    HAND_OVER,
    PERSON,
    STOP,
    Actor,
    MessageType,
    TaskState,
    TransitionGuard,
    legal,
    refusal,
)
from rung.core.domain.errors import IllegalTransition, TaskChanged

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable


class OperatorReply(StrEnum):
    """What a person may say to a task."""

    TELL = "tell"
    FIX = "fix"
    APPROVE = "approve"
    REJECT = "reject"
    RESET = "reset"
    EXIT = "exit"


class _Act(NamedTuple):
    to: TaskState
    type: MessageType
    columns: dict[str, Any]


_ACTS: Final = {
    OperatorReply.FIX: _Act(TaskState.FIX_PROPOSED, MessageType.FIX_PROPOSAL, {"note": "", "outcome": ""}),
    OperatorReply.APPROVE: _Act(TaskState.REVIEW_APPROVED, MessageType.APPROVAL, {"note": ""}),
    OperatorReply.REJECT: _Act(TaskState.REVIEW_FAILED, MessageType.REJECTION, {"note": ""}),
    OperatorReply.RESET: _Act(
        TaskState.WATCHING, MessageType.INSTRUCTION, {"note": "", "outcome": "", "redispatches": 0, "progress": ""}
    ),
    OperatorReply.EXIT: _Act(TaskState.EXITED, MessageType.EXIT_REQUEST, {"note": "a person ended it"}),
}


def reply_to_task(
    table: CrewTable, task_id: str, words: str, reply: OperatorReply = OperatorReply.TELL, *, version: str = ""
) -> TaskRow:
    """Say words to a task's worker, or answer what it waits for; `version`: only if it still is that one."""
    task = table.require_task(task_id)
    if version and version != task.version:
        raise TaskChanged(
            f"{task_id} has moved on meanwhile (it is {task.version} now, not {version}): look at it again"
        )
    if reply is OperatorReply.TELL:
        table.post_message(task_id, PERSON, words, MessageType.INSTRUCTION)
        return task
    act = _ACTS[reply]
    if act.to is task.state:
        raise IllegalTransition(refusal(task.state).removeprefix("rung: "))
    if not table.reply(task, act.to, words, act.type, **act.columns):
        raise TaskChanged(f"{task_id} has moved on meanwhile: look at it again")
    return table.require_task(task_id)


def allowed_replies(task: TaskRow) -> tuple[OperatorReply, ...]:
    """What a person may say to a task as it is now."""
    holds = {
        TransitionGuard.ALWAYS: True,
        TransitionGuard.STALE: task.is_stale,
        TransitionGuard.WARNED: task.last_error == WARNING,
    }
    after = {
        move.after for move in legal(task.state) if move.by is Actor.CONDUCTOR and holds.get(move.condition, False)
    }
    said = () if task.state is TaskState.COMPLETE else (OperatorReply.TELL,)
    return (*said, *(word for word, act in _ACTS.items() if act.to in after))


def request_stop(table: CrewTable, why: str, *, hand_over: bool = False) -> None:
    """End the crew in order at the conductor's next look; or only this conductor, and another takes over."""
    table.set_fact(STOP, f"{HAND_OVER}{why}" if hand_over else why)
