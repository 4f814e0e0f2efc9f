"""What a report may be narrowed to and grouped by, and the SQL for that: our own names, the user's values bound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.store.read_models.batch import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilter:
    """What a report is about; what is left out is not narrowed. An empty text is a value: the unnamed project.

    `since` counts, `until` does not. Counts are kept by the hour or by the day (UTC): one of which a part is
    asked for counts as a whole, unless a model or session makes the report read the attempts themselves.
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
    """What failures are counted by."""

    KIND = "kind"
    MODEL = "model"
    PROJECT = "project"
    DAY = "day"
    HOUR = "hour"
    TOOL = "tool"
    PROMPT = "prompt"  # the recovery prompt that was given
    PATTERN = "pattern"  # how the caller's own prompt begins


class ReportPart(StrEnum):
    """What the work of the rungs is told apart by."""

    RUNG = "rung"
    PROMPT = "prompt"
    MODEL = "model"
    KIND = "kind"


# A choice to the SQL it stands for. `hour / 24` is a day: whole numbers divide to whole numbers in both stores.
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

Field = str  # of Filter


class ReportSource(NamedTuple):
    """Where a report reads: a table of counts, or rows in its shape; which filters it knows, and how."""

    table: str
    period: int  # seconds; 0: moments
    clock: str  # the column in which time is kept
    columns: Mapping[Field, str]

    def answers(self, where: ReportFilter, *, but: tuple[Field, ...] = ()) -> bool:
        """Does it know every filter that is set?"""
        return all(
            name in self.columns or name in but
            for name in ("project", "model", "kind", "session")
            if getattr(where, name) is not None
        )

    def clause(self, where: ReportFilter, *, but: tuple[Field, ...] = (), also: str = "") -> tuple[str, list[Any]]:
        """The WHERE clause with its values; fields in `but` are the query's own affair."""
        terms, values = ([also] if also else []), []
        for sign, moment, whole in ((">=", where.since, floor), ("<", where.until, ceil)):
            if moment is not None:
                terms.append(f"{self.clock} {sign} ?")
                values.append(whole(moment / self.period) if self.period else moment)
        for name, column in self.columns.items():
            value = getattr(where, name)
            if value is not None and name not in but:
                terms.append(f"{column} = ?")
                values.append(value)
        return (" WHERE " + " AND ".join(terms) if terms else ""), values


def _same(*names: Field) -> Mapping[Field, str]:
    return {name: name for name in names}


BY_HOUR: Final = ReportSource("by_hour", HOUR, "hour", _same("project", "model", "kind"))
BY_PATTERN: Final = ReportSource("by_pattern", DAY, "day", _same("project"))
BY_LATENCY: Final = ReportSource("by_latency", DAY, "day", _same("project", "model"))
BY_MESSAGE: Final = ReportSource("by_message", DAY, "day", _same("project"))
BY_RUNG: Final = ReportSource("by_rung", DAY, "day", _same("project", "model", "kind"))
BY_END: Final = ReportSource("by_end", DAY, "day", _same("project", "model", "kind"))

# The same shapes read off the rows themselves, for filters that the counts do not know: a session, mostly.
ATTEMPTS: Final = ReportSource(
    """(SELECT at, CAST(FLOOR(at / 3600) AS BIGINT) AS hour, project, model, session, kind, 1 AS n, seconds, dollars,
               tool
          FROM attempt) AS attempts""",
    0,
    "at",
    _same("project", "model", "kind", "session"),
)
PATTERNS: Final = ReportSource(
    """(SELECT a.at, a.project, a.model, a.session, a.kind, i.pattern, 1 AS n, 1 - a.ok AS failures, a.dollars
          FROM attempt a JOIN incident i ON i.id = a.incident) AS patterns""",
    0,
    "at",
    _same("project", "model", "kind", "session"),
)
MESSAGES: Final = ReportSource(
    "(SELECT at, project, model, session, fingerprint, 1 AS n FROM attempt WHERE ok = 0) AS messages",
    0,
    "at",
    _same("project", "model", "session"),
)
TRIES: Final = ReportSource(
    """(SELECT a.at, a.project, a.model, a.session, i.kind, a.rung, a.prompt, 1 AS tried,
               CASE WHEN a.ok = 1 AND i.status = 'recovered' THEN 1 ELSE 0 END AS saved, a.seconds, a.dollars
          FROM attempt a JOIN incident i ON i.id = a.incident
         WHERE a.rung <> '' AND i.kind <> '') AS tries""",
    0,
    "at",
    _same("project", "model", "kind", "session"),
)
ENDS: Final = ReportSource(
    """(SELECT ended_at, project, first_model AS model, session, kind, status, 1 AS n,
               CASE WHEN kind = '' THEN '' ELSE last_rung END AS rung, own_dollars AS dollars,
               COALESCE(ended_at - failed_at, 0) AS recovery, asks, CASE WHEN asks > 0 THEN 1 ELSE 0 END AS asked,
               escalations, CASE WHEN escalations > 0 THEN 1 ELSE 0 END AS escalated
          FROM incident WHERE ended_at IS NOT NULL) AS ends""",
    0,
    "ended_at",
    _same("project", "model", "kind", "session"),
)


_ARM: Final = "SELECT {time} AS hour, project, model, tool, kind, n, dollars FROM {table}{clause}"


def in_days(where: ReportFilter) -> tuple[str, list[Any]]:
    """`by_hour` over this time with a row for each whole day in it: as exact, and a twentieth of the rows."""
    first = None if where.since is None else floor(where.since / HOUR)
    last = None if where.until is None else ceil(where.until / HOUR)
    first_day, last_day = (None if first is None else -(-first // 24)), (None if last is None else last // 24)
    if first_day is not None and last_day is not None and first_day >= last_day:
        spans = [("hour", "by_hour", first, last)]
    else:
        spans = [("day * 24", "by_day", first_day, last_day)]
        if first is not None and first_day is not None and first < first_day * 24:
            spans.append(("hour", "by_hour", first, first_day * 24))
        if last is not None and last_day is not None and last_day * 24 < last:
            spans.append(("hour", "by_hour", last_day * 24, last))
    arms, values = [], []
    for time, table, begin, end in spans:
        column = table.removeprefix("by_")
        terms = [(f"{column} >= ?", begin), (f"{column} < ?", end)]
        said = [term for term, value in terms if value is not None]
        values += [value for _, value in terms if value is not None]
        arms.append(_ARM.format(time=time, table=table, clause=f" WHERE {' AND '.join(said)}" if said else ""))
    return f"({' UNION ALL '.join(arms)}) AS days", values


def choose(where: ReportFilter, *sources: ReportSource, but: tuple[Field, ...] = ()) -> ReportSource:
    """The first source that can answer; none: which filter is in the way is said."""
    for source in sources:
        if source.answers(where, but=but):
            return source
    known = sources[-1].columns
    name = next(n for n in ("session", "kind", "model") if getattr(where, n) is not None and n not in known)
    raise ConfigError(name, getattr(where, name), f"left out: this is kept by {', '.join(known)} and time only")
