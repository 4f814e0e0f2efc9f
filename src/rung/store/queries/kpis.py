"""The figures a team is judged by: what fails most, how often by the day, and how much of it mends itself."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rung.core.domain.events import Status
from rung.store.queries import reports
from rung.store.queries import reports_sql as sql
from rung.store.queries.listing_rows import Figures, TopMessage
from rung.store.queries.reports_sql import GroupBy, ReportFilter
from rung.store.read_models.batch import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database, Row
    from rung.store.queries.reports_rows import Rate


def top_error_messages(journal: Database, where: ReportFilter, *, now: float) -> list[TopMessage]:
    """The errors seen most, in the time asked for."""
    return [
        TopMessage(row.message, row.seen, row.share, row.kind, row.project, row.fingerprint)
        for row in reports.messages(journal, where, now=now)
    ]


def failure_rate_by_day(journal: Database, where: ReportFilter) -> dict[str, Rate]:
    """Attempts and failures of every day on which anything was tried, by its date (UTC), in their order."""
    return {rate.key: rate for rate in reports.failures(journal, where, GroupBy.DAY)}


def success(journal: Database, where: ReportFilter) -> Figures:
    """The four figures over all the time asked for."""
    return _figures("", _ends(journal, where))


def success_by_day(journal: Database, where: ReportFilter) -> list[Figures]:
    """The four figures of each day on which an incident with a failure ended, in their order."""
    days: dict[int, list[Row]] = defaultdict(list)
    for row in _ends(journal, where):
        days[int(row[0])].append(row)
    return [_figures(datetime.fromtimestamp(day * DAY, UTC).date().isoformat(), days[day]) for day in sorted(days)]


def _ends(journal: Database, where: ReportFilter) -> list[Row]:
    source = sql.choose(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where, also="kind <> ''")
    day = "day" if source is sql.BY_END else f"CAST(FLOOR(ended_at / {DAY}) AS BIGINT)"
    return journal.read(
        f"SELECT {day}, status, SUM(n), SUM(recovery), SUM(asked), SUM(escalated)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY 1, 2",
        values,
    )


def _figures(day: str, ends: Iterable[Row]) -> Figures:
    incidents = recovered = alone = asked = escalated = 0
    took = 0.0
    for _, status, n, seconds, people, handed in ends:
        incidents, asked, escalated = incidents + int(n), asked + int(people), escalated + int(handed)
        if status == Status.RECOVERED:
            recovered, alone, took = recovered + int(n), alone + int(n) - int(people), took + float(seconds)
    return Figures(day, incidents, recovered, alone, asked, escalated, took / recovered if recovered else None)
