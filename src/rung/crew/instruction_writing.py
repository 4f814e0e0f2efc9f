"""Instructions that cannot be used: written anew by the judge, else the plan is changed, else a person is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.crew.instruction_file import instruction_problem
from rung.crew.replanning import replan
from rung.crew.subagent import ask

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.crew.subagent import Asking
    from rung.store.crew.rows import TaskRow


def ensure_instructions(crew: ConductorContext, task: TaskRow) -> Asking[None]:
    """Replace the task's instruction file if it cannot be used."""
    problem = instruction_problem(task)
    if not problem:
        return
    written = yield from ask(crew, task, crew.judgement.write_instructions(task, problem))
    if written is None:
        reason = f"its instructions cannot be used ({task.instruction_path}): {problem}"
        yield from replan(crew, task, reason)
        return
    file = crew.write(f"instructions/{task.task_id}.md", written)
    crew.table.update_columns(task.task_id, instruction_path=str(file))
    crew.log(f"{task.task_id}: its instructions were rewritten ({file}): {problem}")
