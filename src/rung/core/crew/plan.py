"""A crew's plan: its settings and its tasks, from a table (plan.toml); what is wrong with it; what a new one changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

from rung.core.crew.contract import BEAT, FALLBACK, RESERVED, STALE
from rung.core.crew.dependencies import clashes, cycle, unknown
from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COMMAND,
    COUNT,
    FLAG,
    POSITIVE_SECONDS,
    TEXT,
    TEXTS,
    WHOLE,
    Type,
    check_keys,
    one_of,
    optional,
    read_rows,
    read_settings,
    read_table,
    setting,
    settings,
)


class TaskChange(StrEnum):
    """What a new plan says of a task of the old one; the empty mark: nothing, so it is compared."""

    NONE = ""
    REVISED = "REVISED"
    NEW = "NEW"
    REMOVED = "REMOVED"
    ROLLBACK = "ROLLBACK"


def _is_id(value: object) -> bool:
    if not isinstance(value, str) or value in RESERVED or value.startswith(FALLBACK):
        return False
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value) is not None


_ID: Final = Type(
    f"letters, digits, dots, dashes and underscores, up to 100; not {', '.join(RESERVED)} or {FALLBACK}…, which are "
    "reserved",
    _is_id,
)
_IDS: Final = TEXTS._replace(allowed="a list of the ids of other tasks")
_REVIEW: Final = Type(
    "auto, person, or a command as a list of texts",
    lambda value: value in ("auto", "person") or (COMMAND.is_valid(value) and bool(value)),
    lambda value, _: value if isinstance(value, str) else tuple(value),
)
_PERCENT: Final = Type("per cent, more than 0 and at most 100", lambda value: is_number(value) and 0 < value <= 100)  # noqa: PLR2004
_PRIORITY: Final = Type("a whole number", lambda value: is_whole(value, -1_000_000))
_MARK: Final = one_of(TaskChange)._replace(allowed="one of REVISED, NEW, REMOVED, ROLLBACK, or empty")


@settings
class CrewSettings:
    """The `[crew]` table of a plan."""

    name: str = setting(TEXT, "Name of the crew.", default="crew")
    revision: int = setting(COUNT, "Number of this plan; a replanner writes the next one.", default=1)
    workers: int = setting(COUNT, "Workers that run at once.", default=2)
    worker: tuple[str, ...] = setting(
        COMMAND,
        "Command of a worker whose task has none. `{task}`, `{instruction}`, `{db}` and `{session}` stand for the "
        "task's id, its instructions, the crew's tables and the worker's session.",
        default=(),
    )
    stale_after: float = setting(
        POSITIVE_SECONDS, "Seconds without a heartbeat after which a worker is stale.", default=STALE
    )
    review: str | tuple[str, ...] = setting(
        _REVIEW,
        "Who reviews: the rules (`auto`), a person, or a command that gets the request on standard input.",
        default="auto",
    )
    judge: tuple[str, ...] = setting(COMMAND, "Command that reviews work where the rules ask for it.", default=())
    replanner: tuple[str, ...] = setting(
        COMMAND, "Command that gets a blocker report and writes a new plan.", default=()
    )
    poll: float = setting(POSITIVE_SECONDS, "Seconds between two polls of the tables.", default=5.0)
    beat: float = setting(POSITIVE_SECONDS, "Seconds between two heartbeats of a worker.", default=BEAT)
    hung: float = setting(
        POSITIVE_SECONDS, "Seconds without progress after which a worker with a heartbeat is hung.", default=1800.0
    )
    grace: float = setting(POSITIVE_SECONDS, "Seconds between asking a worker to stop and killing it.", default=5.0)
    claim_within: float = setting(
        POSITIVE_SECONDS, "Seconds in which a launched worker must claim its task.", default=300.0
    )
    redispatches: int = setting(COUNT, "How often one task is given to another worker.", default=3)
    restarts: int = setting(COUNT, "Worker restarts allowed within `restart_seconds`.", default=5)
    restart_seconds: float = setting(POSITIVE_SECONDS, "Time window of `restarts`.", default=900.0)
    deaths: int = setting(COUNT, "Worker deaths within `death_seconds` that stop the crew.", default=3)
    death_seconds: float = setting(POSITIVE_SECONDS, "Time window of `deaths`.", default=30.0)
    conductor_stale: float = setting(
        POSITIVE_SECONDS, "Seconds without a heartbeat after which the conductor is replaced.", default=240.0
    )
    attended: bool = setting(
        FLAG, "Whether a person can be asked. If not, a task that needs one ends with a report.", default=False
    )


@settings
class PlannedTask:
    """A `[[task]]` table of a plan."""

    id: str = setting(_ID, "Id of the task: `task-01`.")
    title: str = setting(ANY_TEXT, "Display name.", default="")
    instruction: str = setting(TEXT, "Instructions. Either this or `instruction_path`.", default="")
    instruction_path: str = setting(TEXT, "File with the instructions, relative to the plan's folder.", default="")
    command: tuple[str, ...] = setting(COMMAND, "Command of this task's worker, instead of the crew's.", default=())
    workdir: str = setting(TEXT, "Working directory, relative to the plan's folder.", default="")
    depends_on: tuple[str, ...] = setting(_IDS, "Tasks that must be complete before it starts.", default=())
    writes: tuple[str, ...] = setting(
        TEXTS,
        "Files and folders it writes; `*`, `?` and `**` are patterns. Two tasks that may run at once must not share "
        "one.",
        default=(),
    )
    checkpoints: int = setting(WHOLE, "Reviews before the last one.", default=0)
    estimate: float | None = setting(
        optional(_PERCENT), "Expected share of the context, in per cent; compared when a worker warns.", default=None
    )
    stale_after: float | None = setting(optional(POSITIVE_SECONDS), "`stale_after` of this task.", default=None)
    priority: int = setting(_PRIORITY, "Tasks with a higher priority start first.", default=0)
    phase: int = setting(COUNT, "Number for reports; `depends_on` sets the order.", default=1)
    mark: TaskChange = setting(
        _MARK,
        "What this revision of the plan does to the task. Rollback tasks run before all others.",
        default=TaskChange.NONE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewPlan:
    """The settings and the tasks, those that a revision removed among them."""

    settings: CrewSettings
    tasks: tuple[PlannedTask, ...]

    @property
    def name(self) -> str:
        """The crew's."""
        return self.settings.name

    @property
    def revision(self) -> int:
        """Which plan of this crew it is."""
        return self.settings.revision

    @property
    def standing(self) -> tuple[PlannedTask, ...]:
        """The tasks that are to be done: rollbacks first, then by priority, then in the order of the file."""
        there = (task for task in self.tasks if task.mark is not TaskChange.REMOVED)
        return tuple(sorted(there, key=lambda task: (task.mark is not TaskChange.ROLLBACK, -task.priority)))

    def after(self) -> dict[str, frozenset[str]]:
        """What each task that is to be done waits for: what it names, and every rollback task."""
        rollbacks = {task.id for task in self.tasks if task.mark is TaskChange.ROLLBACK}
        return {
            task.id: frozenset(task.depends_on) | (frozenset() if task.id in rollbacks else rollbacks)
            for task in self.standing
        }


