"""Synchronises a plan with the crew's table: inserts its tasks, and applies later revisions."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.command_line import require_program, with_own_rung
from rung.adapters.system.placeholders import fill_placeholders
from rung.core.crew.contract import CONDUCTOR, TERMINAL, MessageType, TaskState
from rung.core.crew.evidence import runs_unchecked, wrapped_command
from rung.core.crew.plan import CrewPlan, TaskChange, checked_plan, diff_plans
from rung.core.crew.pool import DEFAULT_POOL
from rung.core.domain.errors import ConfigError
from rung.crew.helper_runs import PROMPT_PLACEHOLDER
from rung.store.crew.briefing import briefing_of
from rung.store.crew.rows import INSTRUCTION_FACT, NewTask

if TYPE_CHECKING:
    from rung.core.crew.plan import PlannedTask
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

PLAN_KEY: Final = "plan"  # fact of the crew: the current plan, as JSON
PLAN_PATH_KEY: Final = "plan_path"  # fact of the crew: the file that the plan was read from
APPLIED_KEY: Final = "applied_revision"  # fact of the crew: revision of the last plan that replaced another one
PLAN_FOLDER_KEY: Final = "plan_folder"  # fact of the crew: the folder that the plan's paths are relative to


def insert_plan(table: CrewTable, plan: dict[str, Any], folder: Path, file: Path | None = None) -> CrewPlan:
    """Insert a plan's tasks into the table. Tasks that are already there stay unchanged, except for their pool.

    `file` is the file that the plan was read from.
    """
    checked = checked_plan(plan)
    for planned in checked.active_tasks:
        new_task = _new_task(planned, checked, folder)
        if table.task(planned.id) is None:
            table.add_task(new_task)
        else:
            table.set_task_pool(planned.id, new_task.pool)
    table.set_fact(PLAN_FOLDER_KEY, str(folder))
    table.set_fact(PLAN_PATH_KEY, str(file.resolve()) if file is not None else "")
    table.set_fact(PLAN_KEY, json.dumps(plan))
    return checked


def require_programs(plan: CrewPlan, folder: Path) -> None:
    """Raise ConfigError if the program of a worker, the reviewer, the judge or the replanner does not exist."""
    crew = plan.settings
    for task in plan.active_tasks:
        if task.command:
            _require_worker(f"task {task.id}: command", task.command, folder / task.workdir if task.workdir else None)
    review = () if isinstance(crew.review, str) else crew.review
    for key, command in (
        ("worker", crew.worker),
        ("review", review),
        ("judge", crew.judge),
        ("replanner", crew.replanner),
    ):
        if key == "worker" and command:
            _require_worker("crew.worker", command)
        elif command:
            require_program(f"crew.{key}", with_own_rung(command))
            _refuse_question_as_code(f"crew.{key}", command)


def _require_worker(key: str, command: tuple[str, ...], folder: Path | None = None) -> None:
    """Raise ConfigError if a worker's program, or the one behind `rung worker run … --`, does not exist."""
    require_program(key, with_own_rung(command), folder)
    wrapped = wrapped_command(command)
    if wrapped:
        require_program(key, wrapped, folder)


def unchecked_tasks(plan: CrewPlan) -> list[str]:
    """Return the tasks whose work nobody would check: no command, no judge, no reviewer and no person."""
    crew = plan.settings
    if crew.judge or crew.attended or crew.review != "auto":
        return []
    return [task.id for task in plan.active_tasks if runs_unchecked(task.command or crew.worker)]


def _refuse_question_as_code(key: str, command: tuple[str, ...]) -> None:
    """Raise ConfigError if a question in place of `{prompt}` would be code of a shell or an interpreter."""
    try:
        fill_placeholders(command, {PROMPT_PLACEHOLDER: ""})
    except ConfigError as error:
        raise ConfigError(key, error.value, error.allowed) from None


def current_plan(table: CrewTable) -> CrewPlan | None:
    """Return the plan that is being executed; None if tasks were added without a plan."""
    text = table.get_fact(PLAN_KEY)
    return _parse_plan(text) if text else None


@lru_cache(maxsize=2)
def _parse_plan(text: str) -> CrewPlan:
    return checked_plan(json.loads(text))


