"""Sessions stuck in recovery: the failure they repeat, and its cost."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rung.store.queries import reports_sql as sql
from rung.store.queries.reports_rows import StuckSession
from rung.store.queries.reports_sql import ReportFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database, Row

MAX_CANDIDATES: Final = 100  # sessions with the most failures, which are examined
MIN_REPEATS: Final = 3  # of the same failure in a session


def stuck_sessions(journal: Database, where: ReportFilter) -> list[StuckSession]:
    """Return the sessions that repeat the same failure, the worst first."""
    sessions = sql.ReportSource("session", 0, "touched_at", {"project": "project", "session": "id"})
    clause, values = sessions.clause(
        ReportFilter(since=where.since, project=where.project, session=where.session), condition="failures >= ?"
    )
    candidates = journal.read(
        f"SELECT id, project FROM session{clause} ORDER BY failures DESC, id LIMIT ?",  # noqa: S608  # our own names
        [MIN_REPEATS, *values, MAX_CANDIDATES],
    )
    if not candidates:
        return []
    attempts = sql.ReportSource("attempt", 0, "at", {"model": "model"})
    condition = f"session IN ({', '.join('?' * len(candidates))})"
    clause, values = attempts.clause(where, condition=condition)
    rows = journal.read(
        f"""SELECT session, fingerprint, MIN(kind), MIN(message), count(*), SUM(seconds), SUM(dollars), MIN(at), MAX(at)
              FROM attempt{clause} GROUP BY session, fingerprint""",  # noqa: S608  # our own names
        [*(name for name, _ in candidates), *values],
    )
    stuck = _worst(rows, dict(candidates), where.kind)
    return sorted(stuck, key=lambda row: (-row.score * (row.repeats - 1), row.session))[: where.limit]


def _worst(rows: Iterable[Row], projects: dict[str, str], kind: str | None) -> Iterable[StuckSession]:
    """Yield each session's most frequent failure, if frequent enough; an empty fingerprint is a success."""
    by_session: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_session[row[0]].append(row)
    for session, session_rows in by_session.items():
        failed = [row for row in session_rows if row[1] and (kind is None or row[2] == kind)]
        worst = max(failed, key=lambda row: (int(row[4]), row[1]), default=None)
        if worst is None or int(worst[4]) < MIN_REPEATS:
            continue
        attempts, repeats = sum(int(row[4]) for row in session_rows), int(worst[4])
        _, fingerprint, worst_kind, message, _, seconds, dollars, first, last = worst
        yield StuckSession(
            session, projects[session], fingerprint, worst_kind, message, repeats,
            sum(int(row[4]) for row in session_rows if row[1]), attempts, float(seconds), float(dollars), first, last,
            round(100 * (repeats - 1) / attempts, 1),
        )  # fmt: skip
