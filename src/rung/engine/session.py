"""Session state that outlives one recovery: models that were handed over, and the tries of per-session rungs."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from rung.core.domain.events import HandOver
from rung.core.domain.ladder import RungScope
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.core.policy.policy import Sticky

if TYPE_CHECKING:
    from rung.core.domain.events import Decision
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Rung
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy

    Target = tuple[str, str]  # model and agent


class Session:
    """State shared by the recoveries of one agent session. Pass the same object to each call, also to concurrent ones.

    A request with a model of its own keeps it, unless the session was handed over from that model and the policy is sticky.

    Args:
        model: Model of requests that name none. Default: none.
        id: Id of the session in the journal. Default: none.

    Example:
        >>> import rung
        >>> session = rung.Session(model="small")
        >>> rung.recover_sync(lambda request: request.model, "go", session=session).value
        'small'
    """

    def __init__(self, model: str = "", id: str = "") -> None:  # noqa: A002  # the public name of the argument
        self.model = model
        self.id = id  # the session id in the journal
        self.tries_used: dict[str, int] = {}
        self.lock = RLock()
        self._handovers: dict[Target, Target] = {}  # by the target of the first request
        self._targets: dict[Target, Target] = {}  # where later calls begin

    def first_request(self, request: Request) -> Request:
        """Return the request of a call's first attempt: on the model and agent that the session stays on.

        Args:
            request: The request as the caller made it.
        """
        if not request.model and self.model:
            request = request.replace(model=self.model)
        kept = self._targets.get((request.model, request.agent))
        return request if kept is None else request.replace(model=kept[0], agent=kept[1])

    def target_of(self, incident: Incident) -> Target | None:
        """Return the target that other calls were handed over to from this call's first one; None if there is no news.

        Args:
            incident: The incident of the call.
        """
        first = incident.first_request
        target = None if first is None else self._handovers.get((first.model, first.agent))
        if target is None or target == incident.session_target:
            return None
        return None if target[0] in incident.models and target[1] in incident.agents else target

    def record_try(self, incident: Incident, decision: Decision, rung: Rung) -> None:
        """Count a try of a per-session rung, when it is decided. To follow the session to its model is none.

        Args:
            incident: The incident of the call.
            decision: The decision that takes the rung.
            rung: The rung.
        """
        if rung.scope is not RungScope.SESSION:
            return
        with self.lock:
            first = incident.first_request
            if isinstance(decision, HandOver) and first is not None:
                here, target = (first.model, first.agent), (decision.model, decision.agent)
                if self._handovers.get(here) == target:
                    return
                self._handovers[here] = target
            self.tries_used[rung.name] = self.tries_used.get(rung.name, 0) + 1

    def record_closed(self, incident: Incident, policy: Policy) -> None:
        """Stay on the model and agent of a successful incident if the policy says so.

        Args:
            incident: The incident, which has ended.
            policy: Its policy.
        """
        first, last = incident.first_request, incident.request
        if first is None or last is None or incident.status not in SUCCESS_STATUSES:
            return
        here, target = (first.model, first.agent), (last.model, last.agent)
        if policy.sticky is not Sticky.SESSION or here == target:
            return
        with self.lock:
            self._targets[here] = target
            if self.model in ("", first.model):
                self.model = last.model