def apply_plan(crew: ConductorContext, plan: dict[str, Any], new: CrewPlan) -> None:
    """Replace the current plan by a revision: remove, revise and add tasks. Complete tasks stay as they are.

    A removed task keeps its row, marked as removed.
    """
    folder = Path(crew.table.get_fact(PLAN_FOLDER_KEY) or ".")
    old = current_plan(crew.table)
    diff = diff_plans(old, new) if old is not None else None
    planned = {task.id: task for task in new.tasks}
    for task_id in diff.removed if diff is not None else ():
        _remove(crew, task_id)
    for task_id, dependencies in new.dependencies().items():
        row = crew.table.task(task_id)
        new_task = _new_task(planned[task_id], new, folder)
        crew.table.set_task_pool(task_id, new_task.pool)
        if row is None:
            crew.table.add_task(replace(new_task, plan_mark=planned[task_id].mark.value or TaskChange.NEW.value))
        elif row.state is TaskState.COMPLETE:
            continue
        elif diff is not None and task_id in (*diff.revised, *diff.rollback):
            _revise(crew, row, new_task)
        elif set(row.depends_on) != dependencies:
            crew.table.update_columns(task_id, depends_on=sorted(dependencies))
    crew.table.set_fact(PLAN_KEY, json.dumps(plan))
    crew.table.set_fact(APPLIED_KEY, str(new.revision))


def _new_task(planned: PlannedTask, plan: CrewPlan, folder: Path) -> NewTask:
    return NewTask(
        task_id=planned.id,
        title=planned.title,
        instruction=planned.instruction,
        instruction_path=str(folder / planned.instruction_path) if planned.instruction_path else "",
        command=planned.command or None,
        workdir=str((folder / planned.workdir).resolve()) if planned.workdir else "",
        depends_on=tuple(sorted(plan.dependencies()[planned.id])),
        writes=planned.writes,
        stale_after=planned.stale_after or plan.settings.stale_after,
        priority=planned.priority,
        phase=planned.phase,
        plan_mark=planned.mark.value,
        pool=planned.pool if planned.pool != DEFAULT_POOL else "",
        checkpoints=planned.checkpoints,
    )


def _remove(crew: ConductorContext, task_id: str) -> None:
    """Mark a task as removed and end its worker."""
    row = crew.table.task(task_id)
    if row is None or row.state is TaskState.COMPLETE:
        return
    if row.state in TERMINAL:
        crew.table.update_columns(task_id, outcome="removed", plan_mark=TaskChange.REMOVED.value)
    else:
        crew.table.reply(
            row,
            TaskState.EXITED,
            "REMOVED by a new plan",
            MessageType.SYSTEM,
            outcome="removed",
            plan_mark=TaskChange.REMOVED.value,
        )
    crew.terminate(task_id)


def _revise(crew: ConductorContext, row: TaskRow, new: NewTask) -> None:
    """Give a task new instructions and a new worker. All counters are reset except its lifetime errors."""
    if row.state is not TaskState.EXITED and row.state is not TaskState.WATCHING:
        crew.table.reply(row, TaskState.EXITED, "REVISED by a new plan", MessageType.SYSTEM)
    crew.terminate(row.task_id)
    fresh = crew.table.task(row.task_id)
    if fresh is None or fresh.state not in (TaskState.EXITED, TaskState.WATCHING):
        return
    columns: dict[str, Any] = {
        "title": new.title,
        "instruction_path": new.instruction_path,
        "command": new.command,
        "workdir": new.workdir,
        "depends_on": new.depends_on,
        "writes": new.writes,
        "priority": new.priority,
        "phase": new.phase,
        "stale_after": new.stale_after,
        "checkpoints": new.checkpoints,
        "reviews_approved": 0,
        "review_cycles": 0,
        "redispatches": 0,
        "history": [],
        "outcome": "",
        "note": "",
        "progress": "",
        "plan_mark": new.plan_mark or TaskChange.REVISED.value,
    }
    crew.table.set_fact(INSTRUCTION_FACT + fresh.task_id, new.instruction)
    briefing = briefing_of(crew.table, replace(fresh, instruction_path=new.instruction_path)).body()
    body = f"REVISED by a new plan: earlier work followed other instructions.\n\n{briefing}"
    if fresh.state is TaskState.EXITED:
        crew.table.reply(fresh, TaskState.WATCHING, body, MessageType.INSTRUCTION, **columns)
    else:
        crew.table.update_columns(fresh.task_id, **columns)
        crew.table.post_message(fresh.task_id, CONDUCTOR, body, MessageType.INSTRUCTION)
