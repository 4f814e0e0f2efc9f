"""Estimated cost of one call on another model: from the session's own usage and the price list, else from the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.usage import Usage
from rung.core.policy.spend_estimates import estimated_tokens

if TYPE_CHECKING:
    from rung.core.policy.model_prices import ModelPrice

ANSWER_TOKENS: Final = 1_000  # output of a call, where nothing is known about the session's answers
_COLD_CACHE: Final = "the first call on another model reads nothing from a cache"
_SMALL_DOLLARS: Final = 0.05  # a cold cache that costs no more is not worth a wait on another model


class SessionUsage(NamedTuple):
    """Calls and tokens of a session so far.

    Of the input tokens, `cached` were read from the provider's cache and `written` were written to it, of these
    `written_1h` for an hour.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    written: int = 0
    written_1h: int = 0

    @classmethod
    def of(cls, usage: Usage) -> SessionUsage:
        """Return the usage of one call."""
        return cls(1, usage.prompt, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h)

    def plus(self, other: SessionUsage) -> SessionUsage:
        """Return both together."""
        return SessionUsage(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def cache_share(self) -> float | None:
        """Share of the input tokens that came from the cache, 0 to 1; None without input."""
        return self.cached / self.tokens_in if self.tokens_in > 0 else None

    def cost_per_call(self, price: ModelPrice) -> float:
        """Return the US dollars of an average call at this price, with the session's share from the cache."""
        return price.cost(self._mean_call(self.cached, self.written, self.written_1h))

    def cold_cost(self, price: ModelPrice) -> float:
        """Return the US dollars of an average call on a model whose cache has nothing of the session.

        What the session has in a cache is written to that of the model, if its provider charges for that.
        """
        if price.cache_write is None:
            return price.cost(self._mean_call(0, 0, 0))
        cacheable = self.cached + self.written
        hourly = cacheable * self.written_1h // self.written if self.written else 0
        return price.cost(self._mean_call(0, cacheable, hourly))

    def _mean_call(self, cached: int, written: int, written_1h: int) -> Usage:
        counts = (self.tokens_in - cached - written, self.tokens_out, cached, written, written_1h)
        fresh, output, read, write, hourly = (round(max(0, count) / self.calls) for count in counts)
        return Usage(input=fresh, output=output, cache_read=read, cache_write=write, cache_write_1h=hourly)

    def describe(self) -> str:
        """Return the average call as text."""
        tokens_in, tokens_out = round(self.tokens_in / self.calls), round(self.tokens_out / self.calls)
        share = f" ({self.cached / self.tokens_in:.0%} of it cached)" if self.cached and self.tokens_in else ""
        return f"the session's average call of {tokens_in:,} input{share} and {tokens_out:,} output tokens"

    def within(self, output_limit: int | None) -> SessionUsage:
        """Return the usage with answers no longer, on average, than a request's output limit."""
        if output_limit is None:
            return self
        return self._replace(tokens_out=min(self.tokens_out, output_limit * self.calls))


class RequestSize(NamedTuple):
    """Size of a request: its bytes, 0 if unknown, and its own limit of output tokens, None without one."""

    sent: int = 0
    output_limit: int | None = None

    def likely_usage(self) -> SessionUsage:
        """Return the usage of a call with this request, where nothing is known about the session's answers."""
        return SessionUsage(1, estimated_tokens(self.sent), ANSWER_TOKENS).within(self.output_limit)


class KnownModelCost(NamedTuple):
    """Cost of a model, as far as it is known: its price, and the policy's expected cost of an attempt (0: unknown)."""

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
    usage: SessionUsage, mean_dollars: float, size: RequestSize, current: KnownModelCost, target: KnownModelCost
) -> CostEstimate:
    """Estimate a call on the target model. No answer is longer than the request allows.

    `mean_dollars`: what a call of the session has cost so far, 0 if unknown.
    """
    usage = usage.within(size.output_limit)
    if usage.calls and target.price is not None:
        is_cold = current.name != target.name and usage.cached + usage.written > 0
        total = usage.cold_cost(target.price) if is_cold else usage.cost_per_call(target.price)
        now = usage.cost_per_call(current.price) if current.price is not None else mean_dollars or current.listed
        return _estimate(total, now, f"{usage.describe()}, at list prices{f'; {_COLD_CACHE}' if is_cold else ''}")
    ratio = _ratio(current, target)
    if mean_dollars and ratio is not None:
        return _estimate(mean_dollars * ratio, mean_dollars, "the session's average cost, scaled by the models' prices")
    if target.listed:
        return _estimate(target.listed, current.listed or mean_dollars, "the policy's cost of an attempt")
    if size.sent and target.price is not None:
        likely = size.likely_usage()
        now = likely.cost_per_call(current.price) if current.price is not None else mean_dollars or current.listed
        basis = f"the size of the request and an answer of {likely.tokens_out:,} tokens, at list prices"
        return _estimate(likely.cost_per_call(target.price), now, basis)
    if target.price is None:
        missing = f"the price of {target.name or 'the model'} is unknown: set its `cost` in the policy's models"
    else:
        missing = "no usage of this session is recorded"
    return CostEstimate(None, None, missing)


def returns_at_once(usage: SessionUsage, own: ModelPrice | None, fallback: ModelPrice | None) -> bool:
    """Whether a session on a fallback goes back to its own model as soon as that one works again.

    The own model has to read the conversation without its cache, while the fallback has it. That is worth it at once
    where the fallback costs more per call, where the cold cache costs little, and where nobody knows the costs.
    """
    if not usage.calls or own is None or fallback is None:
        return True
    here, there = usage.cost_per_call(fallback), usage.cost_per_call(own)
    return here > there or usage.cold_cost(own) - there <= _SMALL_DOLLARS


def _estimate(total: float, now: float, basis: str) -> CostEstimate:
    return CostEstimate(total, total - now if now else None, basis)


def _ratio(current: KnownModelCost, target: KnownModelCost) -> float | None:
    """Return how much more expensive the target is: by the policy's costs, else by list prices, of which the larger ratio counts."""
    if current.name == target.name:
        return 1.0
    if current.listed and target.listed:
        return target.listed / current.listed
    one, other = current.price, target.price
    if one is None or other is None or not (one.input and one.output):
        return None
    return max(other.input / one.input, other.output / one.output)
