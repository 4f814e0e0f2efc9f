"""Instructions are read before a worker gets them: small flaws are mended, larger ones are named for their writer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import TASK_ID_PATTERN
from rung.core.crew.instruction_paths import mend_paths
from rung.core.crew.instruction_sections import mend_fences, mend_sections, missing_sections
from rung.core.crew.instruction_sql import mend_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rung.core.crew.plan import CrewPlan

_ID: Final = rf"['\"`]?(?P<id>{TASK_ID_PATTERN})"
# Lines in which instructions say which task they are for.
_NAMES_ITSELF: Final = (
    rf"^\s*(?:#+\s*)?(?:\*\*)?task(?:[ _-]?id)?(?:\*\*)?\s*[:=]\s*(?:\*\*)?\s*{_ID}",
    rf"^#+\s+(?:instructions?\s+for\s+)?{_ID}\s*(?:$|[:—-]\s)",
    rf"\b(?:you (?:are working|work) on|your task is|instructions? for) {_ID}",
    rf"\bRUNG_TASK={_ID}",
)
_TYPE: Final = re.compile(
    r"^\s*(?:[-*#]+\s*)?(?:(?:\*\*)?(?:(?:task|phase|execution)[ _-]?)?(?:type|mode)(?:\*\*)?\s*[:=]\s*(?:\*\*)?\W*"
    r"|this\s+is\s+an?\s+)(?P<type>sequential|parallel)\b",
    re.IGNORECASE | re.MULTILINE,
)
_WAITS: Final = re.compile(
    rf"\b(?:wait(?:ing)?\s+(?:for|until)|(?:only\s+)?(?:start|begin)\s+(?:only\s+)?(?:after|once|when))\s+(?:the\s+)?(?:task\s+)?{_ID}"
    r"['\"`]?\s+(?:is|has|was|to\s+(?:be|complete|finish|end)|completes|finishes|ends)\b",
    re.IGNORECASE,
)
_OWN_ROW: Final = re.compile(
    rf"\bUPDATE\s+orchestration_tasks\b(?:'(?:[^']|'')*'|[^';`])*?\btask_id\s*=\s*'(?P<id>{TASK_ID_PATTERN})'",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSurroundings:
    """Facts that the text of a task's instructions is compared with."""

    task_id: str
    tasks: frozenset[str] = frozenset()  # ids of all tasks of the plan
    waits_for: frozenset[str] = frozenset()  # tasks that are complete before this one starts
    is_parallel: bool | None = None  # whether another task of its phase may run at the same time; None: not known
    writes: tuple[str, ...] = ()  # paths that tasks of the plan write
    paths: Collection[str] = ()  # files and folders, relative to the task's directory


def surroundings_of(plan: CrewPlan | None, task_id: str, paths: Collection[str]) -> TaskSurroundings:
    """Return the surroundings of a task in its plan."""
    if plan is None or task_id not in plan.dependencies():
        return TaskSurroundings(task_id=task_id, paths=paths)
    dependencies = plan.dependencies()
    before = {name: _all_before(name, dependencies) for name in dependencies}
    phase = {task.id: task.phase for task in plan.active_tasks}
    peers = [name for name in phase if name != task_id and phase[name] == phase[task_id]]
    unordered = [name for name in peers if name not in before[task_id] and task_id not in before[name]]
    return TaskSurroundings(
        task_id=task_id,
        tasks=frozenset(dependencies),
        waits_for=before[task_id],
        is_parallel=bool(unordered) if peers else None,
        writes=tuple(path for task in plan.active_tasks for path in task.writes),
        paths=paths,
    )


def _all_before(name: str, dependencies: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the tasks that a task depends on, directly or not."""
    found: set[str] = set()
    waiting = list(dependencies[name])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += dependencies.get(one, ())
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCheck:
    """The mended text, what was mended in it, and the problems that only its writer can solve."""

    text: str
    mended: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def check_instructions(
    text: str, surroundings: TaskSurroundings, exists: Callable[[str], bool] = lambda _: False
) -> InstructionCheck:
    """Read instructions. `exists` answers for paths that are not among the surroundings' own."""
    if not text.strip():
        return InstructionCheck(text=text, problems=("they are empty",))
    if _CONTROL.search(text):
        return InstructionCheck(text=text, problems=("they contain control characters: this is no text",))
    text, fences = mend_fences(text)
    text, sections = mend_sections(text)
    text, statements, states = mend_sql(text)
    text, paths = mend_paths(text, surroundings.paths, surroundings.writes, exists)
    problems = (
        *(f"the state {state!r} does not exist" for state in states),
        *missing_sections(text),
        *_wrong_task(text, surroundings),
        *_wrong_type(text, surroundings),
    )
    return InstructionCheck(text=text, mended=(*fences, *sections, *statements, *paths), problems=problems)


def _wrong_task(text: str, task: TaskSurroundings) -> list[str]:
    """Return a problem if the text says that it is another task's, or if it writes another task's row."""
    named = [
        match["id"].rstrip(".-_")
        for pattern in _NAMES_ITSELF
        for match in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE)
    ]
    others = [name for name in named if name in task.tasks and name != task.task_id]
    if others and task.task_id not in named:
        return [f"they are the instructions for {others[0]}, not for {task.task_id}"]
    rows = [match["id"] for match in _OWN_ROW.finditer(text)]
    wrong = [name for name in rows if name in task.tasks and name != task.task_id]
    return [f"their SQL changes the row of {wrong[0]}; that of this task is {task.task_id}"] if wrong else []


def _wrong_type(text: str, task: TaskSurroundings) -> list[str]:
    """Return a problem if the text is for a sequential task where the plan has a parallel one, or the other way round."""
    declared = _TYPE.search(text)
    if declared and task.is_parallel is not None and (declared["type"].lower() == "parallel") != task.is_parallel:
        planned = "parallel: another task of its phase may run at the same time" if task.is_parallel else "sequential"
        return [f"they are for a {declared['type'].lower()} task; the task is {planned}"]
    for match in _WAITS.finditer(text):
        name = match["id"].rstrip(".-_")
        if name in task.tasks - task.waits_for - {task.task_id}:
            return [f"they wait for {name}, but {task.task_id} does not depend on it: the two may run at the same time"]
    return []
