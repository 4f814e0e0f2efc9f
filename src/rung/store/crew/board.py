"""Read model of a crew for display: conductor, task counts, and tasks ordered by urgency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import ASKS_PREFIX, CONDUCTOR, ESCALATED, STOP_KEY, STOPPED_KEY, WATCHDOG, TaskState
from rung.core.crew.pool import describe
from rung.core.domain.errors import ConfigError
from rung.store.crew.rows import COLUMNS, IS_WORKER_SQL, SELECT_TASK, TASK_COLUMNS_SQL, task_from_row
from rung.store.crew.trigger_conditions import literals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.crew.pool import Pool
    from rung.store.crew.rows import ProcessRow, TaskRow
    from rung.store.crew.table import CrewTable

MAX_PROCESSES: Final = 50  # of one task
SHOWN_FACTS: Final = ("paused", "halted", STOP_KEY, STOPPED_KEY)
_NEEDS_PERSON: Final = (
    f"(state IN ('error', 'needs_review') AND coalesce(note, '') LIKE '{ASKS_PREFIX}%'"
    f" OR state = 'exited' AND coalesce(outcome, '') = '{ESCALATED}')"
)
_STATES_BY_URGENCY: Final = (  # ranks 1 and up; rank 0 is for tasks that need a person
    (TaskState.ERROR, TaskState.NEEDS_REVIEW),
    (TaskState.EXIT_REQUESTED, TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED, TaskState.REVIEW_APPROVED),
    (TaskState.WORKING,),
    (TaskState.WATCHING,),
    (TaskState.EXITED,),
)
_RANK: Final = (
    f"CASE WHEN {_NEEDS_PERSON} THEN 0 "
    + " ".join(f"WHEN state IN ({literals(states)}) THEN {rank}" for rank, states in enumerate(_STATES_BY_URGENCY, 1))
    + f" ELSE {len(_STATES_BY_URGENCY) + 1} END"
)
_LIKE_ESCAPES: Final = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardHeader:
    """Summary of a crew: its conductor, its watchdog and task counts."""

    conductor: TaskRow | None
    watchdog: TaskRow | None
    counts: dict[TaskState, int]
    for_person: int  # number of tasks that need a person
    facts: dict[str, str]  # why dispatch is paused, if it is, and why a pool is closed
    pools: dict[str, Pool]  # closed pools, by name

    @property
    def tasks(self) -> int:
        """Return the number of tasks."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPage:
    """A page of tasks, and the cursor of the next page; empty on the last page."""

    tasks: list[TaskRow]
    after: str


def load_header(table: CrewTable) -> BoardHeader:
    """Return the conductor, the watchdog and the task counts by state."""
    ((waiting,),) = table.connection.execute(
        f"SELECT count(*) FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND {_NEEDS_PERSON}"
    )
    pools = closed_pools(table)
    facts = {name: table.get_fact(name) or "" for name in SHOWN_FACTS}
    facts |= {f"pool {name}": describe(pool) for name, pool in pools.items()}
    return BoardHeader(
        conductor=table.task(CONDUCTOR),
        watchdog=table.task(WATCHDOG),
        counts=table.counts(),
        for_person=int(waiting),
        facts={name: value for name, value in facts.items() if value},
        pools=pools,
    )


def closed_pools(table: CrewTable) -> dict[str, Pool]:
    """Return the pools whose tasks wait, by name."""
    return {name: pool for name, pool in table.pools().items() if not pool.is_open}


def load_page(
    table: CrewTable,
    limit: int,
    *,
    after: str = "",
    states: Sequence[TaskState] = (),
    text: str = "",
    for_person: bool = False,
) -> BoardPage:
    """Return tasks ordered by urgency, those that need a person first; `after` is the cursor of an earlier page."""
    where, values = [IS_WORKER_SQL], list[Any]()
    if states:
        where.append(f"state IN ({literals(states)})")
    if for_person:
        where.append(_NEEDS_PERSON)
    if text:
        where.append(r"(lower(task_id) LIKE ? ESCAPE '\' OR lower(coalesce(title, '')) LIKE ? ESCAPE '\')")
        values += [f"%{text.lower().translate(_LIKE_ESCAPES)}%"] * 2
    if after:
        where.append(f"({_RANK}, task_id) > (?, ?)")
        values += _parse_cursor(after)
    sql = f"SELECT {TASK_COLUMNS_SQL}, {_RANK} FROM orchestration_tasks WHERE {' AND '.join(where)}"
    rows = table.connection.execute(f"{sql} ORDER BY {len(COLUMNS) + 4}, task_id LIMIT {int(limit) + 1}", values)
    tasks = [task_from_row(row[:-1]) for row in rows[:limit]]
    more = len(rows) > limit
    return BoardPage(tasks=tasks, after=f"{rows[limit - 1][-1]}.{tasks[-1].task_id}" if more else "")


def _parse_cursor(after: str) -> tuple[int, str]:
    rank, _, name = after.partition(".")
    if len(rank) != 1 or not rank.isdigit() or not name:
        raise ConfigError("after", after, "the cursor of an earlier page")
    return int(rank), name


def worker_task(table: CrewTable, task_id: str) -> TaskRow | None:
    """Return a worker task, or None; conductor, watchdog and fallback rows do not count."""
    tasks = table.connection.execute(f"{SELECT_TASK} WHERE task_id = ? AND {IS_WORKER_SQL}", [task_id])
    return task_from_row(tasks[0]) if tasks else None


def recent_processes(table: CrewTable, task_id: str) -> list[ProcessRow]:
    """Return the newest processes launched for a task, newest first."""
    return table.processes(alive_only=False, task_id=task_id)[: -MAX_PROCESSES - 1 : -1]
