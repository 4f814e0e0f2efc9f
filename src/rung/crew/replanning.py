"""Replanning: pause the crew, report the blocker to the replanner and apply the plan it returns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.blocker import Blocker
from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.plan import CrewPlan, checked_plan
from rung.core.domain.errors import ConfigError
from rung.core.text.quoted_data import quote_data
from rung.crew.context import git_output
from rung.crew.dispatch import PAUSED_KEY
from rung.crew.plan_sync import apply_plan, current_plan

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

CONSULTATIONS_KEY: Final = "consultations"  # fact of the crew: how many new plans were applied


def replan(crew: ConductorContext, task: TaskRow, reason: str) -> None:
    """Ask the replanner for a new plan, because the task cannot be done as planned. Ask a person if there is none."""
    number = int(crew.table.get_fact(CONSULTATIONS_KEY) or 0) + 1
    if number > crew.settings.max_consultations:
        crew.request_operator(task, f"{reason} (the plan was already changed {number - 1} times)")
        return
    _pause(crew, f"consultation {number}: {task.task_id}: {reason}")
    report = crew.write(f"blocker-report-r{number}.md", _blocker_report(crew, task, reason, number))
    table = crew.judgement.replan(task, report.read_text())
    plan = _validate(crew, table, number)
    if plan is None or table is None:
        crew.request_operator(task, f"{reason} (no usable new plan; see {report})")
    else:
        crew.table.set_fact(CONSULTATIONS_KEY, str(number))
        apply_plan(crew, table, plan)
        crew.log(f"replanned: revision {plan.revision}")
    crew.table.set_fact(PAUSED_KEY, "")


def _validate(crew: ConductorContext, table: dict[str, Any] | None, number: int) -> CrewPlan | None:
    """Return the plan if it is valid. An invalid plan is saved with its error and not applied."""
    if table is None:
        return None
    try:
        return checked_plan(table)
    except ConfigError as error:
        crew.write(f"refused-plan-r{number}.json", json.dumps({"plan": table, "wrong": str(error)}, indent=2))
        crew.log(f"the new plan is invalid: {error}")
        return None


def _pause(crew: ConductorContext, reason: str) -> None:
    """Stop dispatching and tell the workers. Done once, also if a new conductor resumes the consultation."""
    if crew.table.get_fact(PAUSED_KEY):
        return
    crew.table.set_fact(PAUSED_KEY, reason)
    for task in crew.table.claimed_tasks():
        body = f"PAUSE: the plan is being changed\n{quote_data(reason, 'reason')}"
        crew.table.post_message(task.task_id, CONDUCTOR, body, MessageType.EMERGENCY)


def _blocker_report(crew: ConductorContext, task: TaskRow, reason: str, number: int) -> str:
    """Return the report that the replanner gets."""
    attempts = (MessageType.ERROR, MessageType.FIX_PROPOSAL, MessageType.REJECTION)
    messages = crew.table.messages(task.task_id, types=attempts)
    plan = current_plan(crew.table)
    rows = crew.table.tasks()
    return Blocker(
        summary=task.last_error or reason,
        attempts=tuple(message.message for message in messages[-10:]),
        reason=reason,
        affected=(task.task_id, *(row.task_id for row in rows if task.task_id in row.depends_on)),
        plan=plan.name if plan is not None else "tasks that were added one by one",
        revision=plan.revision if plan is not None else 1,
        phase=task.phase,
        tasks={row.task_id: row.state.value for row in rows},
        artifacts=tuple(str(file) for file in sorted(crew.runtime_dir.glob("partial/*"))),
        git=git_output(task.workdir, "status", "--short", "--branch"),
    ).body(number)
