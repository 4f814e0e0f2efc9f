"""Sessions that are stuck in recovery: the same failure again and again, and what was spent on it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rung.store.queries import reports_sql as sql
from rung.store.queries.reports_rows import StuckSession
from rung.store.queries.reports_sql import ReportFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database, Row

SUSPECTS: Final = 100  # sessions with the most failures, among which the spirals are looked for
AGAIN: Final = 3  # times the same failure must have come in a session


def spirals(journal: Database, where: ReportFilter) -> list[StuckSession]:
    """Sessions in which the same failure came again and again, the worst first."""
    sessions = sql.ReportSource("session", 0, "touched_at", {"project": "project", "session": "id"})
    clause, values = sessions.clause(
        ReportFilter(since=where.since, project=where.project, session=where.session), also="failures >= ?"
    )
    suspects = journal.read(
        f"SELECT id, project FROM session{clause} ORDER BY failures DESC, id LIMIT ?",  # noqa: S608  # our own names
        [AGAIN, *values, SUSPECTS],
    )
    if not suspects:
        return []
    attempts = sql.ReportSource("attempt", 0, "at", {"model": "model"})
    among = f"session IN ({', '.join('?' * len(suspects))})"
    clause, values = attempts.clause(where, also=among)
    rows = journal.read(
        f"""SELECT session, fingerprint, MIN(kind), MIN(message), count(*), SUM(seconds), SUM(dollars), MIN(at), MAX(at)
              FROM attempt{clause} GROUP BY session, fingerprint""",  # noqa: S608  # our own names
        [*(name for name, _ in suspects), *values],
    )
    found = _worst(rows, dict(suspects), where.kind)
    return sorted(found, key=lambda row: (-row.score * (row.repeats - 1), row.session))[: where.limit]


def _worst(rows: Iterable[Row], projects: dict[str, str], kind: str | None) -> Iterable[StuckSession]:
    """Of each session the failure that came most often, if it came often enough; an empty mark is a good attempt."""
    by_session: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_session[row[0]].append(row)
    for session, found in by_session.items():
        bad = [row for row in found if row[1] and (kind is None or row[2] == kind)]
        worst = max(bad, key=lambda row: (int(row[4]), row[1]), default=None)
        if worst is None or int(worst[4]) < AGAIN:
            continue
        attempts, again = sum(int(row[4]) for row in found), int(worst[4])
        _, mark, named, text, _, seconds, dollars, first, last = worst
        yield StuckSession(
            session, projects[session], mark, named, text, again,
            sum(int(row[4]) for row in found if row[1]), attempts, float(seconds), float(dollars), first, last,
            round(100 * (again - 1) / attempts, 1),
        )  # fmt: skip
