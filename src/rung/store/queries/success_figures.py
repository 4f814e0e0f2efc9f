"""The four success figures, each with its numerator and denominator, and their trend by day."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.store.queries import kpis
from rung.store.queries.manual_restarts import active_sessions, manual_restarts
from rung.store.queries.stuck_sessions import count_stuck
from rung.store.read_models.batch import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Database
    from rung.store.queries.reports_sql import ReportFilter

PER_SESSIONS: Final = 100


class FigureId(StrEnum):
    """Id of a success figure."""

    AUTO_RECOVERED = "autoRecovered"
    MANUAL_RESTARTS = "manualInterventions"
    STUCK_ESCALATED = "stuckEscalated"
    TIME_TO_RECOVERY = "meanTimeToRecovery"


GOALS: Final = {
    FigureId.AUTO_RECOVERED: 0.7,
    FigureId.MANUAL_RESTARTS: 0.5,  # of the reduction
    FigureId.STUCK_ESCALATED: 0.3,
    FigureId.TIME_TO_RECOVERY: 30.0,
}
DEFINITIONS: Final = {
    FigureId.AUTO_RECOVERED: "Ended incidents that began with a transient error (rate limit, server error, overload, timeout, network, "
    "interrupted stream, service down) and recovered without a person, of all ended incidents that began with one.",
    FigureId.MANUAL_RESTARTS: "Actions of people that made work run again (retry, escalation, an answer that goes on, waking or resuming "
    "parked work, resetting or fixing a crew's task), per active session; compared with the period of the same length before.",
    FigureId.STUCK_ESCALATED: "Stuck sessions that changed their model, automatically or by a person, of all stuck sessions. A session is "
    "stuck if the same failure ended three attempts of one recovery (those that wait out an outage do not count), or if a recovery of it "
    "ended without success; failures of accounts and settings do not count.",
    FigureId.TIME_TO_RECOVERY: "Seconds from the first failure to the recovery, of the incidents that began with a transient error and "
    "recovered: their sum and their number.",
}


class SuccessFigure(NamedTuple):
    """Success figure. `share`: numerator by denominator, None without a denominator. `value`: what is shown first.

    `before` is the numerator and `before_sessions` the denominator of the period before; `reduction` compares the shares.
    """

    figure: FigureId
    value: float | None
    goal: float
    numerator: float
    denominator: int
    share: float | None
    per_100_sessions: float | None = None
    before: int | None = None
    before_sessions: int | None = None
    reduction: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None if that is not known."""
        compared = self.reduction if self.figure is FigureId.MANUAL_RESTARTS else self.value
        if compared is None:
            return None
        return compared < self.goal if self.figure is FigureId.TIME_TO_RECOVERY else compared >= self.goal


class DailyFigure(NamedTuple):
    """Value of a figure on one day."""

    at: float
    value: float | None


def success_figures(journal: Database, where: ReportFilter, *, now: float) -> list[SuccessFigure]:
    """Return the four success figures of a time range."""
    ends, stuck = kpis.success(journal, where), count_stuck(journal, where)
    return [
        _figure(FigureId.AUTO_RECOVERED, ends.auto_recovered, ends.transient),
        _manual_restarts(journal, where, now),
        _figure(FigureId.STUCK_ESCALATED, len(stuck.escalated), len(stuck.stuck)),
        _figure(FigureId.TIME_TO_RECOVERY, ends.recovery_seconds, ends.transient_recovered),
    ]


def _figure(figure: FigureId, numerator: float, denominator: int) -> SuccessFigure:
    share = numerator / denominator if denominator else None
    return SuccessFigure(figure, share, GOALS[figure], numerator, denominator, share)


def _manual_restarts(journal: Database, where: ReportFilter, now: float) -> SuccessFigure:
    """Return the manual restarts, compared with the period of the same length before; without a start there is none."""
    numerator, sessions = len(manual_restarts(journal, where)), active_sessions(journal, where)
    figure = _figure(FigureId.MANUAL_RESTARTS, numerator, sessions)
    share = figure.share
    figure = figure._replace(value=numerator, per_100_sessions=None if share is None else PER_SESSIONS * share)
    if where.since is None or (length := (now if where.until is None else where.until) - where.since) <= 0:
        return figure
    former = replace(where, since=where.since - length, until=where.since)
    before, before_sessions = len(manual_restarts(journal, former)), active_sessions(journal, former)
    reduction = None
    if before and before_sessions and share is not None:
        reduction = 1.0 - share / (before / before_sessions)
    return figure._replace(before=before, before_sessions=before_sessions, reduction=reduction)


def success_by_day(journal: Database, where: ReportFilter) -> dict[FigureId, list[DailyFigure]]:
    """Return the value of each figure by day, in order; a stuck session counts on the last day on which it was stuck."""
    days = kpis.success_by_day(journal, where)
    stuck = count_stuck(journal, where)
    restarts = _by_day(one.at for one in manual_restarts(journal, where))
    all_stuck, escalated = _by_day(stuck.stuck.values()), _by_day(stuck.stuck[name] for name in stuck.escalated)
    return {
        FigureId.AUTO_RECOVERED: [DailyFigure(_start(one.day), one.auto_share) for one in days],
        FigureId.MANUAL_RESTARTS: [DailyFigure(at, n) for at, n in sorted(restarts.items())],
        FigureId.STUCK_ESCALATED: [DailyFigure(at, escalated[at] / n) for at, n in sorted(all_stuck.items())],
        FigureId.TIME_TO_RECOVERY: [DailyFigure(_start(one.day), one.mean_seconds) for one in days],
    }


def _by_day(times: Iterable[float]) -> Counter[float]:
    return Counter(float(at // DAY_SECONDS * DAY_SECONDS) for at in times)


def _start(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
