"""What is taking too long, by the journal's own history of how long such tasks take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.detectors.stalls import StallThresholds, ToolDurations, stalled
from rung.store.queries.incidents import attempt_durations
from rung.store.queries.listing import incidents

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.store.journal.journal import Journal
    from rung.store.queries.listing_rows import IncidentRow

MAX_HISTORY: Final = 5_000  # good attempts, the latest
MAX_OPEN_INCIDENTS: Final = 1_000  # incidents that are looked at


class Stall(NamedTuple):
    """A task in progress, and what is wrong with how long it takes."""

    incident: IncidentRow
    finding: Finding


def stalls(
    journal: Journal, now: float, patience: StallThresholds | None = None, project: str | None = None
) -> list[Stall]:
    """The tasks that have been in progress, or silent, for too long; one that waits for a person or its time is neither."""
    durations = attempt_history(journal)
    found = []
    for row in incidents(journal, status="open", troubled=False, project=project, limit=MAX_OPEN_INCIDENTS).rows:
        if row.waiting or (row.due_at is not None and row.due_at >= now):
            continue
        kind = _kind(row.project, row.ladder, row.agent)
        finding = stalled(
            now=now,
            began=row.opened_at,
            last_sign=max(row.touched_at, row.due_at or 0.0),
            durations=durations.of(kind),
            patience=patience,
            what=row.id,
        )
        if finding is not None:
            found.append(Stall(row, finding))
    return found


def attempt_history(journal: Journal) -> ToolDurations:
    """How long attempts that went well took, by project, ladder and agent."""
    found = ToolDurations()
    for project, ladder, agent, seconds in attempt_durations(journal, MAX_HISTORY):
        found.took(_kind(project, ladder, agent), max(0.0, seconds))
    return found


def _kind(project: str, ladder: str, agent: str) -> str:
    return f"{project}/{ladder}/{agent}"
