"""Live status of open incidents: running, waiting for the next attempt, parked, or waiting for a person."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.text.moments import format_span
from rung.store.queries.incidents import readable_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.service.schemas.sessions import SessionStatus
    from rung.store.backends.port import Readable


CONTINUES_AT_ONCE: Final = "the waiting recovery continues at once"
RETRIES_AFTERWARDS: Final = "the recovery retries as soon as the current attempt ends"
SILENT_SECONDS: Final = 30.0  # without an event that was due


class NextAttempt(NamedTuple):
    """Scheduled attempt of a recovery; see `ScheduledRetry` of the API. `rung retry` needs it without the service's packages."""

    attempt: int
    of: int | None
    until: float
    is_probe: bool


class LiveStatus(NamedTuple):
    """Live status of an open incident, with its scheduled retry if there is one, or until when it is parked."""

    status: SessionStatus
    retry: NextAttempt | None = None
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
        retry = NextAttempt(attempt=number, of=max_tries, until=last.at + decision.wait, is_probe=is_wait)
        return LiveStatus("retrying", retry)
    return LiveStatus("running")


def order_note(incident: Incident, events: Sequence[ev.Event], now: float) -> str:
    """Return when an open incident follows an order. Nothing tells a busy process from one that is gone: silence is named."""
    live = live_status(incident, events)
    due = live.parked_until or (live.retry.until if live.retry is not None else 0.0)
    note = CONTINUES_AT_ONCE if live.status in ("retrying", "parked") else RETRIES_AFTERWARDS
    return _with_silence(note, now - max(events[-1].at, due))


def nobody_waits(incident: str, *, is_owned: bool | None) -> str:
    """Return that no process waits for an answer, and what continues; empty if one does, or if that is unknown.

    `is_owned`: whether a live process runs the durable run of this id; None without one.
    """
    if is_owned is not False:
        return ""
    return f"no process waits for the answer: `rung resume {shlex.quote(incident)}` continues the run with it"


def answer_note(incident: str, asked_at: float, now: float, *, is_owned: bool | None) -> str:
    """Return what becomes of an answer that was recorded. The process of a durable run is known; of others, silence is named."""
    gone = nobody_waits(incident, is_owned=is_owned)
    if gone:
        return f"the answer is recorded; {gone}"
    return CONTINUES_AT_ONCE if is_owned else _with_silence(CONTINUES_AT_ONCE, now - asked_at)


def _with_silence(note: str, silence: float) -> str:
    """Return the note, with the silence of the process and what to do if it is too long."""
    if silence < SILENT_SECONDS:
        return note
    return f"{note}, if its process still runs: nothing was recorded for {format_span(silence)}. If it is gone, start it again"


def _max_tries(incident: Incident, rung: int, number: int) -> int | None:
    """Return how often a rung may be tried, if the incident says it and the settings of a tool do not allow more."""
    tries = incident.terms.tries
    return tries[rung] if rung < len(tries) and number <= tries[rung] else None


def live_statuses(journal: Readable, incidents: Iterable[str]) -> dict[str, LiveStatus]:
    """Return the live status of several incidents by id."""
    events = readable_events(journal, list(incidents))
    return {incident: live_status(Incident.of(stream), stream) for incident, stream in events.items() if stream}
