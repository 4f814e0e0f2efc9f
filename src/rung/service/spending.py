"""Spending of the service: what it starts or orders is reserved in the journal, under the limits of the gateway's calls."""

from __future__ import annotations

import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.adapters.system.list_prices import fetch_list_prices
from rung.adapters.system.provider_client import MeteredAnswer
from rung.core.domain.dollars import format_dollars
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.core.domain.usage import Usage
from rung.core.policy.call_costs import KnownModelCost, SessionUsage, estimate_call
from rung.core.policy.model_prices import price_per_million
from rung.core.policy.purses import refusal
from rung.core.policy.spend_estimates import estimated_tokens, token_bound
from rung.core.policy.spend_limits import SpendLimit, SpendLimits, month_of
from rung.engine.attempt_api import report_cost
from rung.service.api_problem import ApiProblem
from rung.store import spend_holds
from rung.store.queries.spend import spend_limits
from rung.store.session_usage import add_usage, session_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.request import Request
    from rung.core.policy.call_costs import CostEstimate, RequestSize
    from rung.core.policy.model_prices import ModelPrice
    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal
    from rung.store.queries.listing_rows import SessionRow

ATTEMPT_SECONDS: Final = 600.0  # a reservation outlives an attempt, but not for long the process that made it
ORDER_SECONDS: Final = 60.0  # until the process that carries out an order has reserved for itself
NO_PRICES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
NO_KEYS: Final[Mapping[str, float]] = MappingProxyType({})
KEY_DIGITS: Final = 12  # of a key's hash, in the names of its sessions
_HEX_DIGITS: Final = frozenset("0123456789abcdef")


class Spending:
    """Limits and prices: of the journal, else of the file's `[gateway]` table."""

    def __init__(
        self,
        journal: Journal,
        limits: SpendLimits | None = None,
        prices: Mapping[str, Mapping[str, Any]] = NO_PRICES,
        keys: Mapping[str, float] = NO_KEYS,
    ) -> None:
        self.journal = journal
        self._file_limits = limits
        self._keys = keys  # spend limits of the gateway's keys, by hash
        self._prices: dict[str, ModelPrice | None] = {
            model: price_per_million(price) for model, price in prices.items()
        }

    def limits_for(self, session: str, project: str) -> list[SpendLimit]:
        """Return the limits of a session's calls."""
        limits = spend_limits(self.journal, self._file_limits)
        key = key_of_session(session)
        of_key = [
            SpendLimit("key", "", dollars, name) for name, dollars in self._keys.items() if name[: len(key)] == key
        ]
        return [*(of_key if key else ()), *limits.limits_for(session, project, month_of(time.time()))]

    def left(self, session: str, project: str) -> float | None:
        """Return the US dollars that a session may still reserve; None without a limit."""
        return spend_holds.left(self.journal, self.limits_for(session, project), time.time())

    def price(self, model: str) -> ModelPrice | None:
        """Return the price of a model; None if it is unknown. Looks up a list price once, blocking.

        A lookup that fails is made again for the next call.
        """
        if model not in self._prices:
            self._prices.update(fetch_list_prices([model]))
        return self._prices.get(model)

    def estimate(self, row: SessionRow, policy: Policy, here: str, there: str, size: RequestSize) -> CostEstimate:
        """Estimate a call of a session on another model than the one it is on `here`. May block for a list price."""
        usage = session_usage(self.journal, row.id)
        successes = row.attempts - row.failures
        mean = row.dollars / (successes if successes > 0 else row.attempts) if row.attempts else 0.0
        return estimate_call(usage, mean, size, self._model_cost(policy, here), self._model_cost(policy, there))

    def _model_cost(self, policy: Policy, name: str) -> KnownModelCost:
        listed = policy.model(name)
        return KnownModelCost(name, self.price(name) if name else None, listed.cost if listed is not None else 0.0)

    def check(
        self, session: str, project: str, model: str, estimate: CostEstimate, *, by_gateway: bool = False
    ) -> float | None:
        """Return the US dollars that a session may still spend, None without a limit; refuse a call if nothing is left.

        `model`: another one than the session's own, which must fit into what is left; empty for its own. `by_gateway`:
        the gateway makes the call, and accepts a price only: the policy's cost of an attempt does not replace it.
        """
        limits, now = self.limits_for(session, project), time.time()
        refused = spend_holds.refusing(self.journal, limits, now)
        if refused is not None:
            raise ApiProblem(409, refusal(refused.limit, refused.left, now))
        left = spend_holds.left(self.journal, limits, now)
        if left is None or not model:
            return left
        if (by_gateway or estimate.total is None) and self.price(model) is None:
            raise unknown_price(model, by_gateway=by_gateway)
        if estimate.total is not None and estimate.total > left:
            raise ApiProblem(
                409,
                f"{model} costs about {format_dollars(estimate.total)} per attempt; the remaining budget is {format_dollars(left)}",
            )
        return left

    def order(self, name: str, session: str, project: str, dollars: float) -> None:
        """Reserve the estimate of an attempt that another process is ordered to make, until it reserves for itself."""
        limits = self.limits_for(session, project)
        if limits:
            self.hold(f"order-{name}", limits, dollars, dollars, ORDER_SECONDS)

    def hold(self, holder: str, limits: Sequence[SpendLimit], dollars: float, more: float, seconds: float) -> None:
        """Raise what a holder has reserved by `more`, to `dollars`; raise a problem if a limit forbids it."""
        now = time.time()
        held = {limit.id: dollars for limit in limits}
        refused = spend_holds.reserve(self.journal, holder, lambda: held, limits, more, now, seconds)
        if refused is not None:
            raise ApiProblem(409, refusal(refused.limit, refused.left, now))


