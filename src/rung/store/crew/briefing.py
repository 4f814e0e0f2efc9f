"""Briefings of workers, built from the crew's table: one for the next worker of a task, and its text for a worker that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.briefing import Briefing, LeftBehind
from rung.core.crew.contract import CONDUCTOR, PERSON, MessageType
from rung.core.crew.handoff import Handoff, HandoffKind, handoff_kind
from rung.store.crew.rows import INSTRUCTION_FACT, SAVED_FACT

if TYPE_CHECKING:
    from rung.store.crew.rows import CrewMessageRow, TaskRow
    from rung.store.crew.table import CrewTable

_ANSWERS: Final = (MessageType.FIX_PROPOSAL, MessageType.REJECTION, MessageType.APPROVAL)
_GIVERS: Final = (CONDUCTOR, PERSON)


def instruction_of(table: CrewTable, task: TaskRow) -> str:
    """Return the text of the task's instruction; empty if it has none, or if it is in a file.

    A task whose row was inserted by another program, or by an earlier version, has its instruction in its first message.
    """
    if task.instruction_path:
        return ""
    stored = table.get_fact(INSTRUCTION_FACT + task.task_id)
    if stored:
        return stored
    said = table.messages(task.task_id, types=(MessageType.INSTRUCTION,))
    return next((one.message for one in said if one.from_session in _GIVERS and one.message.strip()), "")


def has_instruction(table: CrewTable, task: TaskRow) -> bool:
    """Return whether the task says what to do: by a text or by a file."""
    return bool(task.instruction_path or instruction_of(table, task))


def last_handoff(table: CrewTable, task: TaskRow) -> Handoff | None:
    """Return the hand-over that the last session of the task has written, in whatever form; None if it left without one."""
    message = last_handoff_message(table, task)
    return None if message is None else Handoff.read(message.message, message.from_session)


def last_handoff_message(table: CrewTable, task: TaskRow) -> CrewMessageRow | None:
    """Return the hand-over message of the last session of the task, if it has written one."""
    message = next(reversed(table.messages(task.task_id, types=(MessageType.HANDOFF,))), None)
    return message if message is not None and message.from_session == task.session_id else None


def briefing_of(table: CrewTable, task: TaskRow) -> Briefing:
    """Return the briefing of the task's next worker. Every way to a dispatch uses it."""
    messages = table.messages(task.task_id)
    handovers = [one for one in messages if one.message_type is MessageType.HANDOFF and one.message.strip()]
    told = max((one.id for one in messages if _is_given(one, CONDUCTOR)), default=0)
    answers = [one.message for one in messages if one.message_type in _ANSWERS and one.id > told]
    has_progress = bool(task.progress or task.reviews_approved)
    kind = handoff_kind(last_handoff(table, task)) if task.session_id else None
    return Briefing(
        task=task.task_id,
        instruction=instruction_of(table, task),
        instruction_path=task.instruction_path,
        kind=kind,
        predecessor=task.worked_by,
        starts_over=kind is HandoffKind.CRASH and not has_progress and not handovers,
        reviews_approved=task.reviews_approved,
        handovers=tuple(LeftBehind(session=one.from_session, text=one.message) for one in handovers),
        answer=answers[-1] if answers else "",
        saved=tuple((table.get_fact(SAVED_FACT + task.task_id) or "").splitlines()),
        remarks=tuple(one.message for one in messages if _is_given(one, PERSON)),
    )


def worker_instructions(table: CrewTable, task: TaskRow) -> str:
    """Return what the task's worker is told now: the newest briefing, and what was said since.

    The text of the task is part of it even if the newest message of the conductor does not have it.
    """
    text = instruction_of(table, task)
    given = [
        one for one in table.messages(task.task_id, types=(MessageType.INSTRUCTION,)) if one.from_session in _GIVERS
    ]
    task_in = text or task.instruction_path
    briefed = [place for place, one in enumerate(given) if _is_given(one, CONDUCTOR) and task_in in one.message]
    if not briefed:
        return "\n\n".join((text, *(one.message for one in given))).strip()
    return "\n\n".join(one.message for one in given[briefed[-1] :]).strip()


def _is_given(message: CrewMessageRow, sender: str) -> bool:
    return message.message_type is MessageType.INSTRUCTION and message.from_session == sender
