"""Causes of a figure: the failure that is most frequent in the window of a rule, for its notification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import Metric
from rung.store.alerts.figures import UNRECOVERED
from rung.store.queries.incidents import placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.alerts.rules import AlertRule
    from rung.store.journal.journal import Journal

_MAX_PROJECT_CHARS: Final = 60
# Rows that a figure counts from a time on, and the values before that time.
_SOURCES: Final[Mapping[Metric, tuple[str, tuple[Any, ...]]]] = {
    Metric.FAILURE_RATE: ("attempt WHERE ok = 0 AND at >= ?", ()),
    Metric.UNRECOVERED: (
        f"incident WHERE status IN ({placeholders(UNRECOVERED)}) AND parent = '' AND touched_at >= ?",
        UNRECOVERED,
    ),
}


def explain_reading(journal: Journal, rule: AlertRule, reading: Reading, now: float) -> Reading:
    """Return a reading whose detail also names the most frequent kind of failure and its project, where they are known."""
    if rule.when not in _SOURCES or not reading.value:
        return reading
    source, values = _SOURCES[rule.when]
    of_project = "" if rule.project is None else " AND project = ?"
    rows = journal.read(
        f"SELECT kind, project, count(*) FROM {source}{of_project} AND kind <> ''"  # noqa: S608  # our own names
        " GROUP BY kind, project ORDER BY 3 DESC, 1, 2 LIMIT 1",
        [*values, now - rule.window_seconds, *([] if rule.project is None else [rule.project])],
    )
    if not rows:
        return reading
    kind, project, number = rows[0]
    where = f" in project {project[:_MAX_PROJECT_CHARS]}" if project else ""
    return Reading(reading.value, f"{reading.detail} Most frequent failure: {kind}{where} ({number}).".lstrip())
