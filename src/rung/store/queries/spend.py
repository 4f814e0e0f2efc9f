"""Spend and its limits, from the journal: used by the service to show them and by the gateway to enforce them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.policy.spend_limits import SpendLimits, month_start
from rung.store.queries.incidents import placeholders
from rung.store.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import BackendConnection, Database, Readable

SETTING_NAME: Final = "budgets"  # of the setting that operators change
_KEY_TOPIC: Final = "spent/"
_MAX_SESSIONS: Final = 500  # in one query


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


def charge_keys(journal: Database, charges: Mapping[str, float], now: float) -> None:
    """Add charges to the spend of keys; several gateways may share a journal."""

    def work(connection: BackendConnection) -> None:
        for key, dollars in charges.items():
            rows = connection.execute("SELECT body FROM message WHERE topic = ?", (_KEY_TOPIC + key,))
            before = float(json.loads(rows[0][0])["dollars"]) if rows else 0.0
            connection.execute(
                "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
                " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
                (_KEY_TOPIC + key, json.dumps({"dollars": before + dollars}), now),
            )

    def present(connection: BackendConnection) -> bool:
        key = next(iter(charges))
        return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (_KEY_TOPIC + key, now)))

    journal.write(work, present).result()


def session_left(journal: Database, session: str, now: float) -> float | None:
    """Return the US dollars that a session may still spend; None without a limit."""
    limits = spend_limits(journal)
    rows = journal.read("SELECT project, dollars FROM session WHERE id = ?", (session,))
    project, dollars = rows[0] if rows else ("", 0.0)
    by_project = spent_in_month(journal, now)
    spent = {"session": dollars, "project": by_project.get(project, 0.0), "month": sum(by_project.values())}
    remaining = [limit.limit - spent[limit.scope] for limit in limits.limits_for(session, project, "")]
    return max(0.0, min(remaining)) if remaining else None
