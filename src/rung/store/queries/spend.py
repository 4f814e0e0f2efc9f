"""Spend and its limits, from the journal: used by the service to show them and by the gateway to enforce them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.spend_limits import SpendLimits, month_start
from rung.store.queries.incidents import placeholders
from rung.store.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.store.backends.port import BackendConnection, Database, Readable, Row

SETTING_NAME: Final = "budgets"  # of the setting that operators change
_KEY_TOPIC: Final = "spent/"
_MAX_SESSIONS: Final = 500  # in one query
_MAX_BATCHES: Final = 50  # of the latest holders that have charged a key


def spend_limits(journal: Database, file: SpendLimits | None = None) -> SpendLimits:
    """Return the operator's limits, which override those of a file."""
    return (file or SpendLimits()).with_overrides(setting(journal, SETTING_NAME).body or {})


def spent_in_month(journal: Database, now: float) -> dict[str, float]:
    """Return the US dollars spent this month (UTC), by project."""
    rows = journal.read(
        "SELECT project, SUM(dollars) FROM by_hour WHERE hour >= ? GROUP BY project",
        [int(month_start(now) // 3_600)],
    )
    return {project: float(dollars) for project, dollars in rows}


def spent_by_sessions(journal: Database, sessions: Sequence[str]) -> dict[str, float]:
    """Return the US dollars spent by these sessions; 0 for unknown ones."""
    names = list(sessions)[:_MAX_SESSIONS]
    if not names:
        return {}
    query = f"SELECT id, dollars FROM session WHERE id IN ({placeholders(names)})"  # noqa: S608  # placeholders
    rows = journal.read(query, names)
    return {**dict.fromkeys(names, 0.0), **{session: float(dollars) for session, dollars in rows}}


def top_sessions(journal: Readable, minimum: float, limit: int) -> dict[str, float]:
    """Return the US dollars of the sessions that spent at least `minimum`, the most expensive first."""
    rows = journal.read(
        "SELECT id, dollars FROM session WHERE dollars >= ? ORDER BY dollars DESC, id LIMIT ?", (minimum, limit)
    )
    return dict(rows)


def spent_by_keys(journal: Database) -> dict[str, float]:
    """Return the US dollars spent by each key, by its hash."""
    rows = journal.read("SELECT topic, body FROM message WHERE topic >= 'spent/' AND topic < 'spent0'")
    return {topic.removeprefix(_KEY_TOPIC): float(json.loads(body)["dollars"]) for topic, body in rows}


def spent_by_key(query: Callable[[str, Sequence[Any]], list[Row]], key: str) -> float:
    """Return the US dollars spent by one key."""
    rows = query("SELECT body FROM message WHERE topic = ?", (_KEY_TOPIC + key,))
    return float(json.loads(rows[0][0])["dollars"]) if rows else 0.0


def charge_keys(
    journal: Database, charges: Mapping[str, float], now: float, batch: tuple[str, int] | None = None
) -> None:
    """Add charges to the spend of keys; several gateways may share a journal.

    `batch`: holder and number of these charges. Charges that are sent again, because their writing had no answer, are added
    once.
    """

    def work(connection: BackendConnection) -> None:
        for key, dollars in charges.items():
            rows = connection.execute("SELECT body FROM message WHERE topic = ?", (_KEY_TOPIC + key,))
            body: dict[str, Any] = json.loads(rows[0][0]) if rows else {"dollars": 0.0}
            batches = body.get("batches", {})
            if batch is not None:
                if batches.get(batch[0]) == batch[1]:
                    continue
                batches.pop(batch[0], None)
                body["batches"] = {**dict(list(batches.items())[-_MAX_BATCHES:]), batch[0]: batch[1]}
            body["dollars"] += dollars
            connection.execute(
                "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
                " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
                (_KEY_TOPIC + key, json.dumps(body), now),
            )

    def present(connection: BackendConnection) -> bool:
        key = next(iter(charges))
        return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (_KEY_TOPIC + key, now)))

    journal.write(work, present).result()
