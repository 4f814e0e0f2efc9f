"""Level records: one for each level that a recovery enters, and one at its end. Schema `level-record`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.recommendation import failed_at, failure_reason, recommendation
from rung.core.domain.skipped_rungs import rung_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.core.domain.ladder import Ladder

_ENDS: Final = {
    ev.Status.PARTIAL: Action.FORCE_DONE,
    ev.Status.FAILED: Action.SURFACE,
    ev.Status.BLOCKED: Action.ASK,
}
_LIKELY: Final[dict[type, Action]] = {ev.Repeat: Action.RETRY, ev.HandOver: Action.FALLBACK}
_END: Final = (ev.AttemptSucceeded, ev.Closed, ev.Cancelled)


class LevelRecorder:
    """Fold of one incident's events into level records. `epoch` is added to the times of events."""

    def __init__(self, ladder: Ladder, epoch: float = 0.0) -> None:
        self._ladder = ladder
        self._epoch = epoch
        self._levels: list[int] = []
        self._kind = Kind.UNKNOWN.value

    def add(self, event: ev.Event, incident: Incident) -> dict[str, Any] | None:
        """Return the record that an event leads to, if any. `incident` has folded the event, and may be ahead of it."""
        if isinstance(event, ev.Opened):
            names = event.terms.rungs
            if Action.PARK in names or Action.WAIT in names:  # the ladder as it was, for its level numbers
                self._ladder = self._ladder.with_waiting(
                    park=float(Action.PARK in names), patience=float(Action.WAIT in names)
                )
        elif isinstance(event, ev.AttemptFailed):
            self._kind = event.failure.kind.value
        elif isinstance(event, ev.Decided):
            return self._entered(event, incident)
        elif isinstance(event, _END) and (self._levels or not isinstance(event, ev.AttemptSucceeded)):
            return self._completed(incident)
        return None

    def _entered(self, event: ev.Decided, incident: Incident) -> dict[str, Any] | None:
        level = self._ladder.level(event.decision.rung)
        if self._levels and self._levels[-1] >= level:
            return None  # a retry while on a higher rung is not a transition
        previous = list(self._levels)
        self._levels.append(level)
        return {
            "taskId": incident.id,
            "status": "in_progress",
            "recoveryLevel": level,
            "recoveryAction": _action(event.decision, self._ladder, incident.terms.rungs),
            "errorType": self._kind,
            "previousLevels": previous,
            "enteredAt": _utc(self._epoch + event.at),
        }

    def _completed(self, incident: Incident) -> dict[str, Any]:
        status = incident.status or ev.Status.PARTIAL
        path = [self._ladder.level(index) for index in incident.path]
        level = path[-1] if path else 0
        ok = status in (ev.Status.SUCCEEDED, ev.Status.RECOVERED)
        reached = f"level {level}" if path else "no recovery"
        count = f"{incident.attempts} attempt{'s' * (incident.attempts != 1)}"
        return {
            "taskId": incident.id,
            "status": "completed",
            "outcome": status.value,
            "partial": not ok,
            "escalationLevel": level,
            "escalationPath": path,
            "completedSteps": list(incident.steps),
            "failedAt": None if ok else failed_at(incident),
            "failureReason": None if ok else failure_reason(incident),
            "recommendation": None if ok else recommendation(incident.failure, incident.reason),
            "explanation": f"{self._kind}: solved at {reached}" if ok else failure_reason(incident),
            "summary": f"{status.value} after {count}, {reached}",
        }


def level_records(events: Iterable[ev.Event], ladder: Ladder, epoch: float = 0.0) -> list[dict[str, Any]]:
    """Return one record for each transition to a higher level, and one for the end: schema `level-record`."""
    recorder, incident = LevelRecorder(ladder, epoch), Incident()
    records: list[dict[str, Any]] = []
    for event in events:
        incident.fold(event)
        record = recorder.add(event, incident)
        if record is not None:
            records.append(record)
    return records


def _action(decision: ev.Decision, ladder: Ladder, names: tuple[str, ...]) -> str:
    """Return the action of a decision's rung. Of a ladder that is known by the names of its rungs only, the likely one."""
    if not names or names == tuple(rung.name for rung in ladder.rungs):
        return ladder.rungs[decision.rung].action.value
    name = rung_name(decision.rung, names)
    if name in tuple(Action):
        return name
    if isinstance(decision, ev.Finish):
        return _ENDS[decision.status].value
    return getattr(decision, "action", _LIKELY.get(type(decision), Action.ASK)).value


def _utc(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()
