"""State and operations that all handlers of the conductor share."""

from __future__ import annotations

import random
import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.process import RunningProcess
from rung.core.crew.contract import ASKS_PREFIX, CONDUCTOR, ESCALATED, MessageType, TaskState
from rung.core.crew.liveness import TableView
from rung.core.domain.errors import AttemptError, AttemptTimeout, ConfigError, StoreUnavailable
from rung.core.domain.events import Status
from rung.crew.helper_runs import HelperRuns
from rung.engine.process_identity import is_elsewhere
from rung.wiring.journals import shown_location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.judgement import CommandJudgement
    from rung.crew.settings import ConductorSettings
    from rung.crew.task_recovery import TaskRecoveries
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable


CONSULTATIONS_KEY: Final = "consultations"  # fact of the crew: how many new plans of the replanner were applied


@dataclass(slots=True, kw_only=True)
class ConductorContext:
    """The crew's table, worker processes, settings, judgement, task recoveries and clock."""

    table: CrewTable
    table_url: str  # path or URL of the table, passed to the workers
    runtime_dir: Path  # hand-overs, reports, PID files, logs
    settings: ConductorSettings
    processes: Processes
    judgement: CommandJudgement
    recoveries: TaskRecoveries
    now: Callable[[], float]
    jitter: Callable[[], float] = random.random
    log: Callable[[str], None] = lambda _: None
    applied_revision: str = ""  # of the last plan that replaced another one, as far as this context follows it
    loop_states: dict[str, Any] = field(default_factory=dict)  # state of the loop detectors, by task and generation
    view: TableView = field(default_factory=TableView)  # of the supervision
    unusable: set[str] = field(default_factory=set)  # tasks whose row could not even be given up
    helpers: HelperRuns = field(default_factory=HelperRuns)
    # What dispatch found wrong with the instructions of a task. Its thread finds it, the handlers' thread mends it.
    faulty_instructions: dict[str, str] = field(default_factory=dict)
    machine: str = ""  # identity of this machine, recorded with each launch

    def write(self, name: str, text: str) -> Path:
        """Write a file of the runtime directory atomically; a path outside it is an error."""
        file = self.runtime_dir / name
        if not file.resolve().is_relative_to(self.runtime_dir.resolve()):
            raise ConfigError("file", str(name), f"a path inside {self.runtime_dir}")
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        new.unlink(missing_ok=True)  # never written through a link that lies there
        new.write_text(text, encoding="utf-8", errors="replace")
        new.replace(file)
        return file

    def db_option(self) -> str:
        """Return the option that names this crew in a command of a report; a password in a URL is left out."""
        at = self.table_url if "://" in self.table_url else str(Path(self.table_url).expanduser().resolve())
        return f"--db {shlex.quote(shown_location(at))}"

    def is_usable(self, task: TaskRow) -> bool:
        """Return whether the task's row can be used. If not, the task is given up."""
        if task.problem and task.task_id not in self.unusable:
            self.set_aside(task, f"its row cannot be used: {task.problem}")
        return not task.problem and task.task_id not in self.unusable

    @contextmanager
    def isolated(self, task: TaskRow) -> Iterator[None]:
        """Give the task up if the block raises: one bad row must not stop the crew."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # of one task
            self.set_aside(task, f"the conductor cannot handle it: {error!r}")

    def set_aside(self, task: TaskRow, reason: str) -> None:
        """Escalate a task that cannot be handled. If its row stays as it is, ignore the row from now on, and log it."""
        problem = ""
        try:
            self.escalate(task, reason)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # of one task
            problem = f"; it cannot be escalated: {error!r}"
        after = self.table.task(task.task_id)
        if problem or (after is not None and after.outcome == task.outcome):
            self.unusable.add(task.task_id)
            self.log(f"{task.task_id}: ignored from now on: {reason}{problem}")

    def escalate(self, task: TaskRow, reason: str) -> None:
        """Give the task up: write an escalation report for a person, mark the task `exited`, end its worker."""
        fresh = self.table.task(task.task_id)
        if fresh is None or fresh.state is TaskState.COMPLETE or fresh.outcome:
            return
        attempts = [
            message.message
            for message in self.table.messages(task.task_id)
            if message.message_type in _ATTEMPT_MESSAGES
        ]
        text = _ESCALATION.format(
            task=task.task_id,
            option=self.db_option(),
            title=task.title or "",
            reason=reason,
            state=fresh.state,
            tries=fresh.error_tries,
            redispatches=fresh.redispatches,
            last=fresh.last_error or "none reported",
            attempts="\n\n".join(attempts[-10:]) or "nothing",
        )
        file = self.write(f"escalations/{task.task_id}.md", text)
        history = self.recoveries.close(fresh, Status.BLOCKED, reason)
        body = f"ESCALATED: {reason}. Report: {file}"
        if fresh.state is TaskState.EXITED:
            self.table.post_message(task.task_id, CONDUCTOR, body, MessageType.SYSTEM)
            self.table.update_columns(task.task_id, outcome=ESCALATED, note=reason, history=history)
        elif not self.table.reply(
            fresh, TaskState.EXITED, body, MessageType.SYSTEM, outcome=ESCALATED, note=reason, history=history
        ):
            return  # the task changed state meanwhile; the next turn handles the new state
        self.log(f"{task.task_id}: escalated: {reason}")
        self.terminate(task.task_id)

    def request_operator(self, task: TaskRow, reason: str) -> None:
        """Ask a person about the task while its worker waits. In an unattended crew, or without a worker, escalate it."""
        fresh = self.table.task(task.task_id)
        has_worker = fresh is not None and fresh.state in (TaskState.ERROR, TaskState.NEEDS_REVIEW)
        if not self.settings.attended or not has_worker:
            self.escalate(task, reason)
            return
        self.table.update_columns(task.task_id, note=f"{ASKS_PREFIX} {reason}")
        self.log(f"{task.task_id}: needs a person: {reason}")

    def consultations(self) -> int:
        """Return how many new plans of the replanner were applied."""
        return int(self.table.get_fact(CONSULTATIONS_KEY) or 0)

    def terminate(self, task_id: str) -> None:
        """End the task's worker process and record its end. The caller has marked the task before."""
        self.record_exit(task_id, self.end_process(task_id))

    def end_process(self, task_id: str) -> int | None:
        """End the task's worker process, if it is on this machine. Return its exit code, if this conductor launched it.

        A worker on another machine cannot be signalled. Its lease has ended, so its next write tells it to stop.
        """
        self.table.require_lease()  # a conductor that was replaced signals nobody
        self._protocol_pid_file(task_id).unlink(missing_ok=True)
        return None if self.runs_elsewhere(task_id) else self.processes.end(task_id, self.settings.grace)

    def link_pid(self, task_id: str) -> None:
        """Link the PID file of the task's worker from `temp/musician-TASK.pid`, where the conductor's protocol looks for it."""
        link = self._protocol_pid_file(task_id)
        with suppress(OSError):  # the link is for people and their scripts
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../pids/{task_id}.pid")

    def _protocol_pid_file(self, task_id: str) -> Path:
        return self.runtime_dir / "temp" / f"musician-{task_id}.pid"

    def runs_elsewhere(self, task_id: str) -> bool:
        """Return whether the task's worker was launched on another machine, where its process cannot be seen."""
        return any(is_elsewhere(process.machine) for process in self.table.processes(task_id=task_id))

    def record_exit(self, task_id: str, code: int | None) -> None:
        """Record the end of the task's worker process: another worker may be launched in its place."""
        for process in self.table.processes(task_id=task_id):
            self.table.record_exit(process.session_id, code)


def git_output(workdir: str, *arguments: str) -> str:
    """Return the output of a git command, or an empty text if it fails, for example outside a work tree."""
    try:
        return RunningProcess(["git", *_NO_COMMANDS, *arguments], "", cwd=workdir or None).result(_GIT_SECONDS)
    except (AttemptError, AttemptTimeout):
        return ""


_GIT_SECONDS = 60.0
_NO_COMMANDS = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "diff.external=",
)  # settings of a worker's repository that would run one
_ATTEMPT_MESSAGES = (MessageType.ERROR, MessageType.FIX_PROPOSAL, MessageType.REJECTION, MessageType.HANDOFF)
_ESCALATION = """\
# {task} needs a person

{title}

- Reason: {reason}
- State when given up: {state}; errors in the task's lifetime: {tries}; given to another worker: {redispatches} times
- Last error: {last}

## What was tried

{attempts}

## What to do

Look at the current state of the work, then do one of these:

- `rung crew restart {task} "what to do differently" {option}`: start the task again with a new worker
- add a new task `{task}-fix` with the remaining work
"""
