"""Reports over the journal: pure questions, answered from the counts, each failure with its denominator beside it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from rung.store.read_models.batch import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.store.backends.port import Database, Row

PATTERNS: Final = 1_000  # as many as a report shows at most: where every prompt is another, there is no end of them
TELLING: Final = frozenset({GroupBy.KIND, GroupBy.TOOL})  # axes on which what went well has an empty key


def failures(journal: Database, where: ReportFilter, by: GroupBy = GroupBy.KIND) -> list[Rate]:
    """Attempts and failures by one thing. By kind or tool the attempts are all there were."""
    if by is GroupBy.PROMPT:
        return _by_prompt(journal, where)
    if by is GroupBy.PATTERN:
        return _by_pattern(journal, where)
    times = by in {GroupBy.DAY, GroupBy.HOUR}
    rows = _counted(journal, where, (by,))
    if by in TELLING:
        total = sum(n for _, n, _, _ in rows)
        rates = [Rate(str(key), total, bad, dollars) for key, _, bad, dollars in rows if bad]
    else:
        rates = [Rate(_named(by, key), n, bad, dollars) for key, n, bad, dollars in rows]
    return sorted(rates, key=lambda rate: rate.key if times else (-rate.failures, -rate.attempts, rate.key))


def trend(
    journal: Database, where: ReportFilter, by: GroupBy | None = None, *, hourly: bool = False
) -> dict[str, list[TrendPoint]]:
    """Attempts and failures over time, in the order of time; `by` tells several lines apart."""
    unit, period = (GroupBy.HOUR, HOUR) if hourly else (GroupBy.DAY, DAY)
    axes = (unit,) if by is None else (unit, by)
    lines: dict[str, list[TrendPoint]] = defaultdict(list)
    for time, *key, n, bad, _ in _counted(journal, where, axes):
        lines[str(key[0]) if key else ""].append(TrendPoint(float(int(time) * period), n, bad))
    return {key: sorted(points) for key, points in lines.items()}


def messages(journal: Database, where: ReportFilter, *, now: float) -> list[MessageCountRow]:
    """The failures seen most, by fingerprint."""
    source = sql.choose(where, sql.BY_MESSAGE, sql.MESSAGES, but=("kind",))
    clause, values = source.clause(where, but=("kind",))
    kind, kinds = ("", []) if where.kind is None else (" WHERE g.kind = ?", [where.kind])
    counted = f"SELECT project, fingerprint, SUM(n) AS n FROM {source.table}{clause} GROUP BY project, fingerprint"  # noqa: S608  # our own names
    if source is sql.BY_MESSAGE and where.since is None and where.until is None:  # a group knows that by itself
        counted = f"SELECT project, fingerprint, count AS n FROM failure_group{clause}"  # noqa: S608  # our own names
    rows = journal.read(
        f"""WITH seen AS ({counted})
            SELECT g.project, g.fingerprint, g.kind, g.message, seen.n, (SELECT SUM(n) FROM seen),
                   g.first_at, g.last_at, g.example, s.state, s.at, s.until
              FROM seen
              JOIN failure_group g ON g.project = seen.project AND g.fingerprint = seen.fingerprint
              LEFT JOIN group_state s ON s.project = g.project AND s.fingerprint = g.fingerprint{kind}
             ORDER BY seen.n DESC, g.last_at DESC, g.fingerprint LIMIT ?""",  # noqa: S608  # our own names
        [*values, *kinds, where.limit],
    )
    return [
        MessageCountRow(
            project, mark, named, text, int(n), int(n) / int(of), first, last, example,
            state_of(said, at, until, last, now),
        )
        for project, mark, named, text, n, of, first, last, example, said, at, until in rows
    ]  # fmt: skip


def recovery(journal: Database, where: ReportFilter) -> list[Recovery]:
    """How incidents ended, by the kind of their first failure."""
    found: dict[str, list[EndingCount]] = defaultdict(list)
    for end in _ends(journal, where):
        if end.kind:
            found[end.kind].append(end)
    rows = [Recovery(kind, *_ended(ends)) for kind, ends in found.items()]
    return sorted(rows, key=lambda row: (-row.incidents, row.kind))


def recovery_by_rung(journal: Database, where: ReportFilter) -> list[RungTime]:
    """How often each rung saved it, of how many tries; and of the recoveries it ended, the mean time since the failure."""
    source = sql.choose(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where, also="status = 'recovered'")
    times = {
        rung: (int(n), float(seconds) / int(n))
        for rung, n, seconds in journal.read(
            f"SELECT rung, SUM(n), SUM(recovery) FROM {source.table}{clause} GROUP BY rung",  # noqa: S608  # our own names
            values,
        )
    }
    rows = []
    for rescue in rescues(journal, where, (ReportPart.RUNG,)):
        n, mean = times.get(rescue.rung, (0, None))
        rows.append(RungTime(rescue.rung, rescue.tried, rescue.saved, mean, n))
    return rows


def rescues(
    journal: Database,
    where: ReportFilter,
    parts: Sequence[ReportPart] = (ReportPart.RUNG, ReportPart.PROMPT, ReportPart.MODEL),
) -> list[RungEffect]:
    """Which rung, prompt and model saved how many, at what cost; the most saved first."""
    source = sql.choose(where, sql.BY_RUNG, sql.TRIES)
    clause, values = source.clause(where)
    chosen = [part for part in ReportPart if part in parts]
    columns = ", ".join(sql.PARTS[part] for part in chosen)
    rows = journal.read(
        f"SELECT {columns}, SUM(tried), SUM(saved), SUM(seconds), SUM(dollars)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY {columns}",
        values,
    )
    made = []
    for *names, tried, saved, seconds, dollars in rows:
        told = dict(zip(chosen, names, strict=True))
        rung, prompt, model, kind = (told.get(part, "") for part in ReportPart)
        made.append(RungEffect(rung, prompt, model, kind, int(tried), int(saved), float(seconds), float(dollars)))
    return sorted(made, key=lambda row: (-row.saved, -row.tried, row[:4]))


def latency(journal: Database, where: ReportFilter) -> list[Latency]:
    """Percentiles of an attempt's time by model, the most used first."""
    source = sql.choose(where, sql.BY_LATENCY)
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
    """The seconds within which this share lies; the counts are of quarter octaves of milliseconds, in order."""
    rank, seen = ceil(share * sum(n for _, n in counts)), 0
    for bucket, n in counts:
        seen += n
        if seen >= rank:
            return float(2 ** (bucket / 4) / 1_000)
    return 0.0


