"""The journal as one project sees it: for whoever makes recoveries of several projects over one journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.store.backends.port import DurableFuture
    from rung.store.journal.journal import Journal


class ProjectJournal:
    """The engine's port, with another project than the journal's own."""

    def __init__(self, journal: Journal, project: str) -> None:
        self.project = project
        self._journal = journal

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None] | None:
        """Keep these events."""
        return self._journal.append(incident, first, events)

    def intervention(self, incident: str) -> Intervention | None:
        """What a person wants of it, unasked."""
        return self._journal.intervention(incident)

    def model_for(self, session: str) -> str:
        """The model a person has put a session on."""
        return self._journal.model_for(session)

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """The rung that helped before."""
        return self._journal.suggest_rung(project, failure)
