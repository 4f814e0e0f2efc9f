"""Blocked claims: a session could not claim the task it was launched for, and says so by a row, by a message, or by both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CLAIMABLE, CONDUCTOR, FALLBACK_PREFIX, MessageType
from rung.store.crew.briefing import worker_instructions

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import CrewMessageRow, TaskRow

SEEN_KEY: Final = "claim_blocked_seen"  # fact of the crew: number of the last message that was handled


def handle_blocked_claims(crew: ConductorContext) -> int:
    """Handle the rows and the messages of sessions whose claim failed. Return how many."""
    handled = 0
    for fallback in crew.table.fallbacks():
        if fallback.task_id not in crew.unusable:
            with crew.isolated(fallback):
                _handle_row(crew, fallback)
            handled += 1
    seen = int(crew.table.get_fact(SEEN_KEY) or 0)
    messages = crew.table.messages(after=seen, types=(MessageType.CLAIM_BLOCKED,))
    for message in messages:
        handled += _handle_message(crew, message)
    if messages:
        crew.table.set_fact(SEEN_KEY, str(messages[-1].id))
    return handled


def _handle_row(crew: ConductorContext, fallback: TaskRow) -> None:
    """Resolve the blocked claim of a fallback row, and delete the row."""
    session = fallback.session_id or fallback.task_id.removeprefix(FALLBACK_PREFIX)
    blocked = crew.table.messages(types=(MessageType.CLAIM_BLOCKED,))
    _resolve(crew, session, next((one.task_id for one in reversed(blocked) if one.from_session == session), ""))
    crew.table.delete_fallback(session)


def _handle_message(crew: ConductorContext, message: CrewMessageRow) -> bool:
    """Resolve the blocked claim of a message. Return False if the task was given out again since."""
    given = crew.table.messages(message.task_id, after=message.id, types=(MessageType.INSTRUCTION,))
    task = crew.table.task(message.task_id)
    if task is None or not crew.is_usable(task) or any(one.from_session == CONDUCTOR for one in given):
        return False
    with crew.isolated(task):
        _resolve(crew, message.from_session, message.task_id)
    return True


def _resolve(crew: ConductorContext, session: str, task_id: str) -> None:
    """End the process of a session whose claim failed.

    If the task is free nevertheless, its instruction is sent again, for the worker that is launched next; after a second
    blocked claim the task is a person's.
    """
    process = next((one for one in crew.table.processes() if one.session_id == session), None)
    task = crew.table.task(process.task_id if process is not None else task_id)
    if process is not None and (task is None or task.session_id != session):
        crew.terminate(process.task_id)
    if task is None or task.state not in CLAIMABLE or not task.open_for_claim or task.outcome:
        return
    if len(crew.table.messages(task.task_id, types=(MessageType.CLAIM_BLOCKED,))) > 1:
        crew.escalate(task, "the task is claimable, but two claims of it were blocked; find out what blocks them")
        return
    told = worker_instructions(crew.table, task)
    crew.table.post_message(task.task_id, CONDUCTOR, told, MessageType.INSTRUCTION)
    crew.log(f"{task.task_id}: the claim of {session} was blocked; the task is given out again")
