"""Analytics routes: failure rates, recovery statistics, costs, KPIs and failure groups."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query

from rung.core.classify.error_types import ErrorType
from rung.core.domain.errors import ConfigError
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL
from rung.service.schemas.analytics import (
    DailyFailureRate,
    DailyValue,
    FailureAnalytics,
    FailureGroupOut,
    FailureRate,
    KpiTile,
    MessageCount,
    RecoveryStats,
    RungEffectOut,
    SnoozeIn,
)
from rung.service.schemas.base import Moment
from rung.store.queries import groups as grouped
from rung.store.queries import reports
from rung.store.queries.inbox import failures_by_day
from rung.store.queries.reports_sql import GroupBy, ReportFilter, ReportPart
from rung.store.queries.success_figures import DEFINITIONS, success_by_day, success_figures
from rung.store.read_models.batch import DAY_SECONDS
from rung.store.settings import record_audit

router = APIRouter(prefix="/api", tags=["analytics"], responses=PROBLEM_RESPONSES)

DEFAULT_LIMIT: Final = 20
MAX_ROWS: Final = 1_000  # days or groups in one response
TREND_DAYS: Final = 14  # in a group's sparkline


def _report_filter(
    since: Moment = None,
    until: Moment = None,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = DEFAULT_LIMIT,
) -> ReportFilter:
    return ReportFilter(since=since, until=until, project=project, model=model or None, kind=kind or None, limit=limit)


Filter = Annotated[ReportFilter, Depends(_report_filter)]


@router.get("/analytics/failures")
def failures(
    context: Context, _: Reader, where: Filter, by: Annotated[str, Query(max_length=20)] = "kind"
) -> FailureAnalytics:
    """Failure counts and rates by kind, model, project, prompt, tool, day or hour.

    `since` is inclusive, `until` exclusive. Counts are kept by hour (messages and prompts: by day, UTC): an hour that the range covers
    in part counts as a whole, unless `model` is given.
    """
    if by not in tuple(GroupBy):
        raise ConfigError("by", by, "one of " + ", ".join(GroupBy))
    journal = context.journal
    kinds = reports.failures(journal, where, GroupBy.KIND)
    models = reports.failures(journal, where, GroupBy.MODEL)
    days = [
        DailyFailureRate(
            day=_day(point.at), at=point.at, attempts=point.attempts, failures=point.failures,
            rate=point.failures / point.attempts if point.attempts else 0.0,
        )
        for point in reports.trend(journal, where).get("", [])[-MAX_ROWS:]
    ]  # fmt: skip
    chosen = {GroupBy.KIND: kinds, GroupBy.MODEL: models}.get(GroupBy(by)) or reports.failures(
        journal, where, GroupBy(by)
    )
    attempts, failed = sum(row.attempts for row in models), sum(row.failures for row in models)
    return FailureAnalytics(
        total_failures=failed,
        total_attempts=attempts,
        failure_rate=failed / attempts if attempts else 0.0,
        by_error_type={ErrorType(name): n for name, n in reports.failures_by_error_type(journal, where).items()},
        by_kind={row.key: row.failures for row in kinds},
        by_model={row.key: row.failures for row in models},
        top_error_messages=[
            MessageCount(
                message=row.message, count=row.seen, kind=row.kind, project=row.project,
                projects=list(row.projects), fingerprint=row.fingerprint, first_at=row.first_at, last_at=row.last_at, example=row.example, state=row.state.value,
            )
            for row in reports.messages(journal, where, now=time.time())
        ],
        failure_rate_by_day={one.day: one.rate for one in days},
        days=days,
        by=by,
        rates=[
            FailureRate(key=row.key, attempts=row.attempts, failures=row.failures, rate=row.rate, dollars=row.dollars)
            for row in chosen[:MAX_ROWS]
        ],
    )  # fmt: skip


@router.get("/analytics/recovery")
def recovery(context: Context, _: Reader, where: Filter) -> list[RecoveryStats]:
    """Outcomes of incidents, by the kind of their first failure."""
    return [
        RecoveryStats(
            kind=row.kind, incidents=row.incidents, recovered=row.recovered, partial=row.partial, blocked=row.blocked,
            failed=row.failed, rate=row.rate, mean_seconds=row.mean_seconds, dollars=row.dollars, asks=row.asks,
            escalations=row.escalations,
        )
        for row in reports.recovery(context.journal, where)
    ]  # fmt: skip


@router.get("/analytics/rungs")
def rungs(context: Context, _: Reader, where: Filter) -> list[RungEffectOut]:
    """Recoveries, time and cost of each rung."""
    times = {row.rung: row.mean_seconds for row in reports.recovery_by_rung(context.journal, where)}
    return [
        _effect_out(row, times.get(row.rung))
        for row in reports.rung_effects(context.journal, where, (ReportPart.RUNG,))
    ]


@router.get("/analytics/prompts")
def prompts(context: Context, _: Reader, where: Filter) -> list[RungEffectOut]:
    """Recoveries by each recovery prompt."""
    return [
        _effect_out(row) for row in reports.rung_effects(context.journal, where, (ReportPart.PROMPT,)) if row.prompt
    ]


@router.get("/analytics/cost")
def cost(context: Context, _: Reader, where: Filter) -> list[RungEffectOut]:
    """Cost and recoveries of each rung and model."""
    return [
        _effect_out(row) for row in reports.rung_effects(context.journal, where, (ReportPart.RUNG, ReportPart.MODEL))
    ]


@router.get("/analytics/success")
def success(context: Context, _: Reader, where: Filter) -> list[KpiTile]:
    """The four success figures, with their numerators, denominators and daily trends."""
    trends = success_by_day(context.journal, where)
    return [
        KpiTile(
            id=one.figure.value, value=one.value, goal=one.goal, of=one.denominator, numerator=one.numerator,
            denominator=one.denominator, share=one.share, per_hundred_sessions=one.per_100_sessions, before=one.before,
            before_sessions=one.before_sessions, reduction=one.reduction, is_met=one.is_met,
            definition=DEFINITIONS[one.figure],
            trend=[DailyValue(at=day.at, value=day.value) for day in trends[one.figure][-MAX_ROWS:]],
        )
        for one in success_figures(context.journal, where, now=time.time())
    ]  # fmt: skip


def _effect_out(row: Any, mean: float | None = None) -> RungEffectOut:
    return RungEffectOut(
        rung=row.rung, prompt=row.prompt, model=row.model, kind=row.kind, tried=row.tried, saved=row.saved,
        seconds=row.seconds, dollars=row.dollars, mean_seconds=mean,
    )  # fmt: skip


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


# -- groups -------------------------------------------------------------------------------------------

Project = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="Project name; `-` for the unnamed project.")]
Fingerprint = Annotated[str, Path(min_length=1, max_length=100, pattern=NO_NUL)]


@router.get("/groups")
def groups(
    context: Context,
    _: Reader,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
    state: Annotated[str | None, Query(max_length=20)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[FailureGroupOut]:
    """Failure groups, most recent first."""
    if state is not None and state not in tuple(grouped.GroupState):
        raise ConfigError("state", state, "one of " + ", ".join(grouped.GroupState))
    states = frozenset(grouped.GroupState) if state is None else frozenset({grouped.GroupState(state)})
    found = grouped.groups(context.journal, now=time.time(), project=project, kind=kind, states=states, limit=limit)
    return _with_trend(context, found)


@router.post("/groups/{project:path}/{fingerprint}/resolve")
def resolve(project: Project, fingerprint: Fingerprint, context: Context, principal: Actor) -> FailureGroupOut:
    """Mark a failure group as resolved; a later occurrence counts as a regression."""
    group = grouped.resolve(context.journal, _group(context, project, fingerprint), now=time.time())
    return _audited(context, group, principal.name, "resolve")


@router.post("/groups/{project:path}/{fingerprint}/reopen")
def reopen(project: Project, fingerprint: Fingerprint, context: Context, principal: Actor) -> FailureGroupOut:
    """Reopen a resolved failure group."""
    return _audited(
        context, grouped.reopen(context.journal, _group(context, project, fingerprint)), principal.name, "reopen"
    )


@router.post("/groups/{project:path}/{fingerprint}/snooze")
def snooze(
    project: Project, fingerprint: Fingerprint, body: SnoozeIn, context: Context, principal: Actor
) -> FailureGroupOut:
    """Mute a failure group for some hours."""
    now = time.time()
    group = grouped.snooze(
        context.journal, _group(context, project, fingerprint), until=now + body.hours * 3600, now=now
    )
    return _audited(context, group, principal.name, "snooze")


def _group(context: AppContext, project: str, fingerprint: str) -> grouped.FailureGroup:
    try:
        return grouped.find_group(
            context.journal, fingerprint, now=time.time(), project="" if project == "-" else project
        )
    except ConfigError:
        raise ApiProblem(404, f"there is no group {fingerprint!r} in project {project!r}") from None


def _audited(context: AppContext, group: grouped.FailureGroup, by: str, action: str) -> FailureGroupOut:
    record_audit(context.journal, by, f"group.{action}", f"group/{group.project or '-'}/{group.fingerprint}", {})
    return _with_trend(context, [group])[0]


def _with_trend(context: AppContext, found: list[grouped.FailureGroup]) -> list[FailureGroupOut]:
    today = int(time.time() // DAY_SECONDS)
    trends: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * TREND_DAYS)
    for row in failures_by_day(context.journal, list({group.fingerprint for group in found}), today - TREND_DAYS):
        if row.day <= today:
            trends[row.project, row.fingerprint][TREND_DAYS - 1 - (today - row.day)] += row.seen
    return [
        FailureGroupOut(
            project=group.project, fingerprint=group.fingerprint, kind=group.kind, message=group.message,
            example=group.example, first_at=group.first_at, last_at=group.last_at, seen=group.seen,
            state=group.state.value, until=group.until, trend=trends[group.project, group.fingerprint],
        )
        for group in found
    ]  # fmt: skip
