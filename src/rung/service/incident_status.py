"""Live status of open incidents: running, waiting for the next attempt, parked, or waiting for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.service.schemas.incidents import ScheduledRetry
from rung.service.schemas.sessions import SessionStatus
from rung.store.queries.incidents import readable_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.store.backends.port import Readable


class LiveStatus(NamedTuple):
    """Live status of an open incident, with its scheduled retry if there is one, or until when it is parked."""

    status: SessionStatus
    retry: ScheduledRetry | None = None
    parked_until: float | None = None


def live_status(incident: Incident, events: Sequence[ev.Event]) -> LiveStatus:
    """Return the live status that follows from an incident's events."""
    if incident.parked_until is not None:
        return LiveStatus("parked", None, incident.parked_until)
    last = next((event for event in reversed(events) if isinstance(event, ev.Decided)), None)
    if last is None or isinstance(events[-1], ev.AttemptFailed | ev.Answered):
        return LiveStatus("running")
    decision = last.decision
    if isinstance(decision, ev.Ask):
        return LiveStatus("waiting")
    if isinstance(decision, ev.Repeat | ev.Change):
        if isinstance(events[-1], ev.Ordered):
            return LiveStatus("running")
        is_wait = isinstance(decision, ev.Repeat) and decision.until is not None
        used = incident.retries if isinstance(decision, ev.Repeat) else incident.tries_used
        number = incident.waits if is_wait else used.get(decision.rung, 1)
        max_tries = None if is_wait else _max_tries(incident, decision.rung, number)
        retry = ScheduledRetry(attempt=number, of=max_tries, until=last.at + decision.wait, is_probe=is_wait)
        return LiveStatus("retrying", retry)
    return LiveStatus("running")


def _max_tries(incident: Incident, rung: int, number: int) -> int | None:
    """Return how often a rung may be tried, if the incident says it and the settings of a tool do not allow more."""
    tries = incident.terms.tries
    return tries[rung] if rung < len(tries) and number <= tries[rung] else None


def live_statuses(journal: Readable, incidents: Iterable[str]) -> dict[str, LiveStatus]:
    """Return the live status of several incidents by id."""
    events = readable_events(journal, list(incidents))
    return {incident: live_status(Incident.of(stream), stream) for incident, stream in events.items() if stream}
