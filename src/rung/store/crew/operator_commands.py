"""The operator's writes to a crew: messages, replies to waiting tasks, restarts and shutdown.

Shared by the command line and the service.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from rung.core.crew.contract import CONTEXT_WARNING as WARNING
from rung.core.crew.contract import (
    HAND_OVER_PREFIX,
    PERSON,
    STOP_KEY,
    Actor,
    MessageType,
    TaskState,
    TransitionGuard,
    illegal_transition_message,
    legal_transitions,
)
from rung.core.crew.pool import wake
from rung.core.domain.errors import IllegalTransition, TaskChanged
from rung.store.crew.briefing import briefing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.crew.pool import PoolState
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable


class OperatorReply(StrEnum):
    """A reply that an operator can send to a task."""

    TELL = "tell"
    FIX = "fix"
    APPROVE = "approve"
    REJECT = "reject"
    RESET = "reset"
    EXIT = "exit"


class _ReplyEffect(NamedTuple):
    to: TaskState
    type: MessageType
    columns: dict[str, Any]


_REPLY_EFFECTS: Final = {
    OperatorReply.FIX: _ReplyEffect(TaskState.FIX_PROPOSED, MessageType.FIX_PROPOSAL, {"note": "", "outcome": ""}),
    OperatorReply.APPROVE: _ReplyEffect(TaskState.REVIEW_APPROVED, MessageType.APPROVAL, {"note": ""}),
    OperatorReply.REJECT: _ReplyEffect(TaskState.REVIEW_FAILED, MessageType.REJECTION, {"note": ""}),
    OperatorReply.RESET: _ReplyEffect(
        TaskState.WATCHING,
        MessageType.INSTRUCTION,
        {"note": "", "outcome": "", "redispatches": 0, "review_cycles": 0, "progress": ""},
    ),
    OperatorReply.EXIT: _ReplyEffect(TaskState.EXITED, MessageType.EXIT_REQUEST, {"note": "ended by the operator"}),
}


def crew_name(location: str) -> str:
    """Return the name of a crew in the service and in the audit trail, from the path or URL of its table."""
    if "://" in location:
        return urlsplit(location).path.strip("/").replace("/", "-") or "crew"
    return Path(location).stem or "crew"


def reply_to_task(
    table: CrewTable, task_id: str, body: str, reply: OperatorReply = OperatorReply.TELL, *, version: str = ""
) -> TaskRow:
    """Send a message to a task's worker, or reply to a waiting task; `version` guards against concurrent changes."""
    task = table.require_task(task_id)
    if version and version != task.version:
        raise TaskChanged(f"{task_id} has changed (its version is {task.version}, not {version}): read it again")
    if reply is OperatorReply.TELL:
        table.post_message(task_id, PERSON, body, MessageType.INSTRUCTION)
        return task
    effect = _REPLY_EFFECTS[reply]
    if _approves_error(task, reply):
        raise IllegalTransition(
            f"{task_id} reports an error, and approve answers a review or a context warning; legal here:"
            f" {', '.join(allowed_replies(task))}"
        )
    if effect.to is task.state:
        raise IllegalTransition(illegal_transition_message(task.state).removeprefix("rung: "))
    if reopens(task, effect.to):
        # The words are a person's, so that every later worker is told them too.
        instruction, briefing = MessageType.INSTRUCTION, briefing_of(table, task).body()
        changed = table.reply(task, effect.to, body, instruction, sender=PERSON, briefing=briefing, **effect.columns)
    else:
        changed = table.reply(task, effect.to, body, effect.type, **effect.columns)
    if not changed:
        raise TaskChanged(f"{task_id} has changed: read it again")
    return table.require_task(task_id)


def reopens(task: TaskRow, to: TaskState) -> bool:
    """Return whether this change of state gives the task to another worker."""
    return to is TaskState.WATCHING or (to is TaskState.FIX_PROPOSED and task.state is not TaskState.ERROR)


def allowed_replies(task: TaskRow) -> tuple[OperatorReply, ...]:
    """Return the replies that are legal in the task's current state."""
    guards = {
        TransitionGuard.ALWAYS: True,
        TransitionGuard.STALE: task.is_stale,
        TransitionGuard.WARNED: task.last_error == WARNING,
    }
    after = {
        move.after
        for move in legal_transitions(task.state)
        if move.by is Actor.CONDUCTOR and guards.get(move.guard, False)
    }
    always = () if task.state is TaskState.COMPLETE else (OperatorReply.TELL,)
    legal = (reply for reply, effect in _REPLY_EFFECTS.items() if effect.to in after)
    return (*always, *(reply for reply in legal if not _approves_error(task, reply)))


def _approves_error(task: TaskRow, reply: OperatorReply) -> bool:
    """Return whether an error would be approved. The table allows it, because context warnings are errors, too."""
    return reply is OperatorReply.APPROVE and task.state is TaskState.ERROR and task.last_error != WARNING


def request_stop(table: CrewTable, why: str, *, hand_over: bool = False) -> None:
    """Shut the crew down in order when the conductor next polls; with `hand_over`, only this conductor stops."""
    table.set_fact(STOP_KEY, f"{HAND_OVER_PREFIX}{why}" if hand_over else why)


def wake_pools(table: CrewTable, now: float, name: str = "", *, only: Sequence[PoolState] = ()) -> list[str]:
    """Open one closed pool, or all of them, or those in these states; return the names of those that were opened."""
    opened = []
    for one, pool in table.pools().items():
        if not pool.is_open and name in ("", one) and (not only or pool.state in only):
            table.change_pool(one, lambda pool: wake(pool, now))
            opened.append(one)
    return opened
