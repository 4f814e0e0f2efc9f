"""Figures that alert rules watch, read from the journal."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import Metric
from rung.core.domain.events import Status
from rung.core.domain.ladder import Action
from rung.core.policy.executor_health import ExecutorHealth
from rung.store.fleet.executors import executors, lost_since
from rung.store.queries.incidents import placeholders
from rung.store.queries.reports_sql import ReportFilter
from rung.store.queries.stuck_sessions import count_stuck
from rung.store.read_models.batch import HOUR_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rung.core.alerts.rules import AlertRule
    from rung.store.journal.journal import Journal

MAX_NAMED: Final = 3  # sessions, incidents or executors that a notification names
_MAX_NAME_CHARS: Final = 60
UNRECOVERED: Final = (Status.FAILED.value, Status.PARTIAL.value, Status.BLOCKED.value)


class Moment(NamedTuple):
    """Time of a reading, and since when this process reads the database without a gap."""

    now: float
    observed_since: float


def read_figure(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    """Return the figure of a rule at a time."""
    return _FIGURES[rule.when](journal, rule, moment)


def _failure_rate(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    counted = _attempts(journal, rule, moment.now)
    text = f"{counted.failures} of {counted.attempts} attempts failed."
    if counted.attempts == 0:
        return Reading(0.0, "No attempts in the window.")
    if counted.attempts < rule.minimum:
        return Reading(0.0, f"{text} The rate counts as 0 below {rule.minimum} attempts (minimum).")
    return Reading(counted.failures / counted.attempts, text)


def _unrecovered(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    """Count the incidents that ended without success. A nested one that failed may have been recovered by its parent.

    An ended incident is not touched again: the condition on `touched_at` is the same as on `ended_at`, and has an index.
    """
    of_project, values = _of_project(rule)
    return _incidents(
        journal,
        f"incident WHERE status IN ({placeholders(UNRECOVERED)}) AND touched_at >= ? AND parent = ''" + of_project,
        [*UNRECOVERED, moment.now - rule.window_seconds, *values],
        "id, -touched_at",
    )


def _cost(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    counted = _attempts(journal, rule, moment.now)
    return Reading(counted.dollars, f"{counted.attempts} attempts.")


class _Attempts(NamedTuple):
    attempts: int
    failures: int
    dollars: float


def _attempts(journal: Journal, rule: AlertRule, now: float) -> _Attempts:
    """Count the attempts of the window: whole hours from their sums, the begun one before them from its rows."""
    since = now - rule.window_seconds
    hour = ceil(since / HOUR_SECONDS)
    of_project, values = _of_project(rule)
    rows = journal.read(
        f"SELECT COALESCE(SUM(n), 0), COALESCE(SUM(CASE WHEN kind = '' THEN 0 ELSE n END), 0), COALESCE(SUM(dollars), 0)"  # noqa: S608  # our own names
        f" FROM by_hour WHERE hour >= ?{of_project}",
        [hour, *values],
    )
    rows += journal.read(
        f"SELECT count(*), COALESCE(SUM(1 - ok), 0), COALESCE(SUM(dollars), 0)"  # noqa: S608  # our own names
        f" FROM attempt WHERE at >= ? AND at < ?{of_project}",
        [since, hour * float(HOUR_SECONDS), *values],
    )
    return _Attempts(
        sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows), sum(float(row[2]) for row in rows)
    )


def _stuck(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    where = ReportFilter(since=moment.now - rule.window_seconds, project=rule.project)
    stuck = sorted(count_stuck(journal, where).stuck.items(), key=lambda item: -item[1])
    return Reading(float(len(stuck)), _named("Sessions", (name for name, _ in stuck), len(stuck)))


def _parked(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    of_project, values = _of_project(rule)
    return _incidents(
        journal,
        "incident WHERE status = 'open' AND last_rung = ? AND due_at IS NOT NULL AND touched_at <= ?" + of_project,
        [Action.PARK.value, moment.now - rule.window_seconds, *values],
        "id, touched_at",
    )


def _unanswered(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    of_project, values = _of_project(rule)
    return _incidents(
        journal,
        "ask WHERE state = 'waiting' AND at <= ?" + of_project,
        [moment.now - rule.window_seconds, *values],
        "incident, at",
    )


def _incidents(journal: Journal, source: str, values: list[Any], columns: str) -> Reading:
    """Return how many rows there are, and name the incidents of the first in the order of the second column."""
    ((number,),) = journal.read(f"SELECT count(*) FROM {source}", values)  # noqa: S608  # our own names
    first = journal.read(f"SELECT {columns} FROM {source} ORDER BY 2, 1 LIMIT ?", [*values, MAX_NAMED])  # noqa: S608  # our own names
    return Reading(float(number), _named("Incidents", (row[0] for row in first), int(number)))


def _dead_workers(journal: Journal, rule: AlertRule, moment: Moment) -> Reading:
    """Count the executors that died in the window.

    After an outage of the database all heartbeats are old: nothing is known before each had the time to beat again.
    """
    since = moment.now - rule.window_seconds
    dead = [each for each in executors(journal, moment.now) if each.health is ExecutorHealth.DEAD]
    recent = [each for each in dead if each.heartbeat + each.lease >= since]
    if recent and moment.now - moment.observed_since <= max(each.lease for each in recent):
        return Reading(None)
    lost = lost_since(journal, since)  # their runs were handed over, and their rows removed
    labels = {**lost, **{each.id: each.label for each in recent}}
    return Reading(float(len(labels)), _named("Executors", sorted(labels.values()), len(labels)))


def _of_project(rule: AlertRule) -> tuple[str, list[Any]]:
    return ("", []) if rule.project is None else (" AND project = ?", [rule.project])


def _named(what: str, names: Iterable[str], number: int) -> str:
    shown = [name[:_MAX_NAME_CHARS] for name, _ in zip(names, range(MAX_NAMED), strict=False)]
    more = f" and {number - len(shown)} more" if number > len(shown) else ""
    return f"{what}: {', '.join(shown)}{more}." if shown else ""


_FIGURES: Final[Mapping[Metric, Callable[[Journal, AlertRule, Moment], Reading]]] = {
    Metric.FAILURE_RATE: _failure_rate,
    Metric.UNRECOVERED: _unrecovered,
    Metric.COST: _cost,
    Metric.STUCK: _stuck,
    Metric.PARKED: _parked,
    Metric.DEAD_WORKERS: _dead_workers,
    Metric.UNANSWERED: _unanswered,
}
