"""Reports over the journal, answered from the counts; every number of failures comes with its attempts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.error_types import ErrorType, error_type
from rung.core.domain.events import Status
from rung.store.queries import reports_sql as sql
from rung.store.queries.groups import state_of
from rung.store.queries.reports_rows import (
    Latency,
    MessageCountRow,
    Rate,
    Recovery,
    RungEffect,
    RungTime,
    Totals,
    TrendPoint,
)
from rung.store.queries.reports_sql import GroupBy, ReportFilter, ReportPart
from rung.store.read_models.batch import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.store.backends.port import Database, Row

MAX_PATTERNS: Final = 1_000  # in one report: there may be as many patterns as prompts
FAILURE_AXES: Final = frozenset({GroupBy.KIND, GroupBy.TOOL})  # axes on which successes have an empty key


def failures(journal: Database, where: ReportFilter, by: GroupBy = GroupBy.KIND) -> list[Rate]:
    """Return attempts and failures by one axis. By kind or tool, the attempts of each row are all attempts."""
    if by is GroupBy.PROMPT:
        return _by_prompt(journal, where)
    if by is GroupBy.PATTERN:
        return _by_pattern(journal, where)
    by_time = by in {GroupBy.DAY, GroupBy.HOUR}
    rows = _attempt_counts(journal, where, (by,))
    if by in FAILURE_AXES:
        total = sum(n for _, n, _, _ in rows)
        rates = [Rate(str(key), total, failed, dollars) for key, _, failed, dollars in rows if failed]
    else:
        rates = [Rate(_format_key(by, key), n, failed, dollars) for key, n, failed, dollars in rows]
    return sorted(rates, key=lambda rate: rate.key if by_time else (-rate.failures, -rate.attempts, rate.key))


def trend(
    journal: Database, where: ReportFilter, by: GroupBy | None = None, *, hourly: bool = False
) -> dict[str, list[TrendPoint]]:
    """Return attempts and failures over time, in order; `by` splits them into several lines."""
    unit, period = (GroupBy.HOUR, HOUR_SECONDS) if hourly else (GroupBy.DAY, DAY_SECONDS)
    axes = (unit,) if by is None else (unit, by)
    lines: dict[str, list[TrendPoint]] = defaultdict(list)
    for time, *key, n, failed, _ in _attempt_counts(journal, where, axes):
        lines[str(key[0]) if key else ""].append(TrendPoint(float(int(time) * period), n, failed))
    return {key: sorted(points) for key, points in lines.items()}


def failures_by_error_type(journal: Database, where: ReportFilter) -> dict[str, int]:
    """Return the number of failures of each error type, in the order of the types."""
    source = sql.choose_source(where, sql.BY_ERROR_TYPE, sql.ERROR_TYPES)
    clause, values = source.clause(where)
    counts = {each.value: 0 for each in ErrorType}
    for kind, name, n in journal.read(
        f"SELECT kind, error_type, SUM(n) FROM {source.table}{clause} GROUP BY kind, error_type",  # noqa: S608  # our own names
        values,
    ):
        counts[name or error_type(kind).value] += int(n)
    return counts


def messages(journal: Database, where: ReportFilter, *, now: float) -> list[MessageCountRow]:
    """Return the most frequent failures, by fingerprint: one row for all projects in which it occurs."""
    source = sql.choose_source(where, sql.BY_MESSAGE, sql.MESSAGES, ignore=("kind",))
    clause, values = source.clause(where, ignore=("kind",))
    kind_clause, kinds = ("", []) if where.kind is None else (" WHERE g.kind = ?", [where.kind])
    counted = f"SELECT project, fingerprint, SUM(n) AS n FROM {source.table}{clause} GROUP BY project, fingerprint"  # noqa: S608  # our own names
    if source is sql.BY_MESSAGE and where.since is None and where.until is None:  # the group has its own count
        counted = f"SELECT project, fingerprint, count AS n FROM failure_group{clause}"  # noqa: S608  # our own names
    rows = journal.read(
        f"""WITH seen AS ({counted}),
                 top AS (SELECT g.fingerprint, SUM(seen.n) AS n, MAX(g.last_at) AS last_at
                           FROM seen
                           JOIN failure_group g ON g.project = seen.project AND g.fingerprint = seen.fingerprint{kind_clause}
                          GROUP BY g.fingerprint ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?)
            SELECT g.project, g.fingerprint, g.kind, g.message, seen.n, top.n, (SELECT SUM(n) FROM seen),
                   g.first_at, g.last_at, g.example, s.state, s.at, s.until
              FROM top
              JOIN seen ON seen.fingerprint = top.fingerprint
              JOIN failure_group g ON g.project = seen.project AND g.fingerprint = seen.fingerprint
              LEFT JOIN group_state s ON s.project = g.project AND s.fingerprint = g.fingerprint
             ORDER BY top.n DESC, top.last_at DESC, g.fingerprint, seen.n DESC, g.project""",  # noqa: S608  # our own names
        [*values, *kinds, where.limit],
    )
    return [_message(list(same), now) for _, same in groupby(rows, key=itemgetter(1))]


def _message(rows: list[Row], now: float) -> MessageCountRow:
    """Merge the rows of one failure in several projects; the first is the project with most occurrences."""
    project, fingerprint, kind, message, _, n, total, _, last, example, stored, at, until = rows[0]
    return MessageCountRow(
        project, fingerprint, kind, message, int(n), int(n) / int(total), min(row[7] for row in rows),
        max(row[8] for row in rows), example, state_of(stored, at, until, last, now), tuple(row[0] for row in rows),
    )  # fmt: skip


def recovery(journal: Database, where: ReportFilter) -> list[Recovery]:
    """Return how incidents ended, by the kind of their first failure."""
    by_kind: dict[str, list[EndingCount]] = defaultdict(list)
    for end in _ending_counts(journal, where):
        if end.kind:
            by_kind[end.kind].append(end)
    rows = [Recovery(kind, *_sum_endings(ends)) for kind, ends in by_kind.items()]
    return sorted(rows, key=lambda row: (-row.incidents, row.kind))


def recovery_by_rung(journal: Database, where: ReportFilter) -> list[RungTime]:
    """Return tries and successes of each rung, and the mean time from the failure to the recoveries it achieved."""
    source = sql.choose_source(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where, condition="status = 'recovered'")
    times = {
        rung: (int(n), float(seconds) / int(n))
        for rung, n, seconds in journal.read(
            f"SELECT rung, SUM(n), SUM(recovery) FROM {source.table}{clause} GROUP BY rung",  # noqa: S608  # our own names
            values,
        )
    }
    rows = []
    for effect in rung_effects(journal, where, (ReportPart.RUNG,)):
        n, mean = times.get(effect.rung, (0, None))
        rows.append(RungTime(effect.rung, effect.tried, effect.saved, mean, n))
    return rows


def rung_effects(
    journal: Database,
    where: ReportFilter,
    parts: Sequence[ReportPart] = (ReportPart.RUNG, ReportPart.PROMPT, ReportPart.MODEL),
) -> list[RungEffect]:
    """Return successes and cost by rung, prompt and model, the most successes first."""
    source = sql.choose_source(where, sql.BY_RUNG, sql.TRIES)
    clause, values = source.clause(where)
    chosen = [part for part in ReportPart if part in parts]
    columns = ", ".join(sql.PARTS[part] for part in chosen)
    rows = journal.read(
        f"SELECT {columns}, SUM(tried), SUM(saved), SUM(seconds), SUM(dollars)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY {columns}",
        values,
    )
    effects = []
    for *names, tried, saved, seconds, dollars in rows:
        values_by_part = dict(zip(chosen, names, strict=True))
        rung, prompt, model, kind = (values_by_part.get(part, "") for part in ReportPart)
        effects.append(RungEffect(rung, prompt, model, kind, int(tried), int(saved), float(seconds), float(dollars)))
    return sorted(effects, key=lambda row: (-row.saved, -row.tried, row[:4]))


def latency(journal: Database, where: ReportFilter) -> list[Latency]:
    """Return the latency percentiles of attempts by model, the most used first."""
    source = sql.choose_source(where, sql.BY_LATENCY)
    clause, values = source.clause(where)
    buckets: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for model, bucket, n in journal.read(
        f"SELECT model, bucket, SUM(n) FROM {source.table}{clause} GROUP BY model, bucket ORDER BY model, bucket",  # noqa: S608  # our own names
        values,
    ):
        buckets[model].append((int(bucket), int(n)))
    rows = [
        Latency(model, sum(n for _, n in counts), *(percentile(counts, share) for share in (0.5, 0.95, 0.99)))
        for model, counts in buckets.items()
    ]
    return sorted(rows, key=lambda row: (-row.attempts, row.model))


def percentile(counts: Sequence[tuple[int, int]], share: float) -> float:
    """Return a percentile in seconds; the counts are by quarter octaves of milliseconds, in order."""
    rank, seen = ceil(share * sum(n for _, n in counts)), 0
    for bucket, n in counts:
        seen += n
        if seen >= rank:
            return float(2 ** (bucket / 4) / 1_000)
    return 0.0


def totals(journal: Database, where: ReportFilter) -> Totals:
    """Return all totals in one row."""
    ((n, n_failed, dollars),) = _attempt_counts(journal, where, ()) or [(0, 0, 0.0)]
    ends = _ending_counts(journal, where)
    failed_ends = [end for end in ends if end.kind]
    troubled, recovered, partial, blocked, failed, mean, _, asks, escalations = _sum_endings(failed_ends)
    unassisted = sum(int(end.n) - int(end.asked) for end in failed_ends if end.status == Status.RECOVERED)
    return Totals(
        attempts=n,
        failures=n_failed,
        dollars=dollars,
        incidents=sum(int(end.n) for end in ends),
        troubled=troubled,
        recovered=recovered,
        auto_recovered=unassisted,
        partial=partial,
        blocked=blocked,
        failed=failed,
        asks=asks,
        asked=sum(int(end.asked) for end in failed_ends),
        escalations=escalations,
        escalated=sum(int(end.escalated) for end in failed_ends),
        mean_seconds=mean,
    )


def _attempt_counts(journal: Database, where: ReportFilter, axes: Sequence[GroupBy]) -> list[Row]:
    """Return rows of axis values, attempts, failures (of the filtered kind) and dollars.

    On a failure axis the key itself tells failures from successes; summing them separately costs a third more.
    """
    source = sql.choose_source(where, sql.BY_HOUR, sql.ATTEMPTS)
    clause, values = source.clause(where, ignore=("kind",))
    table = source.table
    if source is sql.BY_HOUR and GroupBy.HOUR not in axes:
        table, times = sql.days_and_hours(where)
        clause, values = source.clause(replace(where, since=None, until=None), ignore=("kind",))
        values = [*times, *values]
    is_failure, kinds = ("kind <> ''", []) if where.kind is None else ("kind = ?", [where.kind])
    key_tells = where.kind is None and bool(axes) and axes[-1] in FAILURE_AXES
    failed_sum = "0" if key_tells else f"SUM(CASE WHEN {is_failure} THEN n ELSE 0 END)"
    columns = [*(sql.AXES[axis] for axis in axes), "SUM(n)", failed_sum, "SUM(dollars)"]
    groups = ", ".join(str(place) for place in range(1, len(axes) + 1))
    rows = journal.read(
        f"SELECT {', '.join(columns)} FROM {table}{clause}{f' GROUP BY {groups}' if groups else ''}",  # noqa: S608  # our own names
        [*([] if key_tells else kinds), *values],
    )
    return [
        (*keys, int(n), int(n if key_tells and keys[-1] else failed), float(dollars))
        for *keys, n, failed, dollars in rows
        if n is not None  # the sum of no rows
    ]


def _by_prompt(journal: Database, where: ReportFilter) -> list[Rate]:
    """Return the attempts with a recovery prompt, by the prompt's id."""
    effects = (row for row in rung_effects(journal, where, (ReportPart.PROMPT,)) if row.prompt)
    rates = [Rate(row.prompt, row.tried, row.tried - row.saved, row.dollars) for row in effects]
    return sorted(rates, key=lambda rate: (-rate.failures, -rate.attempts, rate.key))


