"""Sessions stuck in recovery: the failure they repeat and its cost, and which of them used an escalation."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.events import Status
from rung.core.domain.ladder import WAITING_ACTIONS
from rung.core.recovery.success_criteria import ACCOUNT_KINDS
from rung.store.queries import reports_sql as sql
from rung.store.queries.incidents import placeholders
from rung.store.queries.manual_restarts import manual_restarts
from rung.store.queries.reports_rows import StuckSession
from rung.store.queries.reports_sql import ReportFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database, Row

MAX_CANDIDATES: Final = 100  # sessions with the most failures, which are examined
MIN_REPEATS: Final = 3  # of the same failure in a session
_UNSUCCESSFUL: Final = (Status.PARTIAL.value, Status.BLOCKED.value, Status.FAILED.value)
_PROBE_RUNGS: Final = tuple(sorted(action.value for action in WAITING_ACTIONS))
# Attempts that only look whether a service that is waited for is back repeat nothing, and neither do the retries before
# them, unless the wait ended without success: no other model ends an outage.
_NO_OUTAGE: Final = f"""rung NOT IN ({placeholders(_PROBE_RUNGS)}) AND NOT EXISTS (
    SELECT 1 FROM level JOIN incident AS waiting ON waiting.id = level.incident
     WHERE level.incident = attempt.incident AND level.rung IN ({placeholders(_PROBE_RUNGS)})
       AND waiting.status NOT IN ({placeholders(_UNSUCCESSFUL)}))"""  # noqa: S608  # our own names
_NO_OUTAGE_VALUES: Final = (*_PROBE_RUNGS, *_PROBE_RUNGS, *_UNSUCCESSFUL)
_FIELDS: Final = {"project": "project", "model": "model", "kind": "kind", "session": "session"}


class StuckCount(NamedTuple):
    """Sessions that were stuck, each with the last time, and those of them that used an escalation."""

    stuck: dict[str, float]
    escalated: set[str]


def count_stuck(journal: Database, where: ReportFilter) -> StuckCount:
    """Count the sessions that were stuck in a time range.

    A session is stuck if the same failure ended three attempts of one recovery, those that wait out an outage apart, or
    if a recovery of it ended without success. Failures that no other model ends do not count.
    """
    stuck = _repeating(journal, where)
    for session, at in _unsuccessful(journal, where).items():
        stuck[session] = max(at, stuck.get(session, at))
    changes = sql.ReportSource("model_change", 0, "at", {"project": "project", "session": "session"})
    clause, values = changes.clause(where)
    automatic = {name for (name,) in journal.read(f"SELECT DISTINCT session FROM model_change{clause}", values)}  # noqa: S608  # our own names
    manual = {one.session for one in manual_restarts(journal, where) if one.is_escalation}
    return StuckCount(stuck, stuck.keys() & (automatic | manual))


def _repeating(journal: Database, where: ReportFilter) -> dict[str, float]:
    """Return the sessions with a recovery of which the same failure ended three attempts, and when the last did."""
    attempts = sql.ReportSource("attempt", 0, "at", _FIELDS)
    account = sorted(ACCOUNT_KINDS)
    condition = f"ok = 0 AND session <> '' AND {_NO_OUTAGE} AND kind NOT IN ({placeholders(account)})"
    clause, values = attempts.clause(where, condition=condition)
    rows = journal.read(
        f"SELECT session, MAX(at) FROM attempt{clause} GROUP BY session, incident, fingerprint HAVING count(*) >= ?",  # noqa: S608  # our own names
        [*_NO_OUTAGE_VALUES, *account, *values, MIN_REPEATS],
    )
    return dict(sorted(rows, key=lambda row: float(row[1])))


def _unsuccessful(journal: Database, where: ReportFilter) -> dict[str, float]:
    """Return the sessions with a recovery that ended without success, and when the last did."""
    incidents = sql.ReportSource("incident", 0, "ended_at", _FIELDS | {"model": "first_model"})
    account = sorted(ACCOUNT_KINDS)
    condition = (
        f"session <> '' AND kind <> '' AND status IN ({placeholders(_UNSUCCESSFUL)})"
        f" AND kind NOT IN ({placeholders(account)})"
    )
    # An ended incident is not touched again: this is the same condition as on `ended_at`, and has an index.
    recent = [] if where.since is None else [where.since]
    clause, values = incidents.clause(where, condition=condition + " AND touched_at >= ?" * len(recent))
    rows = journal.read(
        f"SELECT session, MAX(ended_at) FROM incident{clause} GROUP BY session",  # noqa: S608  # our own names
        [*_UNSUCCESSFUL, *account, *recent, *values],
    )
    return dict(rows)


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
    condition = f"session IN ({', '.join('?' * len(candidates))}) AND {_NO_OUTAGE}"
    clause, values = attempts.clause(where, condition=condition)
    rows = journal.read(
        f"""SELECT session, fingerprint, MIN(kind), MIN(message), count(*), SUM(seconds), SUM(dollars), MIN(at), MAX(at)
              FROM attempt{clause} GROUP BY session, fingerprint""",  # noqa: S608  # our own names
        [*(name for name, _ in candidates), *_NO_OUTAGE_VALUES, *values],
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
