"""Stored pools of a crew: the pool of each task, the state of each pool, and errors that were a pool's.

All of it is in the crew's facts, which only the holder of the crew's key writes.
"""

from __future__ import annotations

import json
from typing import Final

from rung.core.crew.pool import DEFAULT_POOL, Pool
from rung.store.crew.queries import CrewQueries

POOL_FACT: Final = "pool/"  # the name of the pool follows; its state, as JSON
TASK_POOL_FACT: Final = "task_pool/"  # the task id follows; the name of its pool


class PoolQueries(CrewQueries):
    """Read operations on pools."""

    def pools(self) -> dict[str, Pool]:
        """Return the pools that were ever closed, by name."""
        return {name: parse_pool(text) for name, text in self.facts(POOL_FACT).items()}

    def pool_of(self, task_id: str) -> str:
        """Return the name of the task's pool."""
        rows = self.connection.execute("SELECT value FROM crew_facts WHERE name = ?", [TASK_POOL_FACT + task_id])
        return str(rows[0][0]) if rows and rows[0][0] else DEFAULT_POOL

    def task_pools(self) -> dict[str, str]:
        """Return the pools of the tasks that are not in the default pool."""
        return {task: name for task, name in self.facts(TASK_POOL_FACT).items() if name}

    def facts(self, prefix: str) -> dict[str, str]:
        """Return the facts of the crew whose name begins so, by the rest of their name."""
        rows = self.connection.execute(
            "SELECT name, value FROM crew_facts WHERE substr(name, 1, ?) = ? ORDER BY name", [len(prefix), prefix]
        )
        return {name[len(prefix) :]: value for name, value in rows}


def parse_pool(text: str | None) -> Pool:
    """Return the state of a pool from its fact."""
    try:
        return Pool.from_json(json.loads(text or "null"))
    except ValueError:
        return Pool()
