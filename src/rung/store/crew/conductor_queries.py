"""What a conductor looks at in each of its turns: what waits for it, who is at work, what could be begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CLAIMABLE, OWNED, TERMINAL, TaskState
from rung.store.crew.queries import CrewQueries
from rung.store.crew.rows import SELECT_TASK, IS_WORKER_SQL, TaskRow, task_from_row
from rung.store.crew.trigger_conditions import literals

if TYPE_CHECKING:
    from collections.abc import Container

# Ends are looked up by the index of state and outcome: of ten thousand complete tasks only the new ones are read.
_ENDED: Final = "state IN ('complete', 'exited')"
_ATTENTION: Final = (
    f"{SELECT_TASK} WHERE {IS_WORKER_SQL} AND (state IN ('error', 'needs_review') AND coalesce(note, '') NOT LIKE 'asks:%'"
    f" OR {_ENDED} AND outcome IS NULL OR {_ENDED} AND outcome = '')"
    " ORDER BY CASE state WHEN 'error' THEN 0 WHEN 'needs_review' THEN 1 WHEN 'complete' THEN 2 ELSE 3 END, task_id"
)
_RUNNING: Final = "FROM crew_processes AS process LEFT JOIN orchestration_tasks AS task USING (task_id)"
_SESSIONS: Final = (
    "SELECT task_id, session_id FROM crew_processes WHERE ended_at IS NULL ORDER BY launched_at, session_id"
)
_UNCLAIMED: Final = (
    f"SELECT process.session_id {_RUNNING} WHERE process.ended_at IS NULL"
    f" AND coalesce(task.session_id, '') <> process.session_id AND task.state IN ({literals(CLAIMABLE)})"
)
_LEFT_OVER: Final = (
    f"SELECT DISTINCT process.task_id {_RUNNING} WHERE process.ended_at IS NULL AND (task.state IS NULL"
    f" OR task.state IN ({literals(sorted(TERMINAL))}) AND coalesce(task.outcome, '') <> '')"
)
_CLAIMED: Final = f"{SELECT_TASK} WHERE {IS_WORKER_SQL} AND state IN ({literals(OWNED)}) AND open_for_claim = 0"
_FREE: Final = (
    f"SELECT task_id, depends_on FROM orchestration_tasks WHERE {IS_WORKER_SQL} AND state IN ('watching', 'fix_proposed')"
    " AND open_for_claim = 1 AND coalesce(outcome, '') = '' ORDER BY priority DESC, task_id"
)


class ConductorQueries(CrewQueries):
    """The conductor's questions."""

    def needing_attention(self, limit: int = -1) -> list[TaskRow]:
        """Rows that wait for the conductor: errors and reviews nobody was asked about, ends it has not taken note of.

        The most urgent first: those with an error cannot go on at all, those in review stand safely.
        """
        limit = f" LIMIT {limit}" if limit >= 0 else ""
        return [task_from_row(row) for row in self.connection.execute(_ATTENTION + limit)]

    def running_sessions(self) -> dict[str, str]:
        """The tasks that a process was started for which has not ended, and its session; of several the last."""
        return dict(self.connection.execute(_SESSIONS))

    def unclaimed_sessions(self) -> set[str]:
        """The sessions that were started and have claimed nothing yet."""
        return {session for (session,) in self.connection.execute(_UNCLAIMED)}

    def orphaned_tasks(self) -> list[str]:
        """Tasks that are over, and yet have a process that is not known to have ended."""
        return [name for (name,) in self.connection.execute(_LEFT_OVER)]

    def claimed_tasks(self) -> list[TaskRow]:
        """Rows that a worker has in its hands."""
        return [task_from_row(row) for row in self.connection.execute(_CLAIMED)]

    def ready_tasks(self, limit: int, exclude: Container[str] = ()) -> list[TaskRow]:
        """The first rows that nobody has and that wait for nothing, besides some."""
        found: list[TaskRow] = []
        done: set[str] | None = None
        for task_id, depends_on in self.connection.execute(_FREE):
            if len(found) >= limit:
                break
            if task_id in exclude:
                continue
            needs = json.loads(depends_on) if depends_on else []
            if needs and done is None:
                rows = self.connection.execute(
                    "SELECT task_id FROM orchestration_tasks WHERE state = ?", [TaskState.COMPLETE]
                )
                done = {name for (name,) in rows}
            if not needs or (done or set()).issuperset(needs):
                row = self.task(task_id)
                if row is not None:
                    found.append(row)
        return found
