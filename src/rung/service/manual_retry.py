"""Manual retries: what a retry would do and cost, and the retry itself, checked against budgets and on record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain import events as ev
from rung.core.policy.policy import Confirm
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.service.api_problem import ApiProblem
from rung.service.replay import error_context, load_incident, original_request
from rung.service.retry_ways import agent_reason
from rung.service.spending import Quote
from rung.store.orders import order_recovery
from rung.store.queries import listing
from rung.store.queries.incidents import incident_to_retry
from rung.store.settings import record_audit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.incident import Incident
    from rung.core.policy.call_costs import CostEstimate
    from rung.core.policy.policy import Policy
    from rung.service.replay import Replayers
    from rung.service.retry_ways import RetryChoice
    from rung.store.journal.journal import Journal
    from rung.store.queries.listing_rows import SessionRow
    from rung.wiring.policies import PolicyStore


class PlannedRetry(NamedTuple):
    """A retry before it is made: what it costs, and whether a person must confirm that."""

    incident: Incident
    events: list[ev.Event]
    policy: Policy
    intervention: Intervention
    quote: Quote
    must_confirm: bool


class ManualRetries:
    """Retries of one journal that a person asks for."""

    def __init__(self, journal: Journal, policies: PolicyStore, replayers: Replayers) -> None:
        self.journal = journal
        self.policies = policies
        self.replayers = replayers

    def incident(self, session: str) -> tuple[Incident, list[ev.Event]]:
        """Return the incident to retry, with its events: the open one, else the last with a failure, else the last."""
        find_session(self.journal, session)
        incident = incident_to_retry(self.journal, session)
        if incident is None:
            raise ApiProblem(404, f"session {session!r} has no recorded incident")
        return load_incident(self.journal, incident)

    def plan(self, session: str, choice: RetryChoice, by: str) -> PlannedRetry:
        """Return the retry that a person asks for; raise a problem if a field is missing or a budget forbids it."""
        incident, events = self.incident(session)
        policy = self.policies.pick(incident.terms.project)
        intervention = retry_intervention(choice, error_context(incident, policy), by)
        row = find_session(self.journal, session)
        from_model, estimate = self.estimate(row, incident, policy, choice.model)
        to_model = choice.model or from_model
        left = self.check_budgets(incident, from_model, to_model, estimate)
        quote = Quote(from_model, to_model, estimate, left)
        must_confirm = _must_confirm(policy, from_model, to_model, estimate)
        return PlannedRetry(incident, events, policy, intervention, quote, must_confirm)

    def check_budgets(self, incident: Incident, here: str, there: str, estimate: CostEstimate) -> float | None:
        """Return the US dollars that are left, None without a limit; raise a problem if a budget forbids the retry."""
        other = there if there != here else ""
        return self.replayers.spending.check(
            incident.terms.session,
            incident.terms.project,
            other,
            estimate,
            by_gateway=self.replayers.is_gateway_call(incident),
        )

    def why_not(self, incident: Incident, choice: RetryChoice, here: str, estimate: CostEstimate) -> str:
        """Return why a retry would be refused: its call cannot be made, or a budget forbids it; empty if it is not."""
        why_not = agent_reason(incident) if incident.status is None else self.replayers.why_not(incident, choice)
        if why_not:
            return why_not
        try:
            self.check_budgets(incident, here, choice.model or here, estimate)
        except ApiProblem as problem:
            return problem.detail
        return ""

    def estimate(self, row: SessionRow, incident: Incident, policy: Policy, model: str) -> tuple[str, CostEstimate]:
        """Return the model that a retry begins on, and the estimate of the retry on this model (empty: on the same)."""
        request = original_request(incident)
        here = (request.model if request is not None else "") or row.model
        return here, self.replayers.spending.estimate(
            row, policy, here, model or here, self.replayers.size_of(incident)
        )

    def carry_out(self, planned: PlannedRetry, choice: RetryChoice) -> str:
        """Make the retry; return the id of its incident. An open incident goes on, an ended one is made again.

        An order that an open incident accepts is carried out, or answered with "too late" if the incident ends before.
        """
        incident, intervention, spending = planned.incident, planned.intervention, self.replayers.spending
        session, project = incident.terms.session, incident.terms.project
        is_ordered = incident.status is None
        if is_ordered:
            if reason := agent_reason(incident):
                raise ApiProblem(409, reason)  # nobody here would take the order
            if _is_asking(planned.events):
                raise ApiProblem(409, "the recovery waits for an answer to its question: answer it instead")
            spending.order(incident.id, session, project, planned.quote.estimate.total or 0.0)
            is_ordered = order_recovery(self.journal, incident.id, intervention, time.time())
        if is_ordered:
            name = incident.id
        else:
            ended, _ = load_incident(self.journal, incident.id)  # it may have ended since it was planned
            name = self.replayers.start(ended, intervention, planned.policy, choice)
        detail: dict[str, Any] = {
            "mode": choice.mode,
            "incident": incident.id,
            "model": intervention.model,
            **planned.quote.fields(),
            "reason": "manual",
        }
        again = {} if is_ordered else {"again": name}
        record_audit(self.journal, intervention.by, "retry", f"session/{session}", {**detail, **again})
        return name


def find_session(journal: Journal, session: str) -> SessionRow:
    """Return a session; raise a problem if there is none."""
    row = listing.session(journal, session)
    if row is None:
        raise ApiProblem(404, f"there is no session {session!r}")
    return row


def retry_intervention(choice: RetryChoice, context: str, by: str) -> Intervention:
    """Return the intervention of a manual retry."""
    if choice.mode == "model" and not choice.model:
        raise ApiProblem(422, "model: required in mode 'model'", field="model")
    if choice.mode == "prompt" and not choice.prompt:
        raise ApiProblem(422, "prompt: required in mode 'prompt'", field="prompt")
    text = {"plain": "", "context": choice.prompt or context}.get(choice.mode, choice.prompt)
    return Intervention(InterventionType.RETRY, by, choice.model, text)


def _is_asking(events: Sequence[ev.Event]) -> bool:
    """Return whether an open incident waits for the answer to a question."""
    last = next((event for event in reversed(events) if isinstance(event, ev.Decided)), None)
    is_answered = isinstance(events[-1], ev.AttemptFailed | ev.Answered)
    return last is not None and isinstance(last.decision, ev.Ask) and not is_answered


def _must_confirm(policy: Policy, here: str, there: str, estimate: CostEstimate) -> bool:
    """Return whether a person must have seen the estimate: another model that costs more, or may cost more."""
    if there == here or not there:
        return False
    return policy.confirm is Confirm.ALWAYS or estimate.difference is None or estimate.difference > 0
