"""The plan of a crew (plan.toml): its settings and tasks, its conflicts, and the difference to another revision."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

from rung.core.crew.contract import FALLBACK_PREFIX, HEARTBEAT_SECONDS, RESERVED, STALE_SECONDS, TASK_ID_PATTERN
from rung.core.crew.dependencies import find_cycle, unknown_dependencies, write_conflicts
from rung.core.crew.liveness import EXIT_SECONDS
from rung.core.crew.pool import DEFAULT_POOL, DEFAULT_POOL_LIMITS
from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COMMAND,
    COUNT,
    FLAG,
    POSITIVE_SECONDS,
    SECONDS,
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
    """Mark of a task in a revised plan. A task without a mark is compared with that of the old plan."""

    NONE = ""
    REVISED = "REVISED"
    NEW = "NEW"
    REMOVED = "REMOVED"
    ROLLBACK = "ROLLBACK"


def _is_id(value: object) -> bool:
    if not isinstance(value, str) or value in RESERVED or value.startswith(FALLBACK_PREFIX):
        return False
    return re.fullmatch(TASK_ID_PATTERN, value) is not None


_ID: Final = Type(
    f"letters, digits, dots, dashes and underscores, up to 100; not {', '.join(RESERVED)} or {FALLBACK_PREFIX}…, which are "
    "reserved",
    _is_id,
)
_POOL: Final = Type(
    "letters, digits, dots, dashes and underscores, up to 100",
    lambda value: isinstance(value, str) and re.fullmatch(TASK_ID_PATTERN, value) is not None,
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
    phases: tuple[str, ...] = setting(
        TEXTS, "Names of the phases, the first one first, for the conductor's hand-over.", default=()
    )
    workers: int = setting(COUNT, "Workers that run at once.", default=2)
    worker: tuple[str, ...] = setting(
        COMMAND,
        "Command of a worker whose task has none. `{task}`, `{instruction}`, `{db}` and `{session}` stand for the "
        "task's id, its instructions (the file's path, if they are in one), the crew's tables and the worker's session. `rung worker "
        "run` fills in the whole instructions for each run of its command.",
        default=(),
    )
    stale_after: float = setting(
        POSITIVE_SECONDS, "Seconds without a heartbeat after which a worker is stale.", default=STALE_SECONDS
    )
    review: str | tuple[str, ...] = setting(
        _REVIEW,
        "Who reviews: the rules (`auto`), a person, or a command that gets each request as JSON on standard input and decides "
        "alone.",
        default="auto",
    )
    judge: tuple[str, ...] = setting(COMMAND, "Command that reviews work where the rules ask for it.", default=())
    replanner: tuple[str, ...] = setting(
        COMMAND, "Command that gets a blocker report and writes a new plan.", default=()
    )
    poll: float = setting(POSITIVE_SECONDS, "Seconds between two polls of the tables.", default=5.0)
    beat: float = setting(POSITIVE_SECONDS, "Seconds between two heartbeats of a worker.", default=HEARTBEAT_SECONDS)
    hung: float = setting(
        POSITIVE_SECONDS, "Seconds without progress after which a worker with a heartbeat is hung.", default=1800.0
    )
    grace: float = setting(POSITIVE_SECONDS, "Seconds between asking a worker to stop and killing it.", default=5.0)
    exit_within: float = setting(
        POSITIVE_SECONDS,
        "Seconds in which a worker that was asked to exit must hand over. After that its work is saved, and it is ended.",
        default=EXIT_SECONDS,
    )
    claim_within: float = setting(
        POSITIVE_SECONDS, "Seconds in which a launched worker must claim its task.", default=300.0
    )
    redispatches: int = setting(WHOLE, "How often one task is given to another worker; 0: never.", default=3)
    restarts: int = setting(COUNT, "Worker restarts allowed within `restart_seconds`.", default=5)
    restart_seconds: float = setting(POSITIVE_SECONDS, "Time window of `restarts`.", default=900.0)
    deaths: int = setting(COUNT, "Tasks whose worker died within `death_seconds` that stop the crew.", default=3)
    death_seconds: float = setting(POSITIVE_SECONDS, "Time window of `deaths`.", default=30.0)
    conductor_stale: float = setting(
        POSITIVE_SECONDS, "Seconds without a heartbeat after which the conductor is replaced.", default=240.0
    )
    patience: float = setting(
        SECONDS,
        "Seconds that a pool waits for an overloaded or failing service to come back, without counting an error; 0: none. "
        "After that, failures go up the ladder.",
        default=DEFAULT_POOL_LIMITS.patience,
    )
    park: float = setting(
        SECONDS,
        "Longest time, in seconds, until a limit reopens for which a pool is parked. A later end, or one that nobody knows, "
        "needs a person, once for the pool.",
        default=DEFAULT_POOL_LIMITS.park,
    )
    probe_interval: float = setting(
        POSITIVE_SECONDS,
        "Least seconds between two probes of a closed pool; without a known end, the waits grow.",
        default=DEFAULT_POOL_LIMITS.probe_interval,
    )
    probe_seconds: float = setting(
        POSITIVE_SECONDS,
        "Seconds of work with progress after which a probe opens its pool. A review request or a completion opens it at "
        "once.",
        default=DEFAULT_POOL_LIMITS.probe_seconds,
    )
    spread: float = setting(
        SECONDS, "Seconds between two starts after a pool has opened, on average.", default=DEFAULT_POOL_LIMITS.spread
    )
    mandatory: tuple[str, ...] = setting(
        TEXTS,
        "Items that only a new plan may change: paths, or names as workers write them. An error or a proposed fix that would "
        "change one goes to the replanner at once.",
        default=(),
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
    checkpoints: int = setting(
        WHOLE,
        "Reviews that must be approved before the last one. `rung worker run` runs its command once for each, and once for the "
        "rest.",
        default=0,
    )
    mandatory: bool = setting(
        FLAG,
        "Whether only a new plan may change the task, and what it writes. An error or a proposed fix of another task that would "
        "change it goes to the replanner at once.",
        default=False,
    )
    redispatches: int | None = setting(optional(WHOLE), "`redispatches` of this task.", default=None)
    estimate: float | None = setting(
        optional(_PERCENT), "Expected share of the context, in per cent; compared when a worker warns.", default=None
    )
    stale_after: float | None = setting(optional(POSITIVE_SECONDS), "`stale_after` of this task.", default=None)
    pool: str = setting(
        _POOL,
        "Account or model that the task shares with others of the same pool: they wait together while it is unavailable.",
        default=DEFAULT_POOL,
    )
    priority: int = setting(_PRIORITY, "Tasks with a higher priority start first.", default=0)
    phase: int = setting(COUNT, "Number for reports; `depends_on` sets the order.", default=1)
    mark: TaskChange = setting(
        _MARK,
        "What this revision of the plan does to the task. Rollback tasks run before all others.",
        default=TaskChange.NONE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewPlan:
    """The settings and all tasks of a plan, including those that a revision removed."""

    settings: CrewSettings
    tasks: tuple[PlannedTask, ...]

    @property
    def name(self) -> str:
        """Return the name of the crew."""
        return self.settings.name

    @property
    def revision(self) -> int:
        """Return the revision number of the plan."""
        return self.settings.revision

    @property
    def active_tasks(self) -> tuple[PlannedTask, ...]:
        """Return the tasks to execute: rollbacks first, then by priority, then in the order of the file."""
        active = (task for task in self.tasks if task.mark is not TaskChange.REMOVED)
        return tuple(sorted(active, key=lambda task: (task.mark is not TaskChange.ROLLBACK, -task.priority)))

    def task(self, task_id: str) -> PlannedTask | None:
        """Return the task with this id; None if the plan has none."""
        return next((task for task in self.tasks if task.id == task_id), None)

    def dependencies(self) -> dict[str, frozenset[str]]:
        """Return the dependencies of each active task: those it declares, and all rollback tasks."""
        rollbacks = {task.id for task in self.tasks if task.mark is TaskChange.ROLLBACK}
        return {
            task.id: frozenset(task.depends_on) | (frozenset() if task.id in rollbacks else rollbacks)
            for task in self.active_tasks
        }


def read_plan(table: object) -> CrewPlan:
    """Read a plan from a parsed TOML document. Every error names its key and the allowed values."""
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
    """Kinds of conflicts between the tasks of a plan."""

    UNKNOWN = "unknown"  # a dependency that is not in the plan
    CYCLE = "cycle"
    SCOPE = "scope"  # two tasks that may run concurrently write one file


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConflict:
    """A conflict, and the tasks it is between."""

    problem: PlanProblem
    tasks: tuple[str, ...]
    message: str


def find_conflicts(plan: CrewPlan) -> tuple[PlanConflict, ...]:
    """Return the conflicts that make the plan invalid. Write conflicts are checked only if the order is valid."""
    dependencies = plan.dependencies()
    conflicts = [
        PlanConflict(
            problem=PlanProblem.UNKNOWN, tasks=(name,), message=f"{name} depends on {other}, which is not in the plan"
        )
        for name, other in unknown_dependencies(dependencies)
    ]
    cycle = () if conflicts else find_cycle(dependencies)
    if cycle:
        message = "these tasks depend on each other: " + " → ".join(cycle)
        conflicts.append(PlanConflict(problem=PlanProblem.CYCLE, tasks=cycle[:-1], message=message))
    if conflicts:
        return tuple(conflicts)
    return tuple(
        PlanConflict(
            problem=PlanProblem.SCOPE,
            tasks=(first, second),
            message=f"{first} and {second} may run concurrently, and both write {path}: let one depend on the other, or"
            " split the file",
        )
        for first, second, path in write_conflicts({task.id: task.writes for task in plan.active_tasks}, dependencies)
    )


def checked_plan(table: object) -> CrewPlan:
    """Read a plan and raise an error for its first conflict."""
    plan = read_plan(table)
    for conflict in find_conflicts(plan):
        key = "task.writes" if conflict.problem is PlanProblem.SCOPE else "task.depends_on"
        raise ConfigError(key, list(conflict.tasks), f"no conflict: {conflict.message}")
    return plan


def revised_plan(table: object, revision: int) -> CrewPlan:
    """Read a plan that replaces the one with this revision number; raises an error if it is not newer, or has a conflict."""
    plan = checked_plan(table)
    if plan.revision <= revision:
        raise ConfigError("crew.revision", plan.revision, f"more than {revision}, the revision of the current plan")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """Ids of the tasks that a new plan keeps, revises, adds, removes or rolls back."""

    unchanged: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


def diff_plans(old: CrewPlan, new: CrewPlan) -> PlanDiff:
    """Compare two plans. A task's mark takes precedence; a task that the new plan does not have is removed."""
    before = {task.id: task for task in old.tasks if task.mark is not TaskChange.REMOVED}
    ids: dict[str, list[str]] = {field.name: [] for field in fields(PlanDiff)}
    for task in new.tasks:
        ids[_change_of(before.get(task.id), task)].append(task.id)
    in_new = {task.id for task in new.tasks}
    ids["removed"] += [name for name in before if name not in in_new]
    return PlanDiff(**{change: tuple(names) for change, names in ids.items()})


def _change_of(before: PlannedTask | None, task: PlannedTask) -> str:
    """Return the field of `PlanDiff` that the task belongs to."""
    if task.mark is TaskChange.REMOVED:
        return "removed"
    if task.mark is TaskChange.ROLLBACK and (before is None or before.mark is not TaskChange.ROLLBACK):
        return "rollback"
    if before is None:
        return "new"
    is_same = replace(before, mark=TaskChange.NONE) == replace(task, mark=TaskChange.NONE)
    is_marked = task.mark in (TaskChange.REVISED, TaskChange.NEW)
    return "unchanged" if is_same and not is_marked else "revised"