def _by_pattern(journal: Database, where: ReportFilter) -> list[Rate]:
    """Return attempts by the pattern of the caller's prompt, the most failures first."""
    source = sql.choose_source(where, sql.BY_PATTERN, sql.PATTERNS)
    clause, values = source.clause(where, ignore=("kind",))
    bad, kinds = ("failures", []) if where.kind is None else ("CASE WHEN kind = ? THEN 1 ELSE 0 END", [where.kind])
    rows = journal.read(
        f"""SELECT COALESCE((SELECT text FROM pattern WHERE id = counted.pattern), counted.pattern), n, bad, dollars
              FROM (SELECT pattern, SUM(n) AS n, SUM({bad}) AS bad, SUM(dollars) AS dollars
                      FROM {source.table}{clause} GROUP BY pattern) AS counted
             ORDER BY bad DESC, n DESC, 1 LIMIT {MAX_PATTERNS}""",  # noqa: S608  # our own names
        [*kinds, *values],
    )
    return [Rate(str(key), int(n), int(failed), float(dollars)) for key, n, failed, dollars in rows]


def _format_key(by: GroupBy, key: Any) -> str:
    if by is GroupBy.DAY:
        return datetime.fromtimestamp(int(key) * DAY_SECONDS, UTC).date().isoformat()
    return (
        datetime.fromtimestamp(int(key) * HOUR_SECONDS, UTC).strftime("%Y-%m-%dT%H:00Z")
        if by is GroupBy.HOUR
        else str(key)
    )


