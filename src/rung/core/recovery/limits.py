"""Limits of an incident: its caps, and the time limits of attempts and rungs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.dollars import format_dollars
from rung.core.domain.events import HandOver

if TYPE_CHECKING:
    from rung.core.domain.events import Decision
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Rung
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy

_ROUNDING_DOLLARS: Final = 1e-9  # of sums of floats: three times 0.1 is more than 0.3


def exhausted_cap(incident: Incident, policy: Policy, now: float) -> str:
    """Return a message about the first cap of the incident that is reached; empty if none is."""
    attempts = policy.budget.attempts
    if attempts is not None and incident.attempts - incident.probes >= attempts:
        return f"the budget of {attempts} attempt{'s' * (attempts != 1)} is spent"
    if incident.deadline is not None and now >= incident.deadline:
        return "the deadline has passed"
    if incident.dollar_cap is not None and incident.dollars >= incident.dollar_cap:
        return f"the budget of {format_dollars(incident.dollar_cap)} is spent"
    return ""


def exceeds_budget(incident: Incident, price: float) -> bool:
    """Whether an attempt of this price would exceed the incident's cap in dollars."""
    cap = incident.dollar_cap
    return cap is not None and incident.dollars + price > cap + _ROUNDING_DOLLARS


def why_not_affordable(incident: Incident, policy: Policy, request: Request | None) -> str:
    """Return that an attempt on the request's model costs more than is left; empty if it does not, or no price is known."""
    model = None if request is None else policy.model(request.model)
    return "" if model is None else why_too_expensive(incident, model.name, model.cost or 0.0)


def why_too_expensive(incident: Incident, name: str, price: float) -> str:
    """Return that an attempt of this price costs more than is left; empty if it does not, or the price is unknown (0)."""
    if not price or not exceeds_budget(incident, price):
        return ""
    return f"{name} would cost {format_dollars(price)}, more than the remaining budget"


def why_not_chosen(incident: Incident, policy: Policy, decision: Decision) -> str:
    """Return that what a person has chosen costs more than is left: an answer does not raise the budget."""
    if isinstance(decision, HandOver):
        price = max(policy.ladder.rungs[decision.rung].cost, decision.estimate or 0.0)
        return why_too_expensive(incident, decision.model or decision.agent, price)
    return why_not_affordable(incident, policy, incident.request)


def seconds_left(incident: Incident, policy: Policy, now: float) -> float | None:
    """Return the time limit of the next attempt: the smallest of its own, its rung's and the incident's.

    A retry rung limits the waits before its retries, not the retried attempts.
    """
    limit = attempt_limit(policy, incident.deadline, now)
    if incident.rung >= 0:
        rung = policy.ladder.rungs[incident.rung]
        limit = remaining_rung_seconds(limit, rung, incident.entered_at[incident.rung], now)
    return None if limit is None else max(0.0, limit)


def attempt_limit(policy: Policy, deadline: float | None, now: float) -> float | None:
    """Return the time limit of an attempt, without those of rungs: the smaller of its own and the incident's."""
    limit = policy.attempt_seconds
    if deadline is None:
        return limit
    left = deadline - now
    return left if limit is None or left < limit else limit


def remaining_rung_seconds(limit: float | None, rung: Rung, since: float, now: float) -> float | None:
    """Return the smaller of a time limit and the time left on a rung."""
    if rung.seconds is None:
        return limit
    left = since + rung.seconds - now
    return left if limit is None or left < limit else limit


def has_timed_out(rung: Rung, since: float, now: float) -> bool:
    """Whether the time limit of a rung that was entered at `since` has passed."""
    return rung.seconds is not None and now >= since + rung.seconds
