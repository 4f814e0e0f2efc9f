"""What is in a crew's table, as values: tasks, messages, claims, processes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import ASKS, ESCALATED, RESERVED, STALE, MessageType, TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

HEARTBEAT_AGE_SQL: Final = "(julianday('now') - julianday(last_heartbeat)) * 86400"  # seconds
PROGRESS_AGE_SQL: Final = "(julianday('now') - julianday(coalesce(progress_at, started_at))) * 86400"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A row of the table. Times are UTC text as SQLite writes them; what is not set is empty."""

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
    generation: int = 0  # how often it changed hands: the fence of a claim
    open_for_claim: bool = True  # nobody has it: whoever claims it first
    error_tries: int = 0  # for life, whoever worked on it
    approved: bool = False
    checkpoint: int | None = None
    review_cycles: int = 0  # of this checkpoint
    stale_after: float = STALE
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
    heartbeat_age: float | None = None  # seconds, by the store's own clock
    progress_age: float | None = None  # the same, since it said something new of its progress, or began

    @property
    def is_stale(self) -> bool:
        """No sign of life for longer than it may be, or never one."""
        return self.heartbeat_age is None or self.heartbeat_age > self.stale_after

    @property
    def needs_person(self) -> bool:
        """Only a person can help it now: it asks, or it was given up."""
        asks = self.state in (TaskState.ERROR, TaskState.NEEDS_REVIEW) and self.note.startswith(ASKS)
        return asks or (self.state is TaskState.EXITED and self.outcome == ESCALATED)

    @property
    def version(self) -> str:
        """Which it is, for whoever changes it only if nobody else has."""
        return f"{self.generation}-{self.state.value}"


COLUMNS: Final = tuple(field.name for field in fields(TaskRow))[:-2]
_TEXTS: Final = {field.name for field in fields(TaskRow) if field.type == "str"} - {"task_id"}
_ASKED: Final = ", ".join(
    f"coalesce({name}, '')" if name in _TEXTS else f"coalesce({name}, 0)" if name == "retry_count" else name
    for name in COLUMNS
)
SELECT_TASK: Final = f"SELECT {_ASKED}, {HEARTBEAT_AGE_SQL}, {PROGRESS_AGE_SQL} FROM orchestration_tasks"
_AT: Final = {name: place for place, name in enumerate(COLUMNS)}
_STATE, _OPEN, _APPROVED = _AT["state"], _AT["open_for_claim"], _AT["approved"]
_DEPENDS_ON, _WRITES, _COMMAND, _HISTORY = _AT["depends_on"], _AT["writes"], _AT["command"], _AT["history"]
_STATES: Final = {state.value: state for state in TaskState}
# A conductor reads ten thousand rows in each of its turns: to fill the slots one by one, past the checks of a frozen
# value, takes a quarter of the time.
_FILL: Final = tuple(getattr(TaskRow, field.name).__set__ for field in fields(TaskRow))
_CHANGEABLE: Final = frozenset(COLUMNS) - {"task_id", "state", "session_id", "generation", "error_tries"}


def task_from_row(row: Sequence[Any]) -> TaskRow:
    """The task of a row that SELECT gave."""
    values = list(row)
    values[_STATE] = _STATES[values[_STATE]]
    values[_OPEN] = values[_OPEN] == 1
    values[_APPROVED] = values[_APPROVED] == 1
    values[_DEPENDS_ON] = parse_list(values[_DEPENDS_ON])
    values[_WRITES] = parse_list(values[_WRITES])
    if values[_COMMAND] is not None:
        values[_COMMAND] = parse_list(values[_COMMAND]) or None
    if values[_HISTORY] is not None:
        values[_HISTORY] = _json(values[_HISTORY])
    made = TaskRow.__new__(TaskRow)
    for fill, value in zip(_FILL, values, strict=True):
        fill(made, value)
    return made


def parse_list(text: str | None) -> tuple[str, ...]:
    """A column that is a list."""
    if text is None or text == "[]":
        return ()
    found = _json(text)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _json(text: str) -> Any:
    """What a stranger made unreadable is not there: one spoilt row must not hide all others."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def encode_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns that may be changed, with their values as the store keeps them."""
    for name in columns:
        if name not in _CHANGEABLE:
            raise TypeError(f"column {name!r} is not one to be changed so")
    return {name: _kept(value) for name, value in columns.items()}


def _kept(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to be added, and what its worker is told."""

    task_id: str
    instruction: str = ""  # the message; empty: where the file is
    instruction_path: str = ""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    command: tuple[str, ...] | None = None
    workdir: str = ""
    writes: tuple[str, ...] = ()
    stale_after: float = STALE
    plan_mark: str = ""
    phase: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLease:
    """A task in a worker's hands: a lease, and the fence that each of its writes carries."""

    task_id: str
    session: str
    generation: int
    worked_by: str = ""
    instruction_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewMessageRow:
    """What somebody said about a task."""

    id: int
    task_id: str
    from_session: str
    message: str
    message_type: MessageType
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A process that was started for the crew."""

    session_id: str
    task_id: str
    launched_at: str
    ended_at: str | None
    exit_code: int | None  # where the conductor that ended it was the one that started it
    command: tuple[str, ...]
    age: float  # seconds since it was launched


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRow:
    """A restart, and why."""

    id: int
    at: str
    task_id: str
    why: str
    age: float  # seconds


IS_WORKER_SQL: Final = (
    f"task_id NOT IN ({', '.join(repr(name) for name in RESERVED)}) AND substr(task_id, 1, 9) <> 'fallback-'"
)
