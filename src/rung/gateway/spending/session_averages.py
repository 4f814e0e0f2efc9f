"""Average cost of a session's calls: the estimate for a fallback to another model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.policy.spend_estimates import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.core.policy.spend_estimates import ModelPrice
    from rung.gateway.inbound_request import InboundRequest

_MAX_SESSIONS: Final = 10_000


class SpendTotals(NamedTuple):
    """Calls and tokens of one session so far."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class SessionAverages:
    """Tokens of sessions, in this process."""

    def __init__(self) -> None:
        self._totals: dict[str, SpendTotals] = {}

    def add(self, session: str, tokens: tuple[int, int]) -> None:
        """Count the tokens of a call."""
        if session:
            if len(self._totals) > _MAX_SESSIONS:
                self._totals.clear()
            before = self._totals.get(session, SpendTotals())
            self._totals[session] = SpendTotals(
                before.calls + 1, before.tokens_in + tokens[0], before.tokens_out + tokens[1]
            )

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
        """Estimate the US dollars of one call: the session's average, else this request's input alone."""
        if price is None:
            return 0.0
        totals = self._totals.get(inbound.session, SpendTotals())
        if not totals.calls:
            return len(inbound.body) / BYTES_PER_TOKEN * price.input  # a lower bound: output length is unknown
        return (totals.tokens_in * price.input + totals.tokens_out * price.output) / totals.calls
