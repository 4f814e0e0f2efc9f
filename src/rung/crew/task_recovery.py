"""Recovery of each task on the `crew` ladder. Events are stored in the task's row and copied to the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rung.core.crew.corrections import SPENT_REASON, corrections_spent
from rung.core.crew.error_triage import no_progress
from rung.core.domain import events as ev
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action, RungScope
from rung.core.domain.request import Request
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.store.crew.rows import TaskRow
    from rung.store.journal.journal import Journal

EventsJson: TypeAlias = list[dict[str, Any]]  # the events of one incident


@dataclass(slots=True)
class TaskRecoveries:
    """Decides on the failures of tasks.

    The caller stores the returned events in the task's row, in one transaction with the state they lead to.
    """

    policy: Policy
    now: Callable[[], float]
    journal: Journal | None = None
    attended: bool = False
    log: Callable[[str], None] = lambda _: None

    def record_failure(self, task: TaskRow, failure: Failure) -> tuple[ev.Decision, EventsJson]:
        """Return the decision on a failure of the task's worker, and the incident's events to store with it.

        When the corrections of the task's life are spent, the ladder goes on above the fixes.
        """
        recovery = self._recovery(task)
        if corrections_spent(task.errors):
            recovery.skip_rung(Action.FIX, SPENT_REASON)
        decision = recovery.failed(failure, close=False)
        return decision, [to_json(event) for event in recovery.events]

    def close(self, task: TaskRow, status: ev.Status, reason: str) -> EventsJson:
        """Close the task's open incident, if there is one. Return the events to store: none."""
        if task.history:
            recovery = self._recovery(task)
            if status is ev.Status.RECOVERED:
                recovery.succeeded()
            else:
                recovery.close(status, reason)
        return []

    def makes_no_progress(self, task: TaskRow, failure: Failure) -> bool:
        """Return whether two fixes were already proposed for this error."""
        failures = Incident.of(_decode(task.history)).failures
        return no_progress([*(one.fingerprint for one in failures), failure.fingerprint])

    def _recovery(self, task: TaskRow) -> ExternalRecovery:
        """Return the task's open incident, or a new one.

        The task is the session: errors of earlier incidents count as tries on the rungs with session scope.
        """
        earlier = max(0, task.errors - 1)
        rungs = self.policy.ladder.rungs
        return ExternalRecovery(
            self.policy,
            request=Request(prompt=task.title or task.task_id, agent=task.worked_by or task.task_id),
            events=_decode(task.history),
            journal=self,
            attended=self.attended,
            used=tuple((rung.name, earlier) for rung in rungs if earlier and rung.scope is RungScope.SESSION),
            now=self.now,
        )

    def append(self, incident: str, first: int, events: Sequence[ev.Event], /) -> None:
        """Copy events to the journal. A failure is only logged: the task's row is the authoritative copy."""
        if self.journal is None:
            return
        try:
            self.journal.append(incident, first, tuple(events)).result()
        except Exception as error:  # noqa: BLE001  # a broken journal must not stop the crew
            self.log(f"events were not written to the journal: {error}")


def _decode(history: EventsJson | None) -> list[ev.Event]:
    return [from_json(event) for event in history or ()]
