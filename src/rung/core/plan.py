"""A crew's plan: its settings and its tasks, from a table (plan.toml); what is wrong with it; what a new one changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from rung.core.crew import BEAT, FALLBACK, RESERVED, STALE
from rung.core.errors import ConfigError, is_number, is_whole
from rung.core.keys import (
    COMMAND,
    COUNT,
    NEEDED,
    SECONDS,
    TEXT,
    TEXTS,
    Key,
    is_any_text,
    is_command,
    is_count,
    is_seconds,
    is_text,
    is_texts,
    read_keys,
    read_rows,
)
from rung.core.scopes import clashes, cycle, unknown

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ID_WORDS: Final = f"letters, digits, dots, dashes and underscores, up to 100; not {', '.join(RESERVED)} or {FALLBACK}…, which are reserved"


class Mark(StrEnum):
    """What a new plan says of a task of the old one; the empty mark: nothing, so it is compared."""

    NONE = ""
    REVISED = "REVISED"
    NEW = "NEW"
    REMOVED = "REMOVED"
    ROLLBACK = "ROLLBACK"


def _is_review(value: object) -> bool:
    return value in ("auto", "person") or (is_command(value) and bool(value))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_id(value: object) -> bool:
    if not isinstance(value, str) or value in RESERVED or value.startswith(FALLBACK):
        return False
    return _ID.fullmatch(value) is not None


def _is_percent(value: Any) -> bool:
    return is_number(value) and 0 < value <= 100  # noqa: PLR2004  # what per cent are


CREW_KEYS: Final = (
    Key("name", is_text, TEXT, "crew", "What the crew is called."),
    Key("revision", is_count, COUNT, 1, "The plan's number; a replanner writes the next one."),
    Key("workers", is_count, COUNT, 2, "How many workers run at once."),
    Key(
        "worker", is_command, COMMAND, (),
        "What a worker runs, where its task has no command of its own. `{task}`, `{instruction}`, `{db}` and "
        "`{session}` stand for the task's id, its instructions, the crew's tables and the worker's session.",
    ),
    Key("stale_after", is_seconds, SECONDS, STALE, "Seconds without a beat, after which a worker counts as stale."),
    Key(
        "review", _is_review, "auto, person, or a command as a list of texts", "auto",
        "Who judges reviews: the rules, a person, or a command that is given the request on standard input.",
    ),
    Key("judge", is_command, COMMAND, (), "A command that reads work deeply where the rules ask for that."),
    Key("replanner", is_command, COMMAND, (), "A command that is given a blocker report and writes a new plan."),
    Key("poll", is_seconds, SECONDS, 5.0, "Seconds between two looks at the tables."),
    Key("beat", is_seconds, SECONDS, BEAT, "Seconds between two beats of a worker."),
    Key("hung", is_seconds, SECONDS, 1800.0, "Seconds without progress, after which a worker that beats counts as hung."),
    Key("grace", is_seconds, SECONDS, 5.0, "Seconds between asking a worker to end and ending it."),
    Key("claim_within", is_seconds, SECONDS, 300.0, "Seconds in which a launched worker has to claim its task."),
    Key("redispatches", is_count, COUNT, 3, "How often one task is given to another worker."),
    Key("restarts", is_count, COUNT, 5, "How many workers may be begun again within `restart_seconds`."),
    Key("restart_seconds", is_seconds, SECONDS, 900.0, "See `restarts`."),
    Key("deaths", is_count, COUNT, 3, "How many deaths within `death_seconds` have one cause: then all of it stops."),
    Key("death_seconds", is_seconds, SECONDS, 30.0, "See `deaths`."),
    Key("conductor_stale", is_seconds, SECONDS, 240.0, "Seconds without a beat, after which the conductor is replaced."),
    Key("attended", _is_bool, "true or false", False, "Is somebody there to be asked? Else a task that needs a person is given up, with a report."),
)  # fmt: skip
TASK_KEYS: Final = (
    Key("id", _is_id, _ID_WORDS, NEEDED, "The task's id: `task-01`."),
    Key("title", is_any_text, TEXT, "", "What it is called where people read."),
    Key("instruction", is_text, TEXT, "", "What to do. Either this or `instruction_path`."),
    Key("instruction_path", is_text, TEXT, "", "The file that says what to do, seen from the plan's folder."),
    Key("command", is_command, COMMAND, (), "What this task's worker runs, instead of the crew's."),
    Key("workdir", is_text, TEXT, "", "The folder to run it in, seen from the plan's."),
    Key("depends_on", is_texts, "a list of the ids of other tasks", (), "Tasks that must be complete before it starts."),
    Key(
        "writes", is_texts, TEXTS, (),
        "Files and folders it writes (`*`, `?` and `**` are understood). Two tasks that may run at once must not "
        "share one.",
    ),
    Key("checkpoints", is_whole, "a whole number, 0 or more", 0, "How many reviews it goes through before its last."),
    Key(
        "estimate", _is_percent, "per cent, more than 0 and at most 100", None,
        "How much of its context the task should take, in per cent; weighed when a worker warns.",
    ),
    Key("stale_after", is_seconds, SECONDS, None, "This task's own `stale_after`."),
    Key("priority", lambda value: is_whole(value, -1_000_000), "a whole number", 0, "The higher, the earlier."),
    Key("phase", is_count, COUNT, 1, "A number for reports; what waits for what is said by `depends_on`."),
    Key(
        "mark", lambda value: value in tuple(Mark), "one of REVISED, NEW, REMOVED, ROLLBACK, or empty", "",
        "What this revision of the plan does to the task. Rollback tasks run before all others.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewSettings:
    """The `[crew]` of a plan. See CREW_KEYS."""

    name: str = "crew"
    revision: int = 1
    workers: int = 2
    worker: tuple[str, ...] = ()
    stale_after: float = STALE
    review: str | tuple[str, ...] = "auto"
    judge: tuple[str, ...] = ()
    replanner: tuple[str, ...] = ()
    poll: float = 5.0
    beat: float = BEAT
    hung: float = 1800.0
    grace: float = 5.0
    claim_within: float = 300.0
    redispatches: int = 3
    restarts: int = 5
    restart_seconds: float = 900.0
    deaths: int = 3
    death_seconds: float = 30.0
    conductor_stale: float = 240.0
    attended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A `[[task]]` of a plan. See TASK_KEYS."""

    id: str
    title: str = ""
    instruction: str = ""
    instruction_path: str = ""
    command: tuple[str, ...] = ()
    workdir: str = ""
    depends_on: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    checkpoints: int = 0
    estimate: float | None = None
    stale_after: float | None = None
    priority: int = 0
    phase: int = 1
    mark: Mark = Mark.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
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
        there = (task for task in self.tasks if task.mark is not Mark.REMOVED)
        return tuple(sorted(there, key=lambda task: (task.mark is not Mark.ROLLBACK, -task.priority)))

    def after(self) -> dict[str, frozenset[str]]:
        """What each task that is to be done waits for: what it names, and every rollback task."""
        rollbacks = {task.id for task in self.tasks if task.mark is Mark.ROLLBACK}
        return {
            task.id: frozenset(task.depends_on) | (frozenset() if task.id in rollbacks else rollbacks)
            for task in self.standing
        }


