"""What was spent, by the journal's own tables: the one place from which the service shows it and the gateway bounds it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.policy.spend_limits import SpendLimits, month_start
from rung.store.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import BackendConnection, Database, Readable

NAME: Final = "budgets"  # of the setting that people change
_KEY: Final = "spent/"
_MOST: Final = 500  # sessions asked for at once


def allowance(journal: Database, file: SpendLimits | None = None) -> SpendLimits:
    """The limits people have set, over those of a file."""
    return (file or SpendLimits()).with_overrides(setting(journal, NAME).body or {})


def spent_in_month(journal: Database, now: float) -> dict[str, float]:
    """US dollars of this month (UTC), by project."""
    rows = journal.read(
        "SELECT project, SUM(dollars) FROM by_hour WHERE hour >= ? GROUP BY project",
        [int(month_start(now) // 3_600)],
    )
    return {project: float(dollars) for project, dollars in rows}


def spent_by_sessions(journal: Database, sessions: Sequence[str]) -> dict[str, float]:
    """US dollars of these sessions; of one that is not known, none."""
    wanted = list(sessions)[:_MOST]
    if not wanted:
        return {}
    marks = ", ".join("?" * len(wanted))
    rows = journal.read(f"SELECT id, dollars FROM session WHERE id IN ({marks})", wanted)  # noqa: S608  # marks
    return {**dict.fromkeys(wanted, 0.0), **{session: float(dollars) for session, dollars in rows}}


def top_sessions(journal: Readable, least: float, limit: int) -> dict[str, float]:
    """US dollars of the sessions that spent at least so much, the most expensive first."""
    rows = journal.read(
        "SELECT id, dollars FROM session WHERE dollars >= ? ORDER BY dollars DESC, id LIMIT ?", (least, limit)
    )
    return dict(rows)


def spent_by_keys(journal: Database) -> dict[str, float]:
    """US dollars of every key that has spent any, by its hash."""
    rows = journal.read("SELECT topic, body FROM message WHERE topic >= 'spent/' AND topic < 'spent0'")
    return {topic.removeprefix(_KEY): float(json.loads(body)["dollars"]) for topic, body in rows}


def charge_keys(journal: Database, charges: Mapping[str, float], now: float) -> None:
    """Add to what keys have spent: several gateways may share a journal."""

    def work(connection: BackendConnection) -> None:
        for key, dollars in charges.items():
            rows = connection.execute("SELECT body FROM message WHERE topic = ?", (_KEY + key,))
            before = float(json.loads(rows[0][0])["dollars"]) if rows else 0.0
            connection.execute(
                "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
                " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
                (_KEY + key, json.dumps({"dollars": before + dollars}), now),
            )

    def present(connection: BackendConnection) -> bool:
        key = next(iter(charges))
        return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (_KEY + key, now)))

    journal.write(work, present).result()


def session_left(journal: Database, session: str, now: float) -> float | None:
    """US dollars that a session may still spend; None: nothing bounds it."""
    limits = allowance(journal)
    rows = journal.read("SELECT project, dollars FROM session WHERE id = ?", (session,))
    project, dollars = rows[0] if rows else ("", 0.0)
    by_project = spent_in_month(journal, now)
    spent = {"session": dollars, "project": by_project.get(project, 0.0), "month": sum(by_project.values())}
    left = [purse.limit - spent[purse.scope] for purse in limits.limits_for(session, project, "")]
    return max(0.0, min(left)) if left else None
