"""What outlives one recovery: the model a session is on, and the rungs it may use only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain.ladder import RungScope
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.core.policy.policy import Sticky

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy


class Session:
    """Give the same session to each call of one agent session."""

    def __init__(self, model: str = "", id: str = "") -> None:  # noqa: A002  # what else to call it
        self.model = model
        self.id = id  # what the journal calls it
        self.used: dict[str, int] = {}

    def settle(self, incident: Incident, policy: Policy) -> None:
        """Take over what a closed incident leaves behind."""
        for index, tries in incident.tries_used.items():
            rung = policy.ladder.rungs[index]
            if rung.scope is RungScope.SESSION:
                self.used[rung.name] = self.used.get(rung.name, 0) + tries
        if incident.request is None or incident.status not in SUCCESS_STATUSES:
            return
        if policy.sticky is Sticky.SESSION:
            self.model = incident.request.model