def read_plan(table: object) -> Plan:
    """A plan from a table; every error names its key and what is allowed."""
    if not isinstance(table, Mapping):
        raise ConfigError("plan", table, "a table")
    for name, value in table.items():
        if name not in ("crew", "task"):
            raise ConfigError(name, value, "one of the tables [crew] and [[task]]")
    settings = CrewSettings(**read_keys(table.get("crew", {}), CREW_KEYS, "crew"))
    if settings.beat >= settings.stale_after:
        raise ConfigError("crew.beat", settings.beat, f"less than crew.stale_after, {settings.stale_after:g}")
    rows = read_rows(table.get("task"), TASK_KEYS, "task")
    tasks = tuple(_task(row, f"task[{number}]", settings) for number, row in enumerate(rows))
    if all(task.mark is Mark.REMOVED for task in tasks):
        raise ConfigError("task", [task.id for task in tasks], "at least one task that is not REMOVED")
    return Plan(settings=settings, tasks=tasks)


def _task(row: dict[str, Any], where: str, settings: CrewSettings) -> PlannedTask:
    task = PlannedTask(**{**row, "mark": Mark(row["mark"])})
    if task.mark is Mark.REMOVED:
        return task
    if bool(task.instruction) == bool(task.instruction_path):
        raise ConfigError(f"{where}.instruction", task.instruction, "given, or else instruction_path is; never both")
    if not task.command and not settings.worker:
        raise ConfigError(f"{where}.command", list(task.command), f"{COMMAND}; or crew.worker is given")
    if task.stale_after is not None and task.stale_after <= settings.beat:
        raise ConfigError(f"{where}.stale_after", task.stale_after, f"more than crew.beat, {settings.beat:g}")
    return task