def read_plan(table: object) -> CrewPlan:
    """A plan from a table; every error names its key and what is allowed."""
    source = read_table(table, "plan")
    check_keys(source, ("crew", "task"))
    settings = read_settings(CrewSettings, source.get("crew", {}), "crew")
    if settings.beat >= settings.stale_after:
        raise ConfigError("crew.beat", settings.beat, f"less than crew.stale_after, {settings.stale_after:g}")
    tasks = read_rows(PlannedTask, source.get("task") or None, "task")
    for number, task in enumerate(tasks):
        _check_task(task, f"task[{number}]", settings)
    if all(task.mark is TaskChange.REMOVED for task in tasks):
        raise ConfigError("task", [task.id for task in tasks], "at least one task that is not REMOVED")
    return CrewPlan(settings=settings, tasks=tasks)


def _check_task(task: PlannedTask, where: str, settings: CrewSettings) -> None:
    if task.mark is TaskChange.REMOVED:
        return
    if bool(task.instruction) == bool(task.instruction_path):
        raise ConfigError(f"{where}.instruction", task.instruction, "given, or else instruction_path is; never both")
    if not task.command and not settings.worker:
        raise ConfigError(f"{where}.command", list(task.command), f"{COMMAND.allowed}; or crew.worker is given")
    if task.stale_after is not None and task.stale_after <= settings.beat:
        raise ConfigError(f"{where}.stale_after", task.stale_after, f"more than crew.beat, {settings.beat:g}")


