"""Queries of the conductor's poll loop: tasks that need it, running workers, and dispatchable tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CLAIMABLE, OWNED, TERMINAL, TaskState
from rung.store.crew.queries import CrewQueries
from rung.store.crew.rows import IS_WORKER_SQL, SELECT_TASK, TaskRow, parse_list, task_from_row
from rung.store.crew.trigger_conditions import literals

if TYPE_CHECKING:
    from collections.abc import Callable, Container

# Uses the index on (state, outcome): of ten thousand complete tasks only the unacknowledged ones are read.
_ENDED: Final = "state IN ('complete', 'exited')"
_ATTENTION: Final = (
    f"{SELECT_TASK} WHERE {IS_WORKER_SQL} AND (state IN ('error', 'needs_review') AND coalesce(note, '') NOT LIKE 'asks:%'"
    f" OR {_ENDED} AND outcome IS NULL OR {_ENDED} AND outcome = '')"
    " ORDER BY CASE state WHEN 'error' THEN 0 WHEN 'needs_review' THEN 1 WHEN 'complete' THEN 2 ELSE 3 END, task_id"
)
_PROCESS_JOIN: Final = "FROM crew_processes AS process LEFT JOIN orchestration_tasks AS task USING (task_id)"
_SESSIONS: Final = (
    "SELECT task_id, session_id FROM crew_processes WHERE ended_at IS NULL ORDER BY launched_at, session_id"
)
_UNCLAIMED: Final = (
    f"SELECT process.session_id {_PROCESS_JOIN} WHERE process.ended_at IS NULL"
    f" AND coalesce(task.session_id, '') <> process.session_id AND task.state IN ({literals(CLAIMABLE)})"
)
_ORPHANED: Final = (
    f"SELECT DISTINCT process.task_id {_PROCESS_JOIN} WHERE process.ended_at IS NULL AND (task.state IS NULL"
    f" OR task.state IN ({literals(sorted(TERMINAL))}) AND coalesce(task.outcome, '') <> '')"
)
_CLAIMED: Final = f"{SELECT_TASK} WHERE {IS_WORKER_SQL} AND state IN ({literals(OWNED)}) AND open_for_claim = 0"
_DISPATCHABLE: Final = (
    f"SELECT task_id, depends_on FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND state IN ('watching', 'fix_proposed')"
    " AND open_for_claim = 1 AND coalesce(outcome, '') = '' ORDER BY priority DESC, task_id"
)


class ConductorQueries(CrewQueries):
    """Read operations of the conductor."""

    def needing_attention(self, limit: int = -1) -> list[TaskRow]:
        """Return the tasks that wait for the conductor: errors, reviews and unacknowledged ends.

        Errors come first, since their workers are blocked. Tasks that already wait for a person are left out.
        """
        limited = f"{_ATTENTION} LIMIT {limit}" if limit >= 0 else _ATTENTION
        return [task_from_row(row) for row in self.connection.execute(limited)]

    def running_sessions(self) -> dict[str, str]:
        """Return task ids with a running process, and its session; the latest if there are several."""
        return dict(self.connection.execute(_SESSIONS))

    def unclaimed_sessions(self) -> set[str]:
        """Return the sessions of running processes that have not claimed their task yet."""
        return {session for (session,) in self.connection.execute(_UNCLAIMED)}

    def orphaned_tasks(self) -> list[str]:
        """Return ended tasks that still have a running process."""
        return [name for (name,) in self.connection.execute(_ORPHANED)]

    def claimed_tasks(self) -> list[TaskRow]:
        """Return the tasks that a worker owns."""
        return [task_from_row(row) for row in self.connection.execute(_CLAIMED)]

    def ready_tasks(
        self,
        limit: int,
        exclude: Container[str] = (),
        admits: Callable[[str], bool] = lambda _: True,
        rank: Callable[[str], int] = lambda _: 0,
    ) -> list[TaskRow]:
        """Return the first unowned tasks whose dependencies are complete or unreadable, except those in `exclude`.

        Tasks of a lower `rank` come first, then those of a higher priority. `admits` is asked last: whether the pool of the
        task lets it start.
        """
        tasks: list[TaskRow] = []
        done: set[str] | None = None
        for task_id, depends_on in sorted(self.connection.execute(_DISPATCHABLE), key=lambda row: rank(row[0])):
            if len(tasks) >= limit:
                break
            if task_id in exclude:
                continue
            dependencies = parse_list(depends_on)
            if dependencies and done is None:
                rows = self.connection.execute(
                    "SELECT task_id FROM orchestration_tasks WHERE state = ?", [TaskState.COMPLETE]
                )
                done = {name for (name,) in rows}
            if (not dependencies or (done or set()).issuperset(dependencies)) and admits(task_id):
                row = self.task(task_id)
                if row is not None:
                    tasks.append(row)
        return tasks