def totals(journal: Database, where: ReportFilter) -> Totals:
    """Everything in one row."""
    ((n, bad, dollars),) = _counted(journal, where, ()) or [(0, 0, 0.0)]
    ends = _ends(journal, where)
    bad_ends = [end for end in ends if end.kind]
    troubled, recovered, partial, blocked, failed, mean, _, asks, escalations = _ended(bad_ends)
    alone = sum(int(end.n) - int(end.asked) for end in bad_ends if end.status == Status.RECOVERED)
    return Totals(
        attempts=n,
        failures=bad,
        dollars=dollars,
        incidents=sum(int(end.n) for end in ends),
        troubled=troubled,
        recovered=recovered,
        auto_recovered=alone,
        partial=partial,
        blocked=blocked,
        failed=failed,
        asks=asks,
        asked=sum(int(end.asked) for end in bad_ends),
        escalations=escalations,
        escalated=sum(int(end.escalated) for end in bad_ends),
        mean_seconds=mean,
    )


def _counted(journal: Database, where: ReportFilter, axes: Sequence[GroupBy]) -> list[Row]:
    """By each axis: attempts, failures (of the kind asked for), and dollars.

    An axis that is empty for what went well tells failures by itself: summing them apart would cost a third more.
    """
    source = sql.choose(where, sql.BY_HOUR, sql.ATTEMPTS)
    clause, values = source.clause(where, but=("kind",))
    table = source.table
    if source is sql.BY_HOUR and GroupBy.HOUR not in axes:
        table, times = sql.in_days(where)
        clause, values = source.clause(replace(where, since=None, until=None), but=("kind",))
        values = [*times, *values]
    bad, kinds = ("kind <> ''", []) if where.kind is None else ("kind = ?", [where.kind])
    telling = where.kind is None and bool(axes) and axes[-1] in TELLING
    apart = "0" if telling else f"SUM(CASE WHEN {bad} THEN n ELSE 0 END)"
    columns = [*(sql.AXES[axis] for axis in axes), "SUM(n)", apart, "SUM(dollars)"]
    groups = ", ".join(str(place) for place in range(1, len(axes) + 1))
    rows = journal.read(
        f"SELECT {', '.join(columns)} FROM {table}{clause}{f' GROUP BY {groups}' if groups else ''}",  # noqa: S608  # our own names
        [*([] if telling else kinds), *values],
    )
    return [
        (*keys, int(n), int(n if telling and keys[-1] else failed), float(dollars))
        for *keys, n, failed, dollars in rows
        if n is not None  # a sum of nothing
    ]


def _by_prompt(journal: Database, where: ReportFilter) -> list[Rate]:
    """Attempts given a recovery prompt, by its id; one without is none of them."""
    found = (row for row in rescues(journal, where, (ReportPart.PROMPT,)) if row.prompt)
    rates = [Rate(row.prompt, row.tried, row.tried - row.saved, row.dollars) for row in found]
    return sorted(rates, key=lambda rate: (-rate.failures, -rate.attempts, rate.key))


def _by_pattern(journal: Database, where: ReportFilter) -> list[Rate]:
    """Attempts by how the caller's own prompt begins, the most failures first."""
    source = sql.choose(where, sql.BY_PATTERN, sql.PATTERNS)
    clause, values = source.clause(where, but=("kind",))
    bad, kinds = ("failures", []) if where.kind is None else ("CASE WHEN kind = ? THEN 1 ELSE 0 END", [where.kind])
    rows = journal.read(
        f"""SELECT COALESCE((SELECT text FROM pattern WHERE id = counted.pattern), counted.pattern), n, bad, dollars
              FROM (SELECT pattern, SUM(n) AS n, SUM({bad}) AS bad, SUM(dollars) AS dollars
                      FROM {source.table}{clause} GROUP BY pattern) AS counted
             ORDER BY bad DESC, n DESC, 1 LIMIT {PATTERNS}""",  # noqa: S608  # our own names
        [*kinds, *values],
    )
    return [Rate(str(key), int(n), int(failed), float(dollars)) for key, n, failed, dollars in rows]


def _named(by: GroupBy, key: Any) -> str:
    if by is GroupBy.DAY:
        return datetime.fromtimestamp(int(key) * DAY, UTC).date().isoformat()
    return datetime.fromtimestamp(int(key) * HOUR, UTC).strftime("%Y-%m-%dT%H:00Z") if by is GroupBy.HOUR else str(key)


def _ends(journal: Database, where: ReportFilter) -> list[EndingCount]:
    source = sql.choose(where, sql.BY_END, sql.ENDS)
    clause, values = source.clause(where)
    rows = journal.read(
        "SELECT kind, status, SUM(n), SUM(recovery), SUM(dollars), SUM(asked), SUM(asks), SUM(escalated), SUM(escalations)"  # noqa: S608  # our own names
        f" FROM {source.table}{clause} GROUP BY kind, status",
        values,
    )
    return [EndingCount(*row) for row in rows]


class EndingCount(NamedTuple):
    """Incidents that began with one kind of failure and ended in one way."""

    kind: str
    status: str
    n: int
    recovery: float
    dollars: float
    asked: int
    asks: int
    escalated: int
    escalations: int


def _ended(ends: Iterable[EndingCount]) -> tuple[int, int, int, int, int, float | None, float, int, int]:
    """These ends added up: how many, four ways they ended, the mean time, dollars, asks, escalations."""
    n: dict[str, int] = defaultdict(int)
    took, dollars, asks, escalations = 0.0, 0.0, 0, 0
    for end in ends:
        n[end.status] += int(end.n)
        took += float(end.recovery) if end.status == Status.RECOVERED else 0.0
        dollars, asks, escalations = dollars + end.dollars, asks + int(end.asks), escalations + int(end.escalations)
    recovered, partial, blocked, failed = (
        n[status] for status in (Status.RECOVERED, Status.PARTIAL, Status.BLOCKED, Status.FAILED)
    )
    mean = took / recovered if recovered else None
    return sum(n.values()), recovered, partial, blocked, failed, mean, dollars, asks, escalations
