"""The recovery of each task on the `crew` ladder. Its events are kept in the task's row and copied to the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rung.core.crew.error_triage import no_progress
from rung.core.domain import events as ev
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import RungScope
from rung.core.domain.request import Request
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.store.crew.rows import TaskRow

Story: TypeAlias = list[dict[str, Any]]  # the events of one recovery, as JSON


@dataclass(slots=True)
class TaskRecoveries:
    """Decides for tasks. The events it returns are written with the state they lead to, in one transaction."""

    policy: Policy
    now: Callable[[], float]
    journal: Any = None
    attended: bool = False
    say: Callable[[str], None] = lambda _: None

    def failed(self, task: TaskRow, failure: Failure) -> tuple[ev.Decision, Story]:
        """The decision after this error of the task's worker, and the events to store with it."""
        recovery = self._recovery(task)
        decision = recovery.failed(failure, close=False)
        return decision, [to_json(event) for event in recovery.events]

    def over(self, task: TaskRow, status: ev.Status, why: str) -> Story:
        """End the task's open incident, if there is one; the next begins with no events."""
        if task.history:
            recovery = self._recovery(task)
            if status is ev.Status.RECOVERED:
                recovery.succeeded()
            else:
                recovery.close(status, why)
        return []

    def stuck(self, task: TaskRow, failure: Failure) -> bool:
        """Whether two corrections were already made for this very error."""
        failures = Incident.of(_read(task.history)).failures
        return no_progress([*(one.fingerprint for one in failures), failure.fingerprint])

    def _recovery(self, task: TaskRow) -> ExternalRecovery:
        """The task's open incident, or a new one. The task is its session: earlier errors were tries on session rungs."""
        earlier = max(0, task.error_tries - 1)
        rungs = self.policy.ladder.rungs
        return ExternalRecovery(
            self.policy,
            request=Request(prompt=task.title or task.task_id, agent=task.worked_by or task.task_id),
            events=_read(task.history),
            journal=self,
            attended=self.attended,
            used=tuple((rung.name, earlier) for rung in rungs if earlier and rung.scope is RungScope.SESSION),
            now=self.now,
        )

    def append(self, incident: str, first: int, events: Sequence[ev.Event], /) -> None:
        """Copy events to the journal. A failure is only logged: the table is what counts, and may have been copied."""
        if self.journal is None:
            return
        try:
            self.journal.append(incident, first, tuple(events)).result()
        except Exception as error:  # noqa: BLE001  # whatever a journal raises, the crew goes on
            self.say(f"not kept in the journal: {error}")


def _read(story: Story | None) -> list[ev.Event]:
    return [from_json(table) for table in story or ()]
