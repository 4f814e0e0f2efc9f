"""Figures of a crew that alert rules watch: parked pools, dead workers, and tasks that wait for a person.

A question about an incident is also in the journal, whose figure counts it: here it does not count again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import Metric
from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.crew.worker_supervision import DEATH_PREFIXES
from rung.store.crew.board import closed_pools, load_page
from rung.store.crew.table import CrewTable
from rung.store.queries.listing import asks
from rung.wiring.journals import shown_location

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.alerts.rules import AlertRule
    from rung.store.crew.rows import TaskRow
    from rung.store.journal.journal import Journal

CREW_PROJECT: Final = "crew"  # of rules about the figures of crews alone
_MAX_NAMED: Final = 3
_MAX_TASKS: Final = 500


def crew_scope(table_url: str) -> str:
    """Return the scope of a crew's alerts: the same wherever its conductor runs."""
    return f"crew:{shown_location(table_url)}"


def crew_figures(
    table_url: str, journal: Journal | None, now: Callable[[], float]
) -> Callable[[AlertRule], Reading | None]:
    """Return a function that reads the figure of a rule from a crew's table; None if the rule is not about it."""

    def read(rule: AlertRule) -> Reading | None:
        is_about_crews = rule.when in (Metric.PARKED, Metric.DEAD_WORKERS, Metric.UNANSWERED)
        if not is_about_crews or rule.project not in (None, CREW_PROJECT):
            return None
        try:
            with CrewTable.open(table_url) as table:
                return _figure(table, journal, rule, now())
        except (StoreError, StoreUnavailable):
            return Reading(None)  # the conductor tells about its table, and other rules need none

    return read


def _figure(table: CrewTable, journal: Journal | None, rule: AlertRule, now: float) -> Reading:
    window = rule.window_seconds
    if rule.when is Metric.PARKED:
        parked = [name for name, pool in closed_pools(table).items() if now - (pool.since or now) >= window]
        return _reading("Pools", parked)
    if rule.when is Metric.DEAD_WORKERS:
        dead = [one.task_id for one in table.restarts(window) if one.why.startswith(DEATH_PREFIXES)]
        return _reading("Workers of the tasks", dead)
    rows = load_page(table, _MAX_TASKS, for_person=True).tasks
    # After the rows: a question is in the journal before its task is marked, so none of these rows counts twice.
    in_journal = set() if journal is None else {ask.incident for ask in asks(journal, limit=_MAX_TASKS)}
    waiting = [row for row in rows if (row.state_age or 0.0) >= window and _incident_of(row) not in in_journal]
    return _reading("Tasks", [row.task_id for row in waiting])


def _incident_of(row: TaskRow) -> str:
    """Return the id of the task's open incident; empty if it has none."""
    first = from_json(row.history[0]) if row.history else None
    return first.id if isinstance(first, Opened) else ""


def _reading(what: str, names: list[str]) -> Reading:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return Reading(float(len(names)), f"{what}: {', '.join(names[:_MAX_NAMED])}{more}." if names else "")
