"""What a person does to a crew: says something, answers what a task waits for, begins it again, ends all of it.

The one place for it: the command line and the service both come here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.crew.contract import CONTEXT_WARNING as WARNING
from rung.core.crew.contract import HAND_OVER, PERSON, STOP, MessageType, State, When, Who, legal, refusal
from rung.core.domain.errors import IllegalMove, MovedOn

if TYPE_CHECKING:
    from rung.store.crew.rows import Task
    from rung.store.crew.table import Table


class Word(StrEnum):
    """What a person may say to a task."""

    TELL = "tell"
    FIX = "fix"
    APPROVE = "approve"
    REJECT = "reject"
    RESET = "reset"
    EXIT = "exit"


class _Act(NamedTuple):
    to: State
    type: MessageType
    columns: dict[str, Any]


_ACTS: Final = {
    Word.FIX: _Act(State.FIX_PROPOSED, MessageType.FIX_PROPOSAL, {"note": "", "outcome": ""}),
    Word.APPROVE: _Act(State.REVIEW_APPROVED, MessageType.APPROVAL, {"note": ""}),
    Word.REJECT: _Act(State.REVIEW_FAILED, MessageType.REJECTION, {"note": ""}),
    Word.RESET: _Act(
        State.WATCHING, MessageType.INSTRUCTION, {"note": "", "outcome": "", "redispatches": 0, "progress": ""}
    ),
    Word.EXIT: _Act(State.EXITED, MessageType.EXIT_REQUEST, {"note": "a person ended it"}),
}


def tell(table: Table, task_id: str, words: str, how: Word = Word.TELL, *, version: str = "") -> Task:
    """Say words to a task's worker, or answer what it waits for; `version`: only if it still is that one."""
    task = table.known(task_id)
    if version and version != task.version:
        raise MovedOn(f"{task_id} has moved on meanwhile (it is {task.version} now, not {version}): look at it again")
    if how is Word.TELL:
        table.say(task_id, PERSON, words, MessageType.INSTRUCTION)
        return task
    act = _ACTS[how]
    if act.to is task.state:
        raise IllegalMove(refusal(task.state).removeprefix("rung: "))
    if not table.answer(task, act.to, words, act.type, **act.columns):
        raise MovedOn(f"{task_id} has moved on meanwhile: look at it again")
    return table.known(task_id)


def possible(task: Task) -> tuple[Word, ...]:
    """What a person may say to a task as it is now."""
    holds = {When.ALWAYS: True, When.STALE: task.stale, When.WARNED: task.last_error == WARNING}
    after = {move.after for move in legal(task.state) if move.by is Who.CONDUCTOR and holds.get(move.condition, False)}
    said = () if task.state is State.COMPLETE else (Word.TELL,)
    return (*said, *(word for word, act in _ACTS.items() if act.to in after))


def stop(table: Table, why: str, *, hand_over: bool = False) -> None:
    """End the crew in order at the conductor's next look; or only this conductor, and another takes over."""
    table.set_fact(STOP, f"{HAND_OVER}{why}" if hand_over else why)
