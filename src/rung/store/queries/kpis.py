"""Key figures of incidents: most frequent failures, daily failure rate, recoveries of transient errors."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rung.core.domain.events import Status
from rung.core.recovery.success_criteria import TRANSIENT_ERRORS
from rung.store.queries import reports
from rung.store.queries import reports_sql as sql
from rung.store.queries.listing_rows import Figures, TopMessage
from rung.store.queries.reports_sql import GroupBy, ReportFilter
from rung.store.read_models.batch import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database, Row
    from rung.store.queries.reports_rows import Rate


def top_error_messages(journal: Database, where: ReportFilter, *, now: float) -> list[TopMessage]:
    """Return the most frequent errors of the time range."""
    return [
        TopMessage(row.message, row.seen, row.share, row.kind, row.project, row.fingerprint)
        for row in reports.messages(journal, where, now=now)
    ]


def failure_rate_by_day(journal: Database, where: ReportFilter) -> dict[str, Rate]:
    """Return attempts and failures of each day with any attempt, by date (UTC), in order."""
    return {rate.key: rate for rate in reports.failures(journal, where, GroupBy.DAY)}


def success(journal: Database, where: ReportFilter) -> Figures:
    """Return the key figures of the whole time range."""
    return _figures("", _ends(journal, where))


def success_by_day(journal: Database, where: ReportFilter) -> list[Figures]:
    """Return the key figures of each day on which an incident with a failure ended, in order."""
    days: dict[int, list[Row]] = defaultdict(list)
    for row in _ends(journal, where):
        days[int(row[0])].append(row)
    return [
        _figures(datetime.fromtimestamp(day * DAY_SECONDS, UTC).date().isoformat(), days[day]) for day in sorted(days)
    ]


def _ends(journal: Database, where: ReportFilter) -> list[Row]:
    source = sql.choose_source(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where, condition="kind <> ''")
    day = "day" if source is sql.BY_END else f"CAST(FLOOR(ended_at / {DAY_SECONDS}) AS BIGINT)"
    return journal.read(
        f"SELECT {day}, status, kind, SUM(n), SUM(recovery), SUM(assisted), SUM(asked), SUM(escalated)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY 1, 2, 3",
        values,
    )


def _figures(day: str, ends: Iterable[Row]) -> Figures:
    incidents = recovered = asked = escalated = transient = transient_recovered = unassisted = 0
    seconds = 0.0
    for _, status, kind, n, took, n_assisted, n_asked, n_escalated in ends:
        is_recovered, is_transient = status == Status.RECOVERED, kind in TRANSIENT_ERRORS
        incidents, asked, escalated = incidents + int(n), asked + int(n_asked), escalated + int(n_escalated)
        recovered += int(n) * is_recovered
        transient += int(n) * is_transient
        if is_recovered and is_transient:
            transient_recovered += int(n)
            unassisted += int(n) - int(n_assisted)
            seconds += float(took)
    return Figures(day, incidents, recovered, transient, transient_recovered, unassisted, asked, escalated, seconds)
