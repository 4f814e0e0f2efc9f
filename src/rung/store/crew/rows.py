"""Rows of a crew's table as values: tasks, messages, leases, processes and restarts."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import ASKS_PREFIX, ESCALATED, RESERVED, STALE_SECONDS, MessageType, TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

HEARTBEAT_AGE_SQL: Final = "(julianday('now') - julianday(last_heartbeat)) * 86400"  # seconds
INSTRUCTION_FACT: Final = "instruction/"  # fact of the crew; the task id follows: the text of its instruction
SAVED_FACT: Final = (
    "saved/"  # fact of the crew; the task id follows: files with the work of its last worker, one per line
)
STATE_AGE_SQL: Final = "(julianday('now') - julianday(moved_at)) * 86400"
EXCUSED_FACT: Final = "excused/"  # fact of the crew; the task id follows: how many of its errors were its pool's
# The table's own count never becomes less, so that no worker can lower it. Excused errors are subtracted when it is read.
ERROR_TRIES_SQL: Final = f"error_tries - coalesce((SELECT CAST(value AS INTEGER) FROM crew_facts WHERE name = '{EXCUSED_FACT}' || task_id), 0)"
# A worker that has reported nothing yet is measured from its start, not from the progress of its predecessor.
PROGRESS_AGE_SQL: Final = (
    "(julianday('now') - julianday(CASE WHEN progress_at < started_at THEN started_at"
    " ELSE coalesce(progress_at, started_at) END)) * 86400"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task row. Times are UTC text as SQLite writes them; unset texts are empty."""

    task_id: str
    state: TaskState
    instruction_path: str = ""
    session_id: str = ""
    worked_by: str = ""
    started_at: str | None = None
    completed_at: str | None = None
    report_path: str = ""
    retry_count: int = 0
    last_heartbeat: str | None = None
    last_error: str = ""
    generation: int = 0  # fencing token: incremented by each change of owner
    open_for_claim: bool = True  # no worker owns it
    error_tries: int = 0  # over the task's life, across workers; without those that were its pool's
    approved: bool = False
    checkpoint: int | None = None
    review_cycles: int = 0  # requests since the last approval, whatever checkpoint they name
    reviews_approved: int = 0  # over the task's life
    checkpoints: int = 0  # reviews that must be approved before the last one
    stale_after: float = STALE_SECONDS
    title: str = ""
    depends_on: tuple[str, ...] = ()
    priority: int = 0  # larger first
    command: tuple[str, ...] | None = None  # None: the plan's
    workdir: str = ""
    writes: tuple[str, ...] = ()
    progress: str = ""
    progress_at: str | None = None
    redispatches: int = 0
    warnings: int = 0
    history: Any = None
    plan_mark: str = ""
    phase: int = 1
    outcome: str = ""
    note: str = ""
    moved_at: str | None = None  # when its state last changed
    heartbeat_age: float | None = None  # seconds, by the database clock
    progress_age: float | None = None  # since its progress text last changed, or since it started
    state_age: float | None = None  # since its state last changed
    problem: str = ""  # why the row cannot be used; empty if it can

    @property
    def errors(self) -> int:
        """Return the errors of the task's life: the table's count, or its worker's if that one is larger."""
        return max(self.error_tries, self.retry_count)

    @property
    def is_stale(self) -> bool:
        """Return whether the heartbeat is missing or older than `stale_after`."""
        return self.heartbeat_age is None or self.heartbeat_age > self.stale_after

    @property
    def needs_person(self) -> bool:
        """Return whether only a person can help: the task asks a question, or it was escalated."""
        asks = self.state in (TaskState.ERROR, TaskState.NEEDS_REVIEW) and self.note.startswith(ASKS_PREFIX)
        return asks or (self.state is TaskState.EXITED and self.outcome == ESCALATED)

    @property
    def version(self) -> str:
        """Return the version for optimistic locking."""
        return f"{self.generation}-{self.state.value}"


