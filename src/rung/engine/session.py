"""Session state that outlives one recovery: the current model, and the tries of per-session rungs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain.ladder import RungScope
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.core.policy.policy import Sticky

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy


class Session:
    """State shared by the recoveries of one agent session. Pass the same object to each call."""

    def __init__(self, model: str = "", id: str = "") -> None:  # noqa: A002  # the public name of the argument
        self.model = model
        self.id = id  # the session id in the journal
        self.tries_used: dict[str, int] = {}

    def record_closed(self, incident: Incident, policy: Policy) -> None:
        """Add the per-session tries of a closed incident, and keep its model if the policy says so."""
        for index, tries in incident.tries_used.items():
            rung = policy.ladder.rungs[index]
            if rung.scope is RungScope.SESSION:
                self.tries_used[rung.name] = self.tries_used.get(rung.name, 0) + tries
        if incident.request is None or incident.status not in SUCCESS_STATUSES:
            return
        if policy.sticky is Sticky.SESSION:
            self.model = incident.request.model
