"""Takeovers of runs whose executor died: one watchdog at a time hands over, and a run that kills its executors ends.

`takeover-claim/EXECUTOR` names the watchdog that is handing over an executor's runs, until a time on the database's clock.
`takeover/RUN` counts the takeovers of a run since its last new step.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.store.fleet.database_clock import time_in

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Database

_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)


def claim_takeover(
    journal: Database, executor_id: str, watchdog: str, seconds: float, now: float | None = None
) -> bool:
    """Become the one watchdog that hands over the runs of a dead executor, for `seconds`."""
    topic = f"takeover-claim/{executor_id}"

    def work(connection: BackendConnection) -> bool:
        at = time_in(connection, now)
        claim = _body(connection, topic)
        if claim is not None and claim["by"] != watchdog and claim["until"] > at:
            return False
        connection.execute(_PUT, (topic, json.dumps({"by": watchdog, "until": at + seconds}), at))
        return True

    def present(connection: BackendConnection) -> bool:
        claim = _body(connection, topic)
        return claim is not None and claim["by"] == watchdog

    return journal.write(work, present).result()


def release_takeover(journal: Database, executor_id: str) -> None:
    """Remove the claim on an executor whose runs were handed over."""
    topic = f"takeover-claim/{executor_id}"
    journal.write(
        lambda connection: connection.execute("DELETE FROM message WHERE topic = ?", (topic,)), lambda _: True
    ).result()


def count_takeover(journal: Database, run: str, steps: int, now: float | None = None) -> int:
    """Count a takeover of a run that has recorded this many steps. Return how many there were without a new one."""
    topic = f"takeover/{run}"

    def work(connection: BackendConnection) -> int:
        before = _body(connection, topic)
        count = before["count"] + 1 if before is not None and before["steps"] == steps else 1
        connection.execute(_PUT, (topic, json.dumps({"steps": steps, "count": count}), time_in(connection, now)))
        return int(count)

    return journal.write(work, lambda _: False).result()  # counted twice at worst: the run ends a takeover earlier


def _body(connection: BackendConnection, topic: str) -> dict[str, Any] | None:
    rows = connection.execute("SELECT body FROM message WHERE topic = ?", (topic,))
    return json.loads(rows[0][0]) if rows else None
