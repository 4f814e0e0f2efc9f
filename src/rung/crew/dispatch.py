"""Gives tasks to workers: those whose dependencies are done, no more at once than there is room for."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CLAIMABLE

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import ProcessRow, TaskRow

PAUSED: Final = "paused"  # a fact of the crew: why nothing is given out
HALTED: Final = "halted"


def dispatch(crew: ConductorContext) -> int:
    """Launch workers for what can be worked on; how many."""
    if crew.table.get_fact(PAUSED) or crew.table.get_fact(HALTED):
        return 0
    running = crew.table.running_sessions()
    room = crew.settings.workers - len(running)
    launched = 0
    for task in crew.table.ready_tasks(room, exclude=running) if room > 0 else ():
        if instructed(crew, task):
            launch(crew, task)
            launched += 1
    return launched


def instructed(crew: ConductorContext, task: TaskRow) -> bool:
    """Whether the task has instructions. Missing or empty ones are written anew by the judge, or the task is escalated."""
    if not task.instruction_path:
        return True
    path = Path(task.instruction_path)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if text.strip():
        return True
    wrong = "empty: there is nothing in it"
    written = crew.judgement.write_instructions(task, wrong)
    if written is not None:
        crew.write(path.absolute(), written)
        crew.log(f"{task.task_id}: its instructions were written anew: {wrong}")
        return True
    crew.escalate(task, f"its instructions cannot be worked with ({path}): {wrong}")
    return False


def launch(crew: ConductorContext, task: TaskRow) -> None:
    """A worker for this task: written down before it is started, so that a successor knows of it."""
    command = task.command or crew.settings.command
    if not command:
        return  # worked by somebody who comes by himself
    session = str(uuid.uuid4())
    worked_by = f"worker-{task.task_id}" + (f"-S{task.generation + 1}" if task.generation else "")
    facts = {
        "task": task.task_id,
        "instruction": task.instruction_path or "",
        "db": crew.place,
        "session": session,
        "worked_by": worked_by,
    }
    words = [_filled(word, facts) for word in command]
    environment = {
        "RUNG_CREW": crew.place,
        "RUNG_TASK": task.task_id,
        "RUNG_SESSION": session,
        "RUNG_WORKED_BY": worked_by,
        "RUNG_INSTRUCTION": task.instruction_path or "",
        "RUNG_BEAT": f"{crew.settings.beat:g}",
    }
    crew.processes.end(task.task_id, crew.settings.grace)  # what is left of a former one
    crew.table.record_launch(session, task.task_id, words)
    crew.processes.launch(task.task_id, words, environment, Path(task.workdir) if task.workdir else None)
    crew.log(f"{task.task_id}: launched for {worked_by}")


def not_claimed(crew: ConductorContext, process: ProcessRow) -> str:
    """Why a launched worker that has claimed nothing is given up; empty while it may still."""
    if not crew.processes.alive(process.task_id):
        return "it died before it claimed its task"
    if process.age > crew.settings.claim_within:
        return f"it did not claim its task within {crew.settings.claim_within:g} s"
    return ""


def waiting_for_claim(crew: ConductorContext) -> list[tuple[ProcessRow, TaskRow]]:
    """The workers that were launched and have claimed nothing yet."""
    unclaimed = crew.table.unclaimed_sessions()
    found = []
    for process in crew.table.processes() if unclaimed else ():
        task = crew.table.task(process.task_id) if process.session_id in unclaimed else None
        if task is not None and task.session_id != process.session_id and task.state in CLAIMABLE:
            found.append((process, task))
    return found


def _filled(word: str, facts: dict[str, str]) -> str:
    for name, value in facts.items():
        word = word.replace(f"{{{name}}}", value)
    return word