def _ending_counts(journal: Database, where: ReportFilter) -> list[EndingCount]:
    source = sql.choose_source(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where)
    rows = journal.read(
        "SELECT kind, status, SUM(n), SUM(recovery), SUM(dollars), SUM(asked), SUM(asks), SUM(escalated), SUM(escalations)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY kind, status",
        values,
    )
    return [EndingCount(*row) for row in rows]


class EndingCount(NamedTuple):
    """Counts of the incidents with one kind of first failure and one final status."""

    kind: str
    status: str
    n: int
    recovery: float
    dollars: float
    asked: int
    asks: int
    escalated: int
    escalations: int


def _sum_endings(ends: Iterable[EndingCount]) -> tuple[int, int, int, int, int, float | None, float, int, int]:
    """Sum up endings: number, number by four statuses, mean recovery time, dollars, asks, escalations."""
    n: dict[str, int] = defaultdict(int)
    seconds, dollars, asks, escalations = 0.0, 0.0, 0, 0
    for end in ends:
        n[end.status] += int(end.n)
        seconds += float(end.recovery) if end.status == Status.RECOVERED else 0.0
        dollars, asks, escalations = dollars + end.dollars, asks + int(end.asks), escalations + int(end.escalations)
    recovered, partial, blocked, failed = (
        n[status] for status in (Status.RECOVERED, Status.PARTIAL, Status.BLOCKED, Status.FAILED)
    )
    mean = seconds / recovered if recovered else None
    return sum(n.values()), recovered, partial, blocked, failed, mean, dollars, asks, escalations
