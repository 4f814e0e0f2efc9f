"""Takeovers of runs whose executor died: one watchdog at a time hands over, and a run that kills its executors ends.

`takeover-claim/EXECUTOR` names the watchdog that is handing over an executor's runs, until a time on the database's clock.
`takeover/RUN` counts the takeovers of a run since its last new step, and names the death that was counted last.
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
    """Become, or remain, the one watchdog that hands over the runs of a dead executor, for `seconds`."""
    topic = f"takeover-claim/{executor_id}"
    until = 0.0

    def work(connection: BackendConnection) -> bool:
        nonlocal until
        at = time_in(connection, now)
        claim = _body(connection, topic)
        if claim is not None and claim["by"] != watchdog and claim["until"] > at:
            return False
        until = at + seconds
        connection.execute(_PUT, (topic, json.dumps({"by": watchdog, "until": until}), at))
        return True

    def present(connection: BackendConnection) -> bool:
        return _body(connection, topic) == {"by": watchdog, "until": until}  # not an older claim of its own

    return journal.write(work, present).result()


def release_takeover(journal: Database, executor_id: str, watchdog: str) -> None:
    """Remove a watchdog's claim on an executor whose runs were handed over; the claim of another one stays."""
    topic = f"takeover-claim/{executor_id}"

    def work(connection: BackendConnection) -> None:
        claim = _body(connection, topic)
        if claim is not None and claim["by"] == watchdog:
            connection.execute("DELETE FROM message WHERE topic = ?", (topic,))

    journal.write(work, lambda _: True).result()


def count_takeover(
    journal: Database, run: str, steps: int, *, death: str, executor_id: str, watchdog: str, now: float | None = None
) -> int | None:
    """Count a takeover of a run that has recorded this many steps. Return how many there were without a new one.

    None: the watchdog no longer has the claim on the executor, and must leave its runs to another one. `death` names the
    death of the executor. It counts once, however often it is told: a watchdog may die before it has handed over the run,
    or get no answer, and the next one tells it again.
    """
    topic = f"takeover/{run}"

    def work(connection: BackendConnection) -> int | None:
        at = time_in(connection, now)
        claim = _body(connection, f"takeover-claim/{executor_id}")
        if claim is None or claim["by"] != watchdog or claim["until"] <= at:
            return None
        before = _body(connection, topic) or {}
        count = int(before["count"]) if before.get("steps") == steps else 0
        if not count or before.get("death") != death:
            count += 1
            body = json.dumps({"steps": steps, "count": count, "death": death})
            connection.execute(_PUT, (topic, body, at))
        return count

    return journal.write(work, lambda _: False).result()


def _body(connection: BackendConnection, topic: str) -> dict[str, Any] | None:
    rows = connection.execute("SELECT body FROM message WHERE topic = ?", (topic,))
    return json.loads(rows[0][0]) if rows else None
