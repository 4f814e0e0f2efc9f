"""What an open incident is doing now: making an attempt, waiting for the next one, or waiting for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.policy.presets import LADDERS
from rung.service.schemas.incidents import ScheduledRetry
from rung.service.schemas.sessions import SessionStatus
from rung.store.queries.incidents import readable_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.store.backends.port import Readable


class LiveStatus(NamedTuple):
    """The state of an open incident."""

    status: SessionStatus
    retry: ScheduledRetry | None = None


def live_status(incident: Incident, events: Sequence[ev.Event]) -> LiveStatus:
    """What these events leave it at."""
    last = next((event for event in reversed(events) if isinstance(event, ev.Decided)), None)
    if last is None or isinstance(events[-1], ev.AttemptFailed | ev.Answered):
        return LiveStatus("running")
    decision = last.decision
    if isinstance(decision, ev.Ask):
        return LiveStatus("waiting")
    if isinstance(decision, ev.Repeat | ev.Change):
        if isinstance(events[-1], ev.Ordered):
            return LiveStatus("running")
        ladder = LADDERS.get(incident.terms.ladder)
        of = None
        if ladder is not None and decision.rung < len(ladder.rungs):
            of = ladder.rungs[decision.rung].tries
        used = incident.retries if isinstance(decision, ev.Repeat) else incident.tries_used
        return LiveStatus("retrying", ScheduledRetry(attempt=used.get(decision.rung, 1), of=of, until=last.at + decision.wait))
    return LiveStatus("running")


def live_statuses(journal: Readable, incidents: Iterable[str]) -> dict[str, LiveStatus]:
    """The same for several incidents at once."""
    events = readable_events(journal, list(incidents))
    return {name: live_status(Incident.of(found), found) for name, found in events.items() if found}