class PaidReplay:
    """Attempts of one replay. Each reserves its estimate before it is made; its cost is part of its incident."""

    def __init__(
        self,
        spending: Spending,
        replayer: Callable[[Request], Any],
        name: str,
        policy: Policy,
        session: str,
        project: str,
    ) -> None:
        self._spending = spending
        self._replayer = replayer
        self._holder = f"replay-{name}"
        self._policy = policy
        self._session = session
        self._limits = spending.limits_for(session, project)
        self._held = 0.0

    def reserve(self, request: Request) -> None:
        """Reserve the estimate of an attempt; raise a problem if a limit forbids it or the price is unknown."""
        if not self._limits:
            return
        estimate = self._estimate(request)
        if estimate is None:
            raise unknown_price(request.model)
        if estimate > self._held or not self._held:
            held = max(estimate, self._held)
            self._spending.hold(self._holder, self._limits, held, held - self._held, ATTEMPT_SECONDS)
            self._held = held

    def __call__(self, request: Request) -> Any:
        """Make an attempt and report its cost."""
        try:
            self.reserve(request)
        except ApiProblem as problem:
            raise AttemptError(problem.detail, finding=Kind.BUDGET_EXHAUSTED) from None
        try:
            answer = self._replayer(request)
        except TimeoutError:  # given up while the provider worked: it may complete the answer and charge it
            report_cost(self._estimate(request) or 0.0)
            raise
        if not isinstance(answer, MeteredAnswer):
            return answer  # such a client reports its cost itself, as every attempt does
        usage = (
            answer.usage if answer.usage.prompt or answer.usage.output else self._estimated_usage(request, answer.text)
        )
        price = self._spending.price(request.model)
        report_cost(price.cost(usage) if price is not None else self._listed_cost(request))
        used = SessionUsage.of(usage)
        add_usage(self._spending.journal, {self._session: used} if self._session else {}, time.time())
        return answer.text

    def release(self) -> None:
        """End the replay: its cost is in the journal, so what it reserved is free again."""
        self._spending.journal.flush()
        if self._held:
            spend_holds.release(self._spending.journal, self._holder)

    def _estimate(self, request: Request) -> float | None:
        listed = self._listed_cost(request)
        price = None if listed else self._spending.price(request.model)
        if price is None:
            return listed or None
        return price.highest_cost(token_bound(dict(request.params), _size(request), request.max_tokens, price))

    @staticmethod
    def _estimated_usage(request: Request, answer: str) -> Usage:
        """Estimate the tokens of an attempt whose provider reports none."""
        return Usage(input=estimated_tokens(_size(request)), output=estimated_tokens(len(answer.encode())))

    def _listed_cost(self, request: Request) -> float:
        """Return the expected cost of an attempt by the policy; 0 if it has none."""
        model = self._policy.model(request.model)
        return model.cost if model is not None else 0.0


class Quote(NamedTuple):
    """Quote that a person confirms: the models, the estimate of one call, and what is left of the budget."""

    from_model: str
    to_model: str
    estimate: CostEstimate
    budget_left: float | None

    def fields(self) -> dict[str, Any]:
        """Return it as the fields of an answer."""
        return {
            "from_model": self.from_model,
            "to_model": self.to_model,
            "cost_estimate": self.estimate.total,
            "cost_difference": self.estimate.difference,
            "estimate_basis": self.estimate.basis,
            "budget_left": self.budget_left,
        }


def unknown_price(model: str, *, by_gateway: bool = False) -> ApiProblem:
    """Return the problem of a call under a spend limit whose cost nobody knows."""
    price = f"`input` and `output` (US dollars for a million tokens, 0 if it is free) in [gateway.prices.{model!r}]"
    what = f"set {price}" if by_gateway else f"set its `cost` in the policy's models, or {price}"
    return ApiProblem(409, f"the price of {model} is unknown, and this session has a spend limit: {what}")


def key_of_session(session: str) -> str:
    """Return the beginning of the gateway key's hash that a session's name begins with; empty if it has none."""
    key, separator, _ = session.partition("/")
    return key if separator and len(key) == KEY_DIGITS and set(key) <= _HEX_DIGITS else ""


def _size(request: Request) -> int:
    return len(json.dumps([request.prompt, list(request.messages)], default=str).encode())
