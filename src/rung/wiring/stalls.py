"""Stalled tasks: open incidents that take longer than the journal's history of similar attempts suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.detectors.stalls import StallThresholds, ToolDurations, stalled
from rung.store.queries.incidents import attempt_durations
from rung.store.queries.listing import incidents

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.store.journal.journal import Journal
    from rung.store.queries.listing_rows import IncidentRow

MAX_HISTORY: Final = 5_000  # latest successful attempts
MAX_OPEN_INCIDENTS: Final = 1_000


class Stall(NamedTuple):
    """An open incident and the stall found in it."""

    incident: IncidentRow
    finding: Finding


def stalls(
    journal: Journal, now: float, patience: StallThresholds | None = None, project: str | None = None
) -> list[Stall]:
    """Return the tasks in progress or silent for too long, without those that wait for a person or a scheduled time."""
    durations = attempt_history(journal)
    found = []
    for row in incidents(journal, status="open", troubled=False, project=project, limit=MAX_OPEN_INCIDENTS).rows:
        if row.waiting or (row.due_at is not None and row.due_at >= now):
            continue
        kind = _duration_key(row.project, row.ladder, row.agent)
        finding = stalled(
            now=now,
            began=row.opened_at,
            last_sign=max(row.touched_at, row.due_at or 0.0),
            durations=durations.of(kind),
            thresholds=patience,
            what=row.id,
        )
        if finding is not None:
            found.append(Stall(row, finding))
    return found


def attempt_history(journal: Journal) -> ToolDurations:
    """Return the durations of successful attempts, by project, ladder and agent."""
    found = ToolDurations()
    for project, ladder, agent, seconds in attempt_durations(journal, MAX_HISTORY):
        found.record(_duration_key(project, ladder, agent), max(0.0, seconds))
    return found


def _duration_key(project: str, ladder: str, agent: str) -> str:
    return f"{project}/{ladder}/{agent}"
