"""Average call of a session: the estimate for a fallback to another model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.domain.usage import Usage
from rung.core.policy.call_costs import SessionUsage
from rung.core.policy.spend_estimates import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.model_prices import ModelPrice
    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest

_MAX_SESSIONS: Final = 10_000


class SessionAverages:
    """Tokens of sessions, in this process."""

    def __init__(self) -> None:
        self._totals: dict[str, SessionUsage] = {}

    def add(self, session: str, usage: Usage) -> None:
        """Count the tokens of a call."""
        if session:
            if len(self._totals) > _MAX_SESSIONS:
                self._totals.clear()
            self._totals[session] = self.of(session).plus(SessionUsage.of(usage))

    def of(self, session: str) -> SessionUsage:
        """Return the usage of a session in this process."""
        return self._totals.get(session, SessionUsage())

    def apply_to_policy(
        self, policy: Policy, inbound: InboundRequest, price: Callable[[str], ModelPrice | None]
    ) -> Policy:
        """Return the policy with the estimated cost of a call on each model that has none; 0 where it is unknown."""
        models = tuple(
            model if model.cost else replace(model, cost=self._estimate(inbound, price(model.name)))
            for model in policy.models
        )
        return policy.replace(models=models)

    def _estimate(self, inbound: InboundRequest, price: ModelPrice | None) -> float:
        """Estimate the US dollars of one call: the session's average, else this request's input alone.

        Nothing is read from the cache, on any model: the estimates are for a handover, and they are compared.
        """
        if price is None:
            return 0.0
        used = self.of(inbound.session)
        if not used.calls:
            return price.cost(Usage(input=len(inbound.body) // BYTES_PER_TOKEN))  # a lower bound: the output is unknown
        return used.cold_cost(price)
