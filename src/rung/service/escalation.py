"""Manual escalations: the estimate of another model for a session, and the switch to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from rung.core.policy.call_costs import RequestSize
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.service.api_problem import ApiProblem
from rung.service.manual_retry import find_session
from rung.service.replay import load_incident
from rung.service.spending import Quote
from rung.store.orders import order_recovery
from rung.store.queries.incidents import incident_to_retry, open_incidents
from rung.store.settings import record_audit

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy
    from rung.service.replay import Replayers
    from rung.store.journal.journal import Journal
    from rung.wiring.policies import PolicyStore


class PlannedEscalation(NamedTuple):
    """A switch of a session to another model before it is made, with the estimate of its next call."""

    session: str
    project: str
    quote: Quote


class ManualEscalations:
    """Escalations of one journal that a person asks for."""

    def __init__(self, journal: Journal, policies: PolicyStore, replayers: Replayers) -> None:
        self.journal = journal
        self.policies = policies
        self._replayers = replayers

    def plan(self, session: str, to_model: str) -> PlannedEscalation:
        """Return the switch to a model, by default the next one of the policy; raise a problem if a budget forbids it."""
        row = find_session(self.journal, session)
        policy = self.policies.pick(row.project)
        to = to_model or _next_model(policy, row.model)
        replayers, last = self._replayers, self._last_incident(session)
        size = RequestSize() if last is None else replayers.size_of(last)
        estimate = replayers.spending.estimate(row, policy, row.model, to, size)
        by_gateway = last is not None and replayers.is_gateway_call(last)
        left = replayers.spending.check(session, row.project, to, estimate, by_gateway=by_gateway)
        return PlannedEscalation(session, row.project, Quote(row.model, to, estimate, left))

    def carry_out(self, planned: PlannedEscalation, by: str) -> None:
        """Switch the session from its next call; open recoveries go on at once with the new model."""
        session, to = planned.session, planned.quote.to_model
        self._replayers.spending.order(session, session, planned.project, planned.quote.estimate.total or 0.0)
        self.journal.runs.send(f"model/{session}", {"model": to, "by": by, "at": time.time()})
        for incident in open_incidents(self.journal, session):
            order = Intervention(InterventionType.RETRY, by, to)
            order_recovery(self.journal, incident, order, time.time())  # one that has ended needs none
        detail = {**planned.quote.fields(), "reason": "manual"}
        record_audit(self.journal, by, "escalate", f"session/{session}", detail)

    def _last_incident(self, session: str) -> Incident | None:
        """Return the incident of the session's last request; None if none is recorded."""
        name = incident_to_retry(self.journal, session)
        return None if name is None else load_incident(self.journal, name)[0]


def _next_model(policy: Policy, model: str) -> str:
    place = policy.rank(model) + 1
    if place >= len(policy.models):
        known = ", ".join(one.name for one in policy.models) or "none"
        raise ApiProblem(409, f"there is no model above {model or 'the current one'}; the policy's models are: {known}")
    return str(policy.models[place].name)
