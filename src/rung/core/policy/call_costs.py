"""Estimated cost of one call on another model: from the session's own usage and the price list, else from the policy."""

from __future__ import annotations

from typing import Final, NamedTuple

from rung.core.policy.spend_estimates import ModelPrice, estimated_tokens

ANSWER_TOKENS: Final = 1_000  # output of a call, where nothing is known about the session's answers


class SessionUsage(NamedTuple):
    """Calls and tokens of a session so far. `cached` of the input tokens were read from the provider's cache."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0

    def plus(self, other: SessionUsage) -> SessionUsage:
        """Return both together."""
        return SessionUsage(*(one + more for one, more in zip(self, other, strict=True)))

    def cost_per_call(self, price: ModelPrice) -> float:
        """Return the US dollars of an average call at this price."""
        fresh = self.tokens_in - self.cached
        cached_price = price.input if price.cached is None else price.cached
        return (fresh * price.input + self.cached * cached_price + self.tokens_out * price.output) / self.calls

    def describe(self) -> str:
        """Return the average call as text."""
        tokens_in, tokens_out = round(self.tokens_in / self.calls), round(self.tokens_out / self.calls)
        share = f" ({self.cached / self.tokens_in:.0%} of it cached)" if self.cached and self.tokens_in else ""
        return f"the session's average call of {tokens_in:,} input{share} and {tokens_out:,} output tokens"


class KnownModelCost(NamedTuple):
    """What is known about the cost of a model: its price, and the policy's expected cost of an attempt (0: unknown)."""

    name: str
    price: ModelPrice | None = None
    listed: float = 0.0


class CostEstimate(NamedTuple):
    """US dollars of one call on a model, and how much more that is than on the current one; None: unknown.

    `basis` says where the figures come from, or why there are none.
    """

    total: float | None
    difference: float | None
    basis: str


def estimate_call(
    usage: SessionUsage, mean_dollars: float, size: int, current: KnownModelCost, target: KnownModelCost
) -> CostEstimate:
    """Estimate a call on the target model.

    `mean_dollars`: what a call of the session has cost so far, 0 if unknown. `size`: bytes of the request, 0 if unknown.
    """
    if usage.calls and target.price is not None:
        total = usage.cost_per_call(target.price)
        now = usage.cost_per_call(current.price) if current.price is not None else mean_dollars or current.listed
        return _estimate(total, now, f"{usage.describe()}, at list prices")
    ratio = _ratio(current, target)
    if mean_dollars and ratio is not None:
        return _estimate(mean_dollars * ratio, mean_dollars, "the session's average cost, scaled by the models' prices")
    if target.listed:
        return _estimate(target.listed, current.listed or mean_dollars, "the policy's cost of an attempt")
    if size and target.price is not None:
        sent = SessionUsage(1, estimated_tokens(size), ANSWER_TOKENS)
        now = sent.cost_per_call(current.price) if current.price is not None else mean_dollars or current.listed
        basis = f"the size of the request and an answer of {ANSWER_TOKENS:,} tokens, at list prices"
        return _estimate(sent.cost_per_call(target.price), now, basis)
    if target.price is None:
        missing = f"the price of {target.name or 'the model'} is unknown: set its `cost` in the policy's models"
    else:
        missing = "no usage of this session is recorded"
    return CostEstimate(None, None, missing)


def _estimate(total: float, now: float, basis: str) -> CostEstimate:
    return CostEstimate(total, total - now if now else None, basis)


def _ratio(current: KnownModelCost, target: KnownModelCost) -> float | None:
    """Return how much dearer the target is: by the policy's costs, else by list prices, of which the larger ratio counts."""
    if current.name == target.name:
        return 1.0
    if current.listed and target.listed:
        return target.listed / current.listed
    one, other = current.price, target.price
    if one is None or other is None or not (one.input and one.output):
        return None
    return max(other.input / one.input, other.output / one.output)
