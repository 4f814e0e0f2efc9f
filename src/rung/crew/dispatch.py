"""Dispatch: launch workers for tasks whose dependencies are complete, up to the number of concurrent workers."""

from __future__ import annotations

import uuid
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.command_line import with_own_rung
from rung.core.crew.contract import CLAIMABLE
from rung.crew.instruction_reading import instruction_problem
from rung.crew.pool_control import StartGate
from rung.engine.process_identity import is_elsewhere
from rung.store.crew.briefing import has_instruction, worker_instructions
from rung.store.crew.conductor_key import KEY_VARIABLE, WORKER_VARIABLE
from rung.store.crew.trigger_conditions import KEY_DIGEST_FACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import ProcessRow, TaskRow

PAUSED_KEY: Final = "paused"  # fact of the crew: why nothing is dispatched while the plan is revised
HALTED_KEY: Final = "halted"  # fact of the crew: why nothing is dispatched until a person restarts the crew
INSTRUCTION_PLACEHOLDER: Final = "{instruction}"  # in a worker command of the plan
DIED_UNCLAIMED: Final = "worker died before it claimed the task"


def dispatch(crew: ConductorContext) -> int:
    """Launch workers for ready tasks. Return how many were launched."""
    if crew.table.get_fact(PAUSED_KEY) or crew.table.get_fact(HALTED_KEY):
        return 0
    running = crew.table.running_sessions()
    room = crew.settings.workers - len(running)
    launched = 0
    gate = StartGate(crew)
    passed_over = {*running, *crew.unusable, *tuple(crew.faulty_instructions)}
    ready = crew.table.ready_tasks(room, passed_over, gate.admits, gate.failures) if room > 0 else ()
    for task in ready:
        with crew.isolated(task):
            if (
                crew.is_usable(task)
                and is_instructed(crew, task)
                and has_instructions(crew, task)
                and gate.start(task.task_id)
            ):
                launch(crew, task)
                launched += 1
    return launched


def is_instructed(crew: ConductorContext, task: TaskRow) -> bool:
    """Return whether the task says what to do. A task that does not is escalated: nobody could tell when it is done."""
    if has_instruction(crew.table, task):
        return True
    crew.escalate(task, "it has no instruction: neither a text nor a file says what to do")
    return False


def has_instructions(crew: ConductorContext, task: TaskRow) -> bool:
    """Return whether the task's instructions can be used. If not, the conductor's handlers are told, and mend them."""
    problem = instruction_problem(crew, task)
    if problem:
        crew.faulty_instructions[task.task_id] = problem
        crew.helpers.wake()
    return not problem


def launch(crew: ConductorContext, task: TaskRow) -> None:
    """Launch a worker for the task. The launch is recorded first, so that the next conductor knows of the process."""
    command = task.command or crew.settings.command
    if not command:
        return  # an external worker claims the task
    task = crew.table.require_task(task.task_id)
    session = str(uuid.uuid4())
    earlier = len(crew.table.processes(alive_only=False, task_id=task.task_id))
    worked_by = f"worker-{task.task_id}" + (f"-S{earlier + 1}" if earlier else "")
    placeholders = {"task": task.task_id, "db": crew.table_url, "session": session, "worked_by": worked_by}
    words = [_fill_placeholders(argument, placeholders) for argument in with_own_rung(command)]
    arguments = _fill_instruction(crew, task, words)  # last: a task's text may look like a placeholder
    environment = {
        "RUNG_CREW": crew.table_url,
        "RUNG_TASK": task.task_id,
        "RUNG_SESSION": session,
        "RUNG_WORKED_BY": worked_by,
        "RUNG_INSTRUCTION": task.instruction_path or "",
        "RUNG_BEAT": f"{crew.settings.beat:g}",
        KEY_VARIABLE: "",
        WORKER_VARIABLE: crew.table.get_fact(KEY_DIGEST_FACT) or "",
    }
    crew.end_process(task.task_id)  # remains of an earlier worker
    crew.table.record_launch(session, task.task_id, arguments, machine=crew.machine)
    crew.processes.launch(task.task_id, arguments, environment, Path(task.workdir) if task.workdir else None)
    crew.link_pid(task.task_id)
    crew.log(f"{task.task_id}: launched {worked_by}")


def missing_claim_reason(crew: ConductorContext, process: ProcessRow) -> str:
    """Return why a launched worker will not claim its task any more; empty while it still may."""
    if not is_elsewhere(process.machine) and not crew.processes.alive(process.task_id):
        return DIED_UNCLAIMED
    if (crew.view.silence(process.age) or 0.0) > crew.settings.claim_within:
        return f"worker did not claim the task within {crew.settings.claim_within:g} s"
    return ""


def unclaimed_workers(crew: ConductorContext) -> list[tuple[ProcessRow, TaskRow]]:
    """Return the launched workers that have not claimed their task yet."""
    unclaimed = crew.table.unclaimed_sessions()
    workers = []
    for process in crew.table.processes() if unclaimed else ():
        task = crew.table.task(process.task_id) if process.session_id in unclaimed else None
        if task is not None and task.session_id != process.session_id and task.state in CLAIMABLE:
            workers.append((process, task))
    return workers


def _fill_instruction(crew: ConductorContext, task: TaskRow, command: Sequence[str]) -> list[str]:
    """Fill in `{instruction}`: the path of the instruction file, or, as a whole argument, the instructions themselves.

    It is left for `rung worker run`, which fills it in anew for each run of its command.
    """
    if ("worker", "run") in pairwise(command):
        return list(command)
    if task.instruction_path:
        return [argument.replace(INSTRUCTION_PLACEHOLDER, task.instruction_path) for argument in command]
    told = worker_instructions(crew.table, task) if INSTRUCTION_PLACEHOLDER in command else ""
    # A part of an argument may be code of a shell: text of a task never becomes part of it.
    return [
        told if argument == INSTRUCTION_PLACEHOLDER else argument.replace(INSTRUCTION_PLACEHOLDER, "")
        for argument in command
    ]


def _fill_placeholders(argument: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument
