"""Filters and groupings of reports and their SQL: fixed column names, user values as bound parameters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.store.read_models.batch import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilter:
    """Filter of a report; None does not filter. An empty text is a value: the unnamed project.

    `since` is inclusive, `until` exclusive. Counts are stored by hour or day (UTC): a partly covered hour or day
    counts as a whole, unless a filter by model or session makes the report read the attempts themselves.
    """

    since: float | None = None
    until: float | None = None
    project: str | None = None
    model: str | None = None
    kind: str | None = None
    session: str | None = None
    limit: int = 20

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigError("limit", self.limit, "1 or more")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ConfigError("until", self.until, "a time after `since`")


class GroupBy(StrEnum):
    """Axis by which failures are counted."""

    KIND = "kind"
    MODEL = "model"
    PROJECT = "project"
    DAY = "day"
    HOUR = "hour"
    TOOL = "tool"
    PROMPT = "prompt"  # id of the recovery prompt
    PATTERN = "pattern"  # masked beginning of the caller's prompt


class ReportPart(StrEnum):
    """Axis by which rung effects are grouped."""

    RUNG = "rung"
    PROMPT = "prompt"
    MODEL = "model"
    KIND = "kind"


# SQL expression of each axis. `hour / 24` is a day: both stores divide integers to integers.
AXES: Final[Mapping[GroupBy, str]] = {
    GroupBy.KIND: "kind",
    GroupBy.MODEL: "model",
    GroupBy.PROJECT: "project",
    GroupBy.DAY: "hour / 24",
    GroupBy.HOUR: "hour",
    GroupBy.TOOL: "CASE WHEN kind = '' THEN '' WHEN tool = '' THEN 'no tool' ELSE tool END",
    GroupBy.PROMPT: "prompt",
    GroupBy.PATTERN: "pattern",
}
PARTS: Final[Mapping[ReportPart, str]] = {
    ReportPart.RUNG: "rung",
    ReportPart.PROMPT: "prompt",
    ReportPart.MODEL: "model",
    ReportPart.KIND: "kind",
}

Field = str  # name of a field of ReportFilter


class ReportSource(NamedTuple):
    """Source of a report: a table of counts, or rows of the same shape, with the filters it supports."""

    table: str
    period: int  # seconds per unit of the time column; 0 for timestamps
    time_column: str
    columns: Mapping[Field, str]  # filter to column

    def supports(self, where: ReportFilter, *, ignore: tuple[Field, ...] = ()) -> bool:
        """Return whether it supports every filter that is set."""
        return all(
            name in self.columns or name in ignore
            for name in ("project", "model", "kind", "session")
            if getattr(where, name) is not None
        )

    def clause(
        self, where: ReportFilter, *, ignore: tuple[Field, ...] = (), condition: str = ""
    ) -> tuple[str, list[Any]]:
        """Return the WHERE clause with its values; fields in `ignore` are left to the query."""
        conditions, values = ([condition] if condition else []), []
        for sign, moment, rounded in ((">=", where.since, floor), ("<", where.until, ceil)):
            if moment is not None:
                conditions.append(f"{self.time_column} {sign} ?")
                values.append(rounded(moment / self.period) if self.period else moment)
        for name, column in self.columns.items():
            value = getattr(where, name)
            if value is not None and name not in ignore:
                conditions.append(f"{column} = ?")
                values.append(value)
        return (" WHERE " + " AND ".join(conditions) if conditions else ""), values


def _same_names(*names: Field) -> Mapping[Field, str]:
    return {name: name for name in names}


BY_HOUR: Final = ReportSource("by_hour", HOUR_SECONDS, "hour", _same_names("project", "model", "kind"))
BY_PATTERN: Final = ReportSource("by_pattern", DAY_SECONDS, "day", _same_names("project"))
BY_LATENCY: Final = ReportSource("by_latency", DAY_SECONDS, "day", _same_names("project", "model"))
BY_MESSAGE: Final = ReportSource("by_message", DAY_SECONDS, "day", _same_names("project"))
BY_RUNG: Final = ReportSource("by_rung", DAY_SECONDS, "day", _same_names("project", "model", "kind"))
BY_END: Final = ReportSource("by_end", DAY_SECONDS, "day", _same_names("project", "model", "kind"))
BY_ERROR_TYPE: Final = ReportSource("by_error_type", HOUR_SECONDS, "hour", _same_names("project", "model", "kind"))

# Sources of the same shape over the rows, for filters that the counts do not support, mostly a session.
ATTEMPTS: Final = ReportSource(
    """(SELECT at, CAST(FLOOR(at / 3600) AS BIGINT) AS hour, project, model, session, kind, 1 AS n, seconds, dollars,
               tool
          FROM attempt) AS attempts""",
    0,
    "at",
    _same_names("project", "model", "kind", "session"),
)
PATTERNS: Final = ReportSource(
    """(SELECT a.at, a.project, a.model, a.session, a.kind, i.pattern, 1 AS n, 1 - a.ok AS failures, a.dollars
          FROM attempt a JOIN incident i ON i.id = a.incident) AS patterns""",
    0,
    "at",
    _same_names("project", "model", "kind", "session"),
)
MESSAGES: Final = ReportSource(
    "(SELECT at, project, model, session, fingerprint, 1 AS n FROM attempt WHERE ok = 0) AS messages",
    0,
    "at",
    _same_names("project", "model", "session"),
)
ERROR_TYPES: Final = ReportSource(
    "(SELECT at, project, model, session, kind, error_type, 1 AS n FROM attempt WHERE ok = 0) AS error_types",
    0,
    "at",
    _same_names("project", "model", "kind", "session"),
)
TRIES: Final = ReportSource(
    """(SELECT a.at, a.project, a.model, a.session, i.kind, a.rung, a.prompt, 1 AS tried,
               CASE WHEN a.ok = 1 AND i.status = 'recovered' THEN 1 ELSE 0 END AS saved, a.seconds, a.dollars
          FROM attempt a JOIN incident i ON i.id = a.incident
         WHERE a.rung <> '' AND i.kind <> '') AS tries""",
    0,
    "at",
    _same_names("project", "model", "kind", "session"),
)
ENDS: Final = ReportSource(
    """(SELECT ended_at, project, first_model AS model, session, kind, status, 1 AS n,
               CASE WHEN kind = '' THEN '' ELSE last_rung END AS rung, own_dollars AS dollars,
               COALESCE(ended_at - failed_at, 0) AS recovery, asks, CASE WHEN asks > 0 THEN 1 ELSE 0 END AS asked,
               CASE WHEN asks + orders > 0 THEN 1 ELSE 0 END AS assisted,
               escalations, CASE WHEN escalations > 0 THEN 1 ELSE 0 END AS escalated
          FROM incident WHERE ended_at IS NOT NULL) AS ends""",
    0,
    "ended_at",
    _same_names("project", "model", "kind", "session"),
)


_SPAN_QUERY: Final = "SELECT {time} AS hour, project, model, tool, kind, n, dollars FROM {table}{clause}"


def days_and_hours(where: ReportFilter) -> tuple[str, list[Any]]:
    """Return `by_hour` with whole days read from `by_day`: equally exact, with a twentieth of the rows."""
    first = None if where.since is None else floor(where.since / HOUR_SECONDS)
    last = None if where.until is None else ceil(where.until / HOUR_SECONDS)
    first_day, last_day = (None if first is None else -(-first // 24)), (None if last is None else last // 24)
    if first_day is not None and last_day is not None and first_day >= last_day:
        spans = [("hour", "by_hour", first, last)]
    else:
        spans = [("day * 24", "by_day", first_day, last_day)]
        if first is not None and first_day is not None and first < first_day * 24:
            spans.append(("hour", "by_hour", first, first_day * 24))
        if last is not None and last_day is not None and last_day * 24 < last:
            spans.append(("hour", "by_hour", last_day * 24, last))
    queries, values = [], []
    for time, table, begin, end in spans:
        column = table.removeprefix("by_")
        bounds = [(f"{column} >= ?", begin), (f"{column} < ?", end)]
        conditions = [condition for condition, value in bounds if value is not None]
        values += [value for _, value in bounds if value is not None]
        clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        queries.append(_SPAN_QUERY.format(time=time, table=table, clause=clause))
    return f"({' UNION ALL '.join(queries)}) AS days", values


def choose_source(where: ReportFilter, *sources: ReportSource, ignore: tuple[Field, ...] = ()) -> ReportSource:
    """Return the first source that supports the filter; raise ConfigError that names the unsupported field."""
    for source in sources:
        if source.supports(where, ignore=ignore):
            return source
    supported = sources[-1].columns
    name = next(n for n in ("session", "kind", "model") if getattr(where, n) is not None and n not in supported)
    raise ConfigError(
        name, getattr(where, name), f"omitted: this report can only be filtered by {', '.join(supported)} and time"
    )
