"""A plan as rows of the table: put in at the beginning, carried over when the plan changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import TERMINAL, MessageType, TaskState
from rung.core.crew.plan import CrewPlan, TaskChange, changes, checked_plan
from rung.store.crew.rows import NewTask

if TYPE_CHECKING:
    from rung.core.crew.plan import PlannedTask
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

PLAN: Final = "plan"  # a fact of the crew: the plan that is carried out, as JSON
FOLDER: Final = "plan_folder"  # from where its paths are seen


def begin(table: CrewTable, plan: dict[str, Any], folder: Path) -> CrewPlan:
    """Put a plan's tasks into the table; those that are there already stay as they are."""
    checked = checked_plan(plan)
    for planned in checked.standing:
        if table.task(planned.id) is None:
            table.add_task(_row(planned, checked, folder))
    table.set_fact(FOLDER, str(folder))
    table.set_fact(PLAN, json.dumps(plan))
    return checked


def current(table: CrewTable) -> CrewPlan | None:
    """The plan that is carried out."""
    text = table.get_fact(PLAN)
    return checked_plan(json.loads(text)) if text else None


def carry_over(crew: ConductorContext, plan: dict[str, Any], new: CrewPlan) -> None:
    """Go on with another plan. Rollbacks come first; what is removed is marked so, and never simply gone."""
    folder = Path(crew.table.get_fact(FOLDER) or ".")
    old = current(crew.table)
    todo = changes(old, new) if old is not None else None
    planned = {task.id: task for task in new.tasks}
    for name in todo.removed if todo is not None else ():
        _remove(crew, name)
    for name, waits_for in new.after().items():
        row = crew.table.task(name)
        wanted = _row(planned[name], new, folder)
        if row is None:
            crew.table.add_task(replace(wanted, plan_mark=planned[name].mark.value or TaskChange.NEW.value))
        elif row.state is TaskState.COMPLETE:
            continue
        elif todo is not None and name in (*todo.revised, *todo.rollback):
            _revise(crew, row, wanted)
        elif set(row.depends_on) != waits_for:
            crew.table.update_columns(name, depends_on=sorted(waits_for))
    crew.table.set_fact(PLAN, json.dumps(plan))


def _row(planned: PlannedTask, plan: CrewPlan, folder: Path) -> NewTask:
    return NewTask(
        task_id=planned.id,
        title=planned.title,
        instruction=planned.instruction,
        instruction_path=str(folder / planned.instruction_path) if planned.instruction_path else "",
        command=planned.command or None,
        workdir=str((folder / planned.workdir).resolve()) if planned.workdir else "",
        depends_on=tuple(sorted(plan.after()[planned.id])),
        writes=planned.writes,
        stale_after=planned.stale_after or plan.settings.stale_after,
        priority=planned.priority,
        phase=planned.phase,
        plan_mark=planned.mark.value,
    )


def _remove(crew: ConductorContext, name: str) -> None:
    row = crew.table.task(name)
    if row is None or row.state is TaskState.COMPLETE:
        return
    if row.state in TERMINAL:
        crew.table.update_columns(name, outcome="removed", plan_mark=TaskChange.REMOVED.value)
    else:
        crew.table.reply(
            row,
            TaskState.EXITED,
            "REMOVED by a new plan",
            MessageType.SYSTEM,
            outcome="removed",
            plan_mark=TaskChange.REMOVED.value,
        )
    crew.terminate(name)


def _revise(crew: ConductorContext, row: TaskRow, new: NewTask) -> None:
    """Fresh instructions and a fresh worker; its counts begin anew, but for the errors of its life."""
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
        "redispatches": 0,
        "history": [],
        "outcome": "",
        "note": "",
        "progress": "",
        "plan_mark": new.plan_mark or TaskChange.REVISED.value,
    }
    body = f"INSTRUCTION (REVISED): {new.instruction or new.instruction_path}"
    if fresh.state is TaskState.EXITED:
        crew.table.reply(fresh, TaskState.WATCHING, body, MessageType.INSTRUCTION, **columns)
    else:
        crew.table.update_columns(fresh.task_id, **columns)
        crew.table.post_message(fresh.task_id, "task-00", body, MessageType.INSTRUCTION)
