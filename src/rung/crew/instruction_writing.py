"""Instructions that cannot be used: written anew by the judge, else the plan is changed, else a person is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.crew.instruction_reading import check_text, give_instructions, instruction_problem
from rung.crew.replanning import replan
from rung.crew.subagent import ask, unusable

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.crew.subagent import Asking
    from rung.store.crew.rows import TaskRow


def ensure_instructions(crew: ConductorContext, task: TaskRow) -> Asking[None]:
    """Replace the task's instructions if they cannot be used. Their writer is told what is wrong, also with a new text."""
    problem = instruction_problem(crew, task)
    if not problem:
        return
    question = crew.judgement.write_instructions(task, problem, lambda text: _check(crew, task, text))
    written = yield from ask(crew, task, question)
    if written is None:
        where = f" ({task.instruction_path})" if task.instruction_path else ""
        yield from replan(crew, task, f"its instructions cannot be used{where}: {problem}")
        return
    give_instructions(crew, task, written, f"rewritten: {problem}")


def _check(crew: ConductorContext, task: TaskRow, text: str) -> str:
    """Return the text, mended. One with a larger flaw goes back to its writer."""
    check = check_text(crew, task, text)
    if check.problems:
        raise unusable(f"the new instructions cannot be used either: {'; '.join(check.problems)}")
    return check.text
