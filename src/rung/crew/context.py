"""What every handler of the conductor is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rung.adapters.system.process import RunningProcess
from rung.core.crew.contract import ASKS, CONDUCTOR, MessageType, TaskState
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.judgement import Judgement
    from rung.crew.settings import ConductorSettings
    from rung.crew.task_recovery import TaskRecoveries
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable


@dataclass(slots=True, kw_only=True)
class ConductorContext:
    """The table, the processes, who judges, and the clock."""

    table: CrewTable
    place: str  # of the table, for the workers
    runtime: Path  # handoffs, reports, PID files
    settings: ConductorSettings
    processes: Processes
    judgement: Judgement
    stories: TaskRecoveries
    now: Callable[[], float]
    log: Callable[[str], None] = lambda _: None
    loops: dict[str, Any] = field(default_factory=dict)  # what the detectors know of each worker

    def write(self, name: str | Path, text: str) -> Path:
        """Write a file beside the table, or at an absolute path: whole or not at all."""
        file = self.runtime / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        new.write_text(text)
        new.replace(file)
        return file

    def escalate(self, task: TaskRow, why: str) -> None:
        """The end of our means with this task: written down, honestly, for a person."""
        fresh = self.table.task(task.task_id)
        if fresh is None or fresh.state is TaskState.COMPLETE or fresh.outcome:
            return
        tried = [message.message for message in self.table.messages(task.task_id) if message.message_type in _TRIED]
        text = _ESCALATION.format(
            task=task.task_id,
            title=task.title or "",
            why=why,
            state=fresh.state,
            tries=fresh.error_tries,
            redispatches=fresh.redispatches,
            last=fresh.last_error or "nothing was reported",
            tried="\n\n".join(tried[-10:]) or "nothing",
        )
        file = self.write(f"escalations/{task.task_id}.md", text)
        story = self.stories.over(fresh, Status.BLOCKED, why)
        body = f"ESCALATED: {why}. Report: {file}"
        if fresh.state is TaskState.EXITED:
            self.table.post_message(task.task_id, CONDUCTOR, body, MessageType.SYSTEM)
            self.table.update_columns(task.task_id, outcome="escalated", note=why, history=story)
        elif not self.table.reply(
            fresh, TaskState.EXITED, body, MessageType.SYSTEM, outcome="escalated", note=why, history=story
        ):
            return  # it has moved on: the next look sees where to
        self.log(f"{task.task_id}: escalated: {why}")
        self.terminate(task.task_id)

    def request_operator(self, task: TaskRow, why: str) -> None:
        """Only a person can help: one is asked where one is there, and its worker waits; else it is given up."""
        if not self.settings.attended:
            self.escalate(task, why)
            return
        self.table.update_columns(task.task_id, note=f"{ASKS} {why}")
        self.log(f"{task.task_id}: needs a person: {why}")

    def terminate(self, task_id: str) -> None:
        """End whatever works on a task, and write down that it ended. Whoever does this has marked the task before."""
        code = self.processes.end(task_id, self.settings.grace)
        for process in self.table.processes(task_id=task_id):
            self.table.record_exit(process.session_id, code)


def git_output(workdir: str, *words: str) -> str:
    """The output of a git command; empty where it fails, for instance because this is no work tree."""
    try:
        return RunningProcess(["git", *words], "", cwd=workdir or None).result(_GIT_SECONDS)
    except (AttemptError, AttemptTimeout):
        return ""


_GIT_SECONDS = 60.0
_TRIED = (MessageType.ERROR, MessageType.FIX_PROPOSAL, MessageType.REJECTION, MessageType.HANDOFF)
_ESCALATION = """\
# {task} needs a person

{title}

- Why: {why}
- State when given up: {state}; error tries in its life: {tries}; given to another worker: {redispatches} times
- Last error: {last}

## What was tried

{tried}

## What to do

Look at the work as it is, then one of:

- `rung crew restart {task} "what to do differently"`: begin it again with a new worker
- a new task `{task}-fix` with what remains
"""
