"""What fails, how often, and what helps, over HTTP: the same functions as `rung report`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query

from rung.core.domain.errors import ConfigError
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL
from rung.service.schemas.analytics import (
    DailyFailureRate,
    DailyValue,
    FailureAnalytics,
    FailureGroupOut,
    MessageCount,
    FailureRate,
    RecoveryStats,
    RungEffectOut,
    SnoozeIn,
    KpiTile,
)
from rung.store.queries import groups as grouped
from rung.store.queries import kpis, reports
from rung.store.queries.inbox import failures_by_day
from rung.store.queries.listing_rows import Figures
from rung.store.queries.reports_sql import GroupBy, ReportFilter, ReportPart
from rung.store.read_models.batch import DAY
from rung.store.settings import trace

router = APIRouter(prefix="/api", tags=["analytics"], responses=PROBLEM_RESPONSES)

TOP: Final = 20
MOST: Final = 1_000  # days that are asked for, and rows
TREND: Final = 14  # days of a group's sparkline
GOALS: Final = {"autoRecovered": 0.7, "meanTimeToRecovery": 30.0}


def _where(
    since: Annotated[float | None, Query(ge=0, le=1e11, allow_inf_nan=False)] = None,
    until: Annotated[float | None, Query(ge=0, le=1e11, allow_inf_nan=False)] = None,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = TOP,
) -> ReportFilter:
    return ReportFilter(since=since, until=until, project=project, model=model or None, kind=kind or None, limit=limit)


Asked = Annotated[ReportFilter, Depends(_where)]


@router.get("/analytics/failures")
def failures(
    hub: Context, _: Reader, where: Asked, by: Annotated[str, Query(max_length=20)] = "kind"
) -> FailureAnalytics:
    """Failures and the attempts they are a share of, by kind, model, project, prompt, tool, day or hour."""
    if by not in tuple(GroupBy):
        raise ConfigError("by", by, "one of " + ", ".join(GroupBy))
    journal = hub.journal
    kinds = reports.failures(journal, where, GroupBy.KIND)
    models = reports.failures(journal, where, GroupBy.MODEL)
    days = reports.trend(journal, where).get("", [])
    chosen = {GroupBy.KIND: kinds, GroupBy.MODEL: models}.get(GroupBy(by)) or reports.failures(
        journal, where, GroupBy(by)
    )
    attempts, bad = sum(row.attempts for row in models), sum(row.failures for row in models)
    return FailureAnalytics(
        total_failures=bad,
        total_attempts=attempts,
        failure_rate=bad / attempts if attempts else 0.0,
        by_error_type={row.key: row.failures for row in kinds},
        by_model={row.key: row.failures for row in models},
        top_error_messages=[
            MessageCount(
                message=row.message, count=row.seen, kind=row.kind, project=row.project, fingerprint=row.fingerprint,
                first_at=row.first_at, last_at=row.last_at, example=row.example, state=row.state.value,
            )
            for row in reports.messages(journal, where, now=time.time())
        ],
        failure_rate_by_day=[
            DailyFailureRate(
                day=_day(point.at), at=point.at, attempts=point.attempts, failures=point.failures,
                rate=point.failures / point.attempts if point.attempts else 0.0,
            )
            for point in days[-MOST:]
        ],
        by=by,
        rates=[
            FailureRate(key=row.key, attempts=row.attempts, failures=row.failures, rate=row.rate, dollars=row.dollars)
            for row in chosen[:MOST]
        ],
    )  # fmt: skip


@router.get("/analytics/recovery")
def recovery(hub: Context, _: Reader, where: Asked) -> list[RecoveryStats]:
    """How incidents ended, by the kind of their first failure."""
    return [
        RecoveryStats(
            kind=row.kind, incidents=row.incidents, recovered=row.recovered, partial=row.partial, blocked=row.blocked,
            failed=row.failed, rate=row.rate, mean_seconds=row.mean_seconds, dollars=row.dollars, asks=row.asks,
            escalations=row.escalations,
        )
        for row in reports.recovery(hub.journal, where)
    ]  # fmt: skip


@router.get("/analytics/rungs")
def rungs(hub: Context, _: Reader, where: Asked) -> list[RungEffectOut]:
    """How often each rung saved it, how long that took, and what it cost."""
    times = {row.rung: row.mean_seconds for row in reports.recovery_by_rung(hub.journal, where)}
    return [_rescue(row, times.get(row.rung)) for row in reports.rescues(hub.journal, where, (ReportPart.RUNG,))]


@router.get("/analytics/prompts")
def prompts(hub: Context, _: Reader, where: Asked) -> list[RungEffectOut]:
    """Which recovery prompt saved how many."""
    return [_rescue(row) for row in reports.rescues(hub.journal, where, (ReportPart.PROMPT,)) if row.prompt]


@router.get("/analytics/cost")
def cost(hub: Context, _: Reader, where: Asked) -> list[RungEffectOut]:
    """What each rung and model cost, and what it saved."""
    return [_rescue(row) for row in reports.rescues(hub.journal, where, (ReportPart.RUNG, ReportPart.MODEL))]


@router.get("/analytics/success")
def success(hub: Context, _: Reader, where: Asked) -> list[KpiTile]:
    """The four figures of success, with their trend by day."""
    whole, days = kpis.success(hub.journal, where), kpis.success_by_day(hub.journal, where)
    return [
        KpiTile(
            id=name,  # type: ignore[arg-type]  # the names of the figures
            value=figure(whole),
            goal=GOALS.get(name),
            of=whole.incidents,
            trend=[DailyValue(at=_moment(day.day), value=figure(day)) for day in days[-MOST:]],
        )
        for name, figure in FIGURES.items()
    ]


FIGURES: Final[dict[str, Callable[[Figures], float | None]]] = {
    "autoRecovered": lambda one: one.auto_share,
    "manualInterventions": lambda one: one.interventions,
    "stuckEscalated": lambda one: one.escalated,
    "meanTimeToRecovery": lambda one: one.mean_seconds,
}


def _moment(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


def _rescue(row: Any, mean: float | None = None) -> RungEffectOut:
    return RungEffectOut(
        rung=row.rung, prompt=row.prompt, model=row.model, kind=row.kind, tried=row.tried, saved=row.saved,
        seconds=row.seconds, dollars=row.dollars, mean_seconds=mean,
    )  # fmt: skip


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


# -- groups -------------------------------------------------------------------------------------------

Project = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="`-` for the unnamed project.")]
Mark = Annotated[str, Path(min_length=1, max_length=100, pattern=NO_NUL)]


@router.get("/groups")
def groups(
    hub: Context,
    _: Reader,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
    state: Annotated[str | None, Query(max_length=20)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[FailureGroupOut]:
    """Failures that are the same trouble, the last seen first."""
    if state is not None and state not in tuple(grouped.GroupState):
        raise ConfigError("state", state, "one of " + ", ".join(grouped.GroupState))
    states = frozenset(grouped.GroupState) if state is None else frozenset({grouped.GroupState(state)})
    found = grouped.groups(hub.journal, now=time.time(), project=project, kind=kind, states=states, limit=limit)
    return _with_trend(hub, found)


@router.post("/groups/{project:path}/{fingerprint}/resolve")
def resolve(project: Project, fingerprint: Mark, hub: Context, who: Actor) -> FailureGroupOut:
    """It is mended; seen again, it is a regression."""
    group = grouped.resolve(hub.journal, _group(hub, project, fingerprint), now=time.time())
    return _said(hub, group, who.name, "resolve")


@router.post("/groups/{project:path}/{fingerprint}/reopen")
def reopen(project: Project, fingerprint: Mark, hub: Context, who: Actor) -> FailureGroupOut:
    """It is not mended after all."""
    return _said(hub, grouped.reopen(hub.journal, _group(hub, project, fingerprint)), who.name, "reopen")


@router.post("/groups/{project:path}/{fingerprint}/snooze")
def snooze(project: Project, fingerprint: Mark, wanted: SnoozeIn, hub: Context, who: Actor) -> FailureGroupOut:
    """Nobody wants to hear of it for a while."""
    now = time.time()
    group = grouped.snooze(hub.journal, _group(hub, project, fingerprint), until=now + wanted.hours * 3600, now=now)
    return _said(hub, group, who.name, "snooze")


def _group(hub: AppContext, project: str, fingerprint: str) -> grouped.FailureGroup:
    try:
        return grouped.find(hub.journal, fingerprint, now=time.time(), project="" if project == "-" else project)
    except ConfigError:
        raise ApiProblem(404, f"there is no group {fingerprint!r} in project {project!r}") from None


def _said(hub: AppContext, group: grouped.FailureGroup, by: str, action: str) -> FailureGroupOut:
    trace(hub.journal, by, f"group.{action}", f"group/{group.project or '-'}/{group.fingerprint}", {})
    return _with_trend(hub, [group])[0]


def _with_trend(hub: AppContext, found: list[grouped.FailureGroup]) -> list[FailureGroupOut]:
    today = int(time.time() // DAY)
    trends: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * TREND)
    for row in failures_by_day(hub.journal, list({group.fingerprint for group in found}), today - TREND):
        if row.day <= today:
            trends[row.project, row.fingerprint][TREND - 1 - (today - row.day)] += row.seen
    return [
        FailureGroupOut(
            project=group.project, fingerprint=group.fingerprint, kind=group.kind, message=group.message,
            example=group.example, first_at=group.first_at, last_at=group.last_at, seen=group.seen,
            state=group.state.value, until=group.until, trend=trends[group.project, group.fingerprint],
        )
        for group in found
    ]  # fmt: skip