class Wrong(StrEnum):
    """What can be wrong with a plan as a whole."""

    UNKNOWN = "unknown"  # waits for a task that is not there
    CYCLE = "cycle"
    SCOPE = "scope"  # two that may run at once write one file


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One thing that is wrong, and between which tasks."""

    wrong: Wrong
    tasks: tuple[str, ...]
    said: str


def conflicts(plan: Plan) -> tuple[Conflict, ...]:
    """What must be mended before it can run; scopes are looked at once the order is sound."""
    after = plan.after()
    found = [
        Conflict(wrong=Wrong.UNKNOWN, tasks=(name,), said=f"{name} waits for {other}, which is no task of the plan")
        for name, other in unknown(after)
    ]
    circle = () if found else cycle(after)
    if circle:
        said = "these wait for one another: " + " → ".join(circle)
        found.append(Conflict(wrong=Wrong.CYCLE, tasks=circle[:-1], said=said))
    if found:
        return tuple(found)
    return tuple(
        Conflict(
            wrong=Wrong.SCOPE,
            tasks=(first, second),
            said=f"{first} and {second} may run at once, and both write {path}: let one depend on the other, or split it",
        )
        for first, second, path in clashes({task.id: task.writes for task in plan.standing}, after)
    )


def checked_plan(table: object) -> Plan:
    """A plan that can run; the first conflict is an error."""
    plan = read_plan(table)
    for conflict in conflicts(plan):
        key = "task.writes" if conflict.wrong is Wrong.SCOPE else "task.depends_on"
        raise ConfigError(key, list(conflict.tasks), f"no conflict: {conflict.said}")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a new plan does to the tasks of the old one, by id; nothing is ever silently gone."""

    unchanged: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


def changes(old: Plan, new: Plan) -> Changes:
    """By mark where there is one, else by comparing; a task the new plan does not name is removed."""
    before = {task.id: task for task in old.tasks if task.mark is not Mark.REMOVED}
    sorted_out: dict[str, list[str]] = {field.name: [] for field in fields(Changes)}
    for task in new.tasks:
        sorted_out[_changed(before.get(task.id), task)].append(task.id)
    named = {task.id for task in new.tasks}
    sorted_out["removed"] += [name for name in before if name not in named]
    return Changes(**{name: tuple(ids) for name, ids in sorted_out.items()})


def _changed(before: PlannedTask | None, task: PlannedTask) -> str:
    if task.mark is Mark.REMOVED:
        return "removed"
    if task.mark is Mark.ROLLBACK and (before is None or before.mark is not Mark.ROLLBACK):
        return "rollback"
    if before is None:
        return "new"
    same = replace(before, mark=Mark.NONE) == replace(task, mark=Mark.NONE) and task.mark not in (
        Mark.REVISED,
        Mark.NEW,
    )
    return "unchanged" if same else "revised"
