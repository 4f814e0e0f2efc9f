"""Replanning: pause the crew, report the blocker to the replanner and apply the plan it returns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.blocker import Blocker
from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.plan import CrewPlan, revised_plan
from rung.core.domain.errors import ConfigError
from rung.core.text.quoted_data import quote_data
from rung.crew.context import CONSULTATIONS_KEY, git_output
from rung.crew.dispatch import PAUSED_KEY
from rung.crew.plan_sync import PLAN_FOLDER_KEY, PLAN_KEY, apply_plan, current_plan, require_programs
from rung.crew.subagent import ask, unusable

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.crew.subagent import Asking
    from rung.store.crew.rows import TaskRow

MAX_PLAN_CHARS: Final = 48_000  # in a question: it may be one argument, and Linux allows 128 KiB for that
_PAUSE, _RESUME = "PAUSE", "RESUME"  # first words of the messages to workers


def replan(crew: ConductorContext, task: TaskRow, reason: str) -> Asking[None]:
    """Ask the replanner for a new plan, because the task cannot be done as planned. Ask a person if there is none.

    Consultations follow one another: a plan may change what the next one is about.
    """
    while paused_by(crew) not in ("", task.task_id):
        yield None
    number = crew.consultations() + 1
    if number > crew.settings.max_consultations:
        crew.request_operator(task, f"{reason} (the plan was already changed {number - 1} times)")
        return
    report = crew.write(f"blocker-report-r{number}-{task.task_id}.md", _blocker_report(crew, task, reason, number))
    if crew.judgement.has_replanner:
        _pause(crew, task, f"consultation {number}: {reason}")
    result = "the consultation was broken off"
    try:
        question = crew.judgement.replan(
            task, report.read_text(), _current(crew, task, number), lambda plan: _check(crew, plan, number)
        )
        new = yield from ask(crew, task, question)
        if new is None:
            result = "the plan stays as it is"
            crew.request_operator(task, f"{reason} (no usable new plan; see {report})")
        else:
            crew.table.set_fact(CONSULTATIONS_KEY, str(number))
            apply_plan(crew, *new)
            result = f"the plan was changed (revision {new[1].revision})"
            crew.log(f"replanned: revision {new[1].revision}")
    finally:
        lift_pause(crew, result)


def _current(crew: ConductorContext, task: TaskRow, number: int) -> dict[str, Any]:
    """Return the plan that is to be changed, for the question. A long one is only in the file: a cut plan could be applied."""
    plan = json.loads(crew.table.get_fact(PLAN_KEY) or "null")
    current = {
        "revision": _revision(crew),
        "plan": plan,
        "tasks": {row.task_id: row.state.value for row in crew.table.tasks()},
    }
    text = json.dumps(current)
    file = crew.write(f"plan-r{number}-{task.task_id}.json", text)
    shown = current if len(text) <= MAX_PLAN_CHARS else {"revision": current["revision"]}
    return {**shown, "plan_file": str(file.resolve())}


def _revision(crew: ConductorContext) -> int:
    """Return the revision of the current plan; 0 if tasks were added without a plan."""
    plan = current_plan(crew.table)
    return 0 if plan is None else plan.revision


def _check(crew: ConductorContext, table: dict[str, Any], number: int) -> tuple[dict[str, Any], CrewPlan]:
    """Return a new plan with its content if it can be applied. Otherwise it is saved, and the replanner is told why."""
    try:
        plan = revised_plan(table, _revision(crew))
        require_programs(plan, Path(crew.table.get_fact(PLAN_FOLDER_KEY) or "."))
    except ConfigError as error:
        crew.write(f"refused-plan-r{number}.json", json.dumps({"plan": table, "wrong": str(error)}, indent=2))
        crew.log(f"the new plan is refused: {error}")
        raise unusable(f"the plan is refused: {error}") from None
    return table, plan


def _pause(crew: ConductorContext, task: TaskRow, reason: str) -> None:
    """Stop dispatching because of this task, and tell the workers."""
    crew.table.set_fact(PAUSED_KEY, f"{task.task_id}: {reason}")
    for worker in crew.table.claimed_tasks():
        body = f"{_PAUSE}: the plan is being changed\n{quote_data(reason, 'reason')}"
        crew.table.post_message(worker.task_id, CONDUCTOR, body, MessageType.EMERGENCY)


def paused_by(crew: ConductorContext) -> str:
    """Return the task whose consultation has paused the crew; empty if it is not paused."""
    return (crew.table.get_fact(PAUSED_KEY) or "").partition(":")[0]


def lift_pause(crew: ConductorContext, result: str) -> None:
    """Dispatch again, and tell every worker that was told to pause. Done once, also by the next conductor."""
    if not crew.table.get_fact(PAUSED_KEY):
        return
    last = {
        message.task_id: message.message
        for message in crew.table.messages(types=(MessageType.EMERGENCY,))
        if message.from_session == CONDUCTOR
    }
    for task_id, text in last.items():
        if text.startswith(_PAUSE):
            crew.table.post_message(task_id, CONDUCTOR, f"{_RESUME}: {result}", MessageType.EMERGENCY)
    crew.table.set_fact(PAUSED_KEY, "")


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
