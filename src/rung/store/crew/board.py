"""A crew as it is shown: who leads it, how many tasks are where, and the tasks, what matters first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.contract import ASKS, CONDUCTOR, ESCALATED, STOP, WATCHDOG, TaskState
from rung.core.domain.errors import ConfigError
from rung.store.crew.rows import COLUMNS, SELECT_TASK, IS_WORKER_SQL, task_from_row
from rung.store.crew.trigger_conditions import literals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.crew.rows import ProcessRow, TaskRow
    from rung.store.crew.table import CrewTable

MAX_PROCESSES: Final = 50  # processes of a task
SHOWN_FACTS: Final = ("paused", "halted", STOP)
_PERSON: Final = (
    f"(state IN ('error', 'needs_review') AND coalesce(note, '') LIKE '{ASKS}%'"
    f" OR state = 'exited' AND coalesce(outcome, '') = '{ESCALATED}')"
)
_FIRST: Final = (  # after those for a person: who waits for an answer, who works, what could be begun, what is over
    (TaskState.ERROR, TaskState.NEEDS_REVIEW),
    (TaskState.EXIT_REQUESTED, TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED, TaskState.REVIEW_APPROVED),
    (TaskState.WORKING,),
    (TaskState.WATCHING,),
    (TaskState.EXITED,),
)
_RANK: Final = (
    f"CASE WHEN {_PERSON} THEN 0 "
    + " ".join(f"WHEN state IN ({literals(states)}) THEN {rank}" for rank, states in enumerate(_FIRST, 1))
    + f" ELSE {len(_FIRST) + 1} END"
)
_LIKE: Final = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardHeader:
    """What stands above the tasks."""

    conductor: TaskRow | None
    watchdog: TaskRow | None
    counts: dict[TaskState, int]
    for_person: int  # tasks that wait for one
    facts: dict[str, str]  # why nothing is given out, if that is so

    @property
    def tasks(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPage:
    """Some of the tasks, and where the next ones begin; nothing: these were the last."""

    tasks: list[TaskRow]
    after: str


def load_header(table: CrewTable) -> BoardHeader:
    """Who leads the crew, and how many tasks are where."""
    ((waiting,),) = table.connection.execute(f"SELECT count(*) FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND {_PERSON}")
    facts = {name: table.get_fact(name) or "" for name in SHOWN_FACTS}
    return BoardHeader(
        conductor=table.task(CONDUCTOR),
        watchdog=table.task(WATCHDOG),
        counts=table.counts(),
        for_person=int(waiting),
        facts={name: value for name, value in facts.items() if value},
    )


def load_page(  # what may be asked for
    table: CrewTable,
    limit: int,
    *,
    after: str = "",
    states: Sequence[TaskState] = (),
    text: str = "",
    for_person: bool = False,
) -> BoardPage:
    """Tasks, those that need a person first, then those at work; `after` is where an earlier page ended."""
    where, values = [IS_WORKER_SQL], list[Any]()
    if states:
        where.append(f"state IN ({literals(states)})")
    if for_person:
        where.append(_PERSON)
    if text:
        where.append(r"(lower(task_id) LIKE ? ESCAPE '\' OR lower(coalesce(title, '')) LIKE ? ESCAPE '\')")
        values += [f"%{text.lower().translate(_LIKE)}%"] * 2
    if after:
        where.append(f"({_RANK}, task_id) > (?, ?)")
        values += _place(after)
    sql = f"{SELECT_TASK.replace(' FROM ', f', {_RANK} FROM ', 1)} WHERE {' AND '.join(where)}"
    rows = table.connection.execute(f"{sql} ORDER BY {len(COLUMNS) + 3}, task_id LIMIT {int(limit) + 1}", values)
    found = [task_from_row(row[:-1]) for row in rows[:limit]]
    more = len(rows) > limit
    return BoardPage(tasks=found, after=f"{rows[limit - 1][-1]}.{found[-1].task_id}" if more else "")


def _place(after: str) -> tuple[int, str]:
    rank, _, name = after.partition(".")
    if len(rank) != 1 or not rank.isdigit() or not name:
        raise ConfigError("after", after, "the cursor of an earlier page, as it was given")
    return int(rank), name


def worker_task(table: CrewTable, task_id: str) -> TaskRow | None:
    """A task for workers, if there is one of this name."""
    found = table.connection.execute(f"{SELECT_TASK} WHERE task_id = ? AND {IS_WORKER_SQL}", [task_id])
    return task_from_row(found[0]) if found else None


def recent_processes(table: CrewTable, task_id: str) -> list[ProcessRow]:
    """The processes that were started for a task, the newest first."""
    return table.processes(alive_only=False, task_id=task_id)[: -MAX_PROCESSES - 1 : -1]
