"""What a conductor looks at in each of its turns: what waits for it, who is at work, what could be begun."""

from __future__ import annotations

import json
from typing import Final

from rung.core.crew import OWNED, State
from rung.store.crew.reading import Reading
from rung.store.crew.rows import SELECT, WORKERS, Task, task
from rung.store.crew.rules import quoted

_ATTENTION: Final = (
    f"{SELECT} WHERE {WORKERS} AND (state IN ('error', 'needs_review') AND coalesce(note, '') NOT LIKE 'asks:%'"
    " OR state IN ('complete', 'exited') AND coalesce(outcome, '') = '')"
)
_CLAIMED: Final = f"{SELECT} WHERE {WORKERS} AND state IN ({quoted(OWNED)}) AND open_for_claim = 0"
_FREE: Final = (
    f"SELECT task_id, depends_on FROM orchestration_tasks WHERE {WORKERS} AND state IN ('watching', 'fix_proposed')"
    " AND open_for_claim = 1 AND coalesce(outcome, '') = '' ORDER BY priority DESC, task_id"
)


class Looking(Reading):
    """The conductor's questions."""

    def attention(self) -> list[Task]:
        """Rows that wait for the conductor: errors and reviews nobody was asked about, ends it has not taken note of."""
        return [task(row) for row in self.connection.execute(_ATTENTION)]

    def claimed(self) -> list[Task]:
        """Rows that a worker has in its hands."""
        return [task(row) for row in self.connection.execute(_CLAIMED)]

    def ready(self, most: int) -> list[Task]:
        """The first rows that nobody has and that wait for nothing."""
        found: list[Task] = []
        done: set[str] | None = None
        for task_id, depends_on in self.connection.execute(_FREE):
            if len(found) >= most:
                break
            needs = json.loads(depends_on) if depends_on else []
            if needs and done is None:
                rows = self.connection.execute(
                    "SELECT task_id FROM orchestration_tasks WHERE state = ?", [State.COMPLETE]
                )
                done = {name for (name,) in rows}
            if not needs or (done or set()).issuperset(needs):
                row = self.task(task_id)
                if row is not None:
                    found.append(row)
        return found