_COMPUTED: Final = 4  # fields after the columns
COLUMNS: Final = tuple(field.name for field in fields(TaskRow))[:-_COMPUTED]
_TEXTS: Final = {field.name for field in fields(TaskRow) if field.type == "str"} - {"task_id", "problem"}
_EXPRESSIONS: Final = {
    **{name: f"coalesce({name}, '')" for name in _TEXTS},
    "retry_count": "coalesce(retry_count, 0)",
    "error_tries": ERROR_TRIES_SQL,
}
_SELECTED: Final = ", ".join(_EXPRESSIONS.get(name, name) for name in COLUMNS)
TASK_COLUMNS_SQL: Final = f"{_SELECTED}, {HEARTBEAT_AGE_SQL}, {PROGRESS_AGE_SQL}, {STATE_AGE_SQL}"
SELECT_TASK: Final = f"SELECT {TASK_COLUMNS_SQL} FROM orchestration_tasks"
_INDEX: Final = {name: place for place, name in enumerate(COLUMNS)}
_STATE, _OPEN, _APPROVED = _INDEX["state"], _INDEX["open_for_claim"], _INDEX["approved"]
_DEPENDS_ON, _WRITES, _COMMAND, _HISTORY = _INDEX["depends_on"], _INDEX["writes"], _INDEX["command"], _INDEX["history"]
_LISTS: Final = (_DEPENDS_ON, _WRITES, _COMMAND)
_STALE_AFTER: Final = _INDEX["stale_after"]
_STATES: Final = {state.value: state for state in TaskState}
# A conductor reads ten thousand rows per poll. Setting the slots directly, past the frozen dataclass's checks, takes
# a quarter of the time.
_SLOT_SETTERS: Final = tuple(getattr(TaskRow, field.name).__set__ for field in fields(TaskRow))
_CHANGEABLE: Final = frozenset(COLUMNS) - {"task_id", "state", "session_id", "generation", "error_tries", "moved_at"}


def task_from_row(row: Sequence[Any]) -> TaskRow:
    """Return the task of a row read with SELECT_TASK."""
    values = list(row)
    values[_STATE] = _STATES[values[_STATE]]
    values[_OPEN] = values[_OPEN] == 1
    values[_APPROVED] = values[_APPROVED] == 1
    problem = ""
    for index in _LISTS:
        text = values[index]
        items = _parse_json(text) if text is not None and text != "[]" else []
        if not isinstance(items, list):
            problem = problem or f"{COLUMNS[index]} is not a list: {str(text)[:80]!r}"
            items = []
        values[index] = tuple(map(str, items))
    if values[_HISTORY] is not None:
        items = _parse_json(values[_HISTORY])
        problem = problem if isinstance(items, list) else problem or "history is not a list"
        values[_HISTORY] = items if isinstance(items, list) else None
    values[_COMMAND] = values[_COMMAND] or None
    if not isinstance(values[_STALE_AFTER], int | float):
        problem = problem or f"stale_after is not a number: {str(values[_STALE_AFTER])[:80]!r}"
        values[_STALE_AFTER] = STALE_SECONDS
    values.append(problem)
    task = TaskRow.__new__(TaskRow)
    for set_slot, value in zip(_SLOT_SETTERS, values, strict=True):
        set_slot(task, value)
    return task


def parse_list(text: str | None) -> tuple[str, ...]:
    """Decode a list column."""
    if text is None or text == "[]":
        return ()
    items = _parse_json(text)
    return tuple(map(str, items)) if isinstance(items, list) else ()


def _parse_json(text: str) -> Any:
    """Decode JSON; None if a foreign writer stored invalid JSON, so that one bad row does not hide the others."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def encode_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns encoded for the database; reject columns that only triggers or commands may change."""
    for name in columns:
        if name not in _CHANGEABLE:
            raise TypeError(f"column {name!r} must not be changed directly")
    return {name: _encode(value) for name, value in columns.items()}


def _encode(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to add, with the instruction for its worker."""

    task_id: str
    instruction: str = ""  # message text; empty: the instruction path
    instruction_path: str = ""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    command: tuple[str, ...] | None = None
    workdir: str = ""
    writes: tuple[str, ...] = ()
    stale_after: float = STALE_SECONDS
    plan_mark: str = ""
    phase: int = 1
    note: str = ""
    pool: str = ""  # empty: the default pool
    checkpoints: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLease:
    """A worker's lease on a task, with the fencing token that each of its writes carries."""

    task_id: str
    session: str
    generation: int
    worked_by: str = ""
    instruction_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewMessageRow:
    """A message about a task."""

    id: int
    task_id: str
    from_session: str
    message: str
    message_type: MessageType
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A process launched for the crew."""

    session_id: str
    task_id: str
    launched_at: str
    ended_at: str | None
    exit_code: int | None  # known only if the conductor that launched it saw it exit
    command: tuple[str, ...]
    machine: str  # on which it was launched; empty if unknown
    age: float  # seconds since it was launched


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRow:
    """A recorded restart and its reason."""

    id: int
    at: str
    task_id: str
    why: str
    age: float  # seconds


IS_WORKER_SQL: Final = (
    f"task_id NOT IN ({', '.join(repr(name) for name in RESERVED)}) AND substr(task_id, 1, 9) <> 'fallback-'"
)