class PlanProblem(StrEnum):
    """What can be wrong with a plan as a whole."""

    UNKNOWN = "unknown"  # waits for a task that is not there
    CYCLE = "cycle"
    SCOPE = "scope"  # two that may run at once write one file


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConflict:
    """One thing that is wrong, and between which tasks."""

    wrong: PlanProblem
    tasks: tuple[str, ...]
    said: str


def conflicts(plan: CrewPlan) -> tuple[PlanConflict, ...]:
    """What must be mended before it can run; scopes are looked at once the order is sound."""
    after = plan.after()
    found = [
        PlanConflict(
            wrong=PlanProblem.UNKNOWN, tasks=(name,), said=f"{name} waits for {other}, which is no task of the plan"
        )
        for name, other in unknown(after)
    ]
    circle = () if found else cycle(after)
    if circle:
        said = "these wait for one another: " + " → ".join(circle)
        found.append(PlanConflict(wrong=PlanProblem.CYCLE, tasks=circle[:-1], said=said))
    if found:
        return tuple(found)
    return tuple(
        PlanConflict(
            wrong=PlanProblem.SCOPE,
            tasks=(first, second),
            said=f"{first} and {second} may run at once, and both write {path}: let one depend on the other, or split it",
        )
        for first, second, path in clashes({task.id: task.writes for task in plan.standing}, after)
    )


def checked_plan(table: object) -> CrewPlan:
    """A plan that can run; the first conflict is an error."""
    plan = read_plan(table)
    for conflict in conflicts(plan):
        key = "task.writes" if conflict.wrong is PlanProblem.SCOPE else "task.depends_on"
        raise ConfigError(key, list(conflict.tasks), f"no conflict: {conflict.said}")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """What a new plan does to the tasks of the old one, by id; nothing is ever silently gone."""

    unchanged: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


def changes(old: CrewPlan, new: CrewPlan) -> PlanDiff:
    """By mark where there is one, else by comparing; a task the new plan does not name is removed."""
    before = {task.id: task for task in old.tasks if task.mark is not TaskChange.REMOVED}
    sorted_out: dict[str, list[str]] = {field.name: [] for field in fields(PlanDiff)}
    for task in new.tasks:
        sorted_out[_changed(before.get(task.id), task)].append(task.id)
    named = {task.id for task in new.tasks}
    sorted_out["removed"] += [name for name in before if name not in named]
    return PlanDiff(**{name: tuple(ids) for name, ids in sorted_out.items()})


def _changed(before: PlannedTask | None, task: PlannedTask) -> str:
    if task.mark is TaskChange.REMOVED:
        return "removed"
    if task.mark is TaskChange.ROLLBACK and (before is None or before.mark is not TaskChange.ROLLBACK):
        return "rollback"
    if before is None:
        return "new"
    same = replace(before, mark=TaskChange.NONE) == replace(task, mark=TaskChange.NONE) and task.mark not in (
        TaskChange.REVISED,
        TaskChange.NEW,
    )
    return "unchanged" if same else "revised"
