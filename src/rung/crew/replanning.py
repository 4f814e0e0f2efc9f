"""When the plan is what is wrong: everybody pauses, the blocker is written down, a new plan is asked for, at most thrice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.blocker import Blocker
from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.plan import CrewPlan, checked_plan
from rung.core.domain.errors import ConfigError
from rung.crew.context import git_output
from rung.crew.dispatch import PAUSED
from rung.crew.plan_sync import carry_over, current

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

CONSULTATIONS: Final = "consultations"


def replan(crew: ConductorContext, task: TaskRow, why: str) -> None:
    """Consult the replanner about a task that cannot be done as planned."""
    number = int(crew.table.get_fact(CONSULTATIONS) or 0) + 1
    if number > crew.settings.consultations:
        crew.request_operator(task, f"{why} (the plan was changed {number - 1} times already)")
        return
    _pause(crew, f"consultation {number}: {task.task_id}: {why}")
    report = crew.write(f"blocker-report-r{number}.md", _report(crew, task, why, number))
    table = crew.judgement.replan(task, report.read_text())
    plan = _usable(crew, table, number)
    if plan is None or table is None:
        crew.request_operator(task, f"{why} (nobody had a better plan; see {report})")
    else:
        crew.table.set_fact(CONSULTATIONS, str(number))
        carry_over(crew, table, plan)
        crew.log(f"replanned: revision {plan.revision}")
    crew.table.set_fact(PAUSED, "")


def _usable(crew: ConductorContext, table: dict[str, Any] | None, number: int) -> CrewPlan | None:
    """A plan that can be carried out; one that cannot is kept beside what is wrong with it, and not carried out."""
    if table is None:
        return None
    try:
        return checked_plan(table)
    except ConfigError as error:
        crew.write(f"refused-plan-r{number}.json", json.dumps({"plan": table, "wrong": str(error)}, indent=2))
        crew.log(f"the new plan cannot be used: {error}")
        return None


def _pause(crew: ConductorContext, why: str) -> None:
    """Nothing more is given out, and whoever works is told; once, also where a successor takes the consultation up."""
    if crew.table.get_fact(PAUSED):
        return
    crew.table.set_fact(PAUSED, why)
    for task in crew.table.claimed_tasks():
        crew.table.post_message(
            task.task_id, CONDUCTOR, f"PAUSE: the plan is being changed ({why})", MessageType.EMERGENCY
        )


def _report(crew: ConductorContext, task: TaskRow, why: str, number: int) -> str:
    """What the replanner has to know."""
    tried = (MessageType.ERROR, MessageType.FIX_PROPOSAL, MessageType.REJECTION)
    messages = crew.table.messages(task.task_id, types=tried)
    plan = current(crew.table)
    rows = crew.table.tasks()
    return Blocker(
        what=task.last_error or why,
        tries=tuple(message.message for message in messages[-10:]),
        why_beyond=why,
        affected=(task.task_id, *(row.task_id for row in rows if task.task_id in row.depends_on)),
        plan=plan.name if plan is not None else "tasks that were added one by one",
        revision=plan.revision if plan is not None else 1,
        phase=task.phase,
        tasks={row.task_id: row.state.value for row in rows},
        artifacts=tuple(str(file) for file in sorted(crew.runtime.glob("partial/*"))),
        git=git_output(task.workdir, "status", "--short", "--branch"),
    ).body(number)
