"""Journal scoped to one project, for processes that run recoveries of several projects over one journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount
    from rung.store.backends.port import DurableFuture
    from rung.store.journal.journal import Journal


class ProjectJournal:
    """Event log of the engine with another project than the journal's own, and with the models it may choose."""

    def __init__(
        self, journal: Journal, project: str, models: Sequence[str] = (), chosen_model: str | None = None
    ) -> None:
        self.project = project
        self._journal = journal
        self._models = models  # empty: all
        self._chosen_model = chosen_model  # the operator's choice for the session, if it was just read

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None] | None:
        """Append events to an incident, starting at position `first`."""
        return self._journal.append(incident, first, events)

    def intervention(self, incident: str) -> Intervention | None:
        """Return a pending operator intervention for an incident."""
        return self._journal.intervention(incident)

    def last_intervention(self, incident: str) -> DurableFuture[Intervention | None]:
        """Return an operator intervention for an incident that would end now."""
        return self._journal.last_intervention(incident)

    def model_for(self, session: str) -> str:
        """Return the model that an operator chose for a session; empty when there is none, or it is not allowed."""
        model = self._journal.model_for(session) if self._chosen_model is None else self._chosen_model
        return model if not self._models or model in self._models else ""

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Return the rung that resolved this failure before."""
        return self._journal.suggest_rung(project, failure)

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return how often the ladder's rungs helped."""
        return self._journal.rung_counts(project, ladder, window, now)
