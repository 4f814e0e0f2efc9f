"""Spending of the service: what it starts or orders is reserved in the journal, under the limits of the gateway's calls."""

from __future__ import annotations

import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.list_prices import fetch_list_prices
from rung.adapters.system.provider_client import MeteredAnswer
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.core.policy.purses import refusal
from rung.core.policy.spend_estimates import ModelPrice, token_bound
from rung.core.policy.spend_limits import SpendLimits, month_of
from rung.engine.attempt_api import report_cost
from rung.service.problems import ApiProblem
from rung.store import spend_holds
from rung.store.queries.spend import spend_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.core.policy.spend_limits import SpendLimit
    from rung.store.journal.journal import Journal

ATTEMPT_SECONDS: Final = 600.0  # a reservation outlives an attempt, but not for long the process that made it
ORDER_SECONDS: Final = 60.0  # until the process that carries out an order has reserved for itself
_MILLION: Final = 1_000_000
NO_PRICES: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType({})


class Spending:
    """Limits and prices: of the journal, else of the file's `[gateway]` table."""

    def __init__(
        self,
        journal: Journal,
        limits: SpendLimits | None = None,
        prices: Mapping[str, Mapping[str, float]] = NO_PRICES,
    ) -> None:
        self.journal = journal
        self._file_limits = limits
        self._prices: dict[str, ModelPrice | None] = {
            model: ModelPrice(price["input"] / _MILLION, price["output"] / _MILLION) for model, price in prices.items()
        }

    def limits_for(self, session: str, project: str) -> list[SpendLimit]:
        """Return the limits of a session's calls."""
        limits = spend_limits(self.journal, self._file_limits)
        return limits.limits_for(session, project, month_of(time.time()))

    def left(self, session: str, project: str) -> float | None:
        """Return the US dollars that a session may still reserve; None without a limit."""
        return spend_holds.left(self.journal, self.limits_for(session, project), time.time())

    def price(self, model: str) -> ModelPrice | None:
        """Return the price of a model; None if it is unknown. Looks up a list price once, blocking."""
        if model not in self._prices:
            self._prices[model] = fetch_list_prices([model]).get(model)
        return self._prices[model]

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
        self._limits = spending.limits_for(session, project)
        self._held = 0.0

    def reserve(self, request: Request) -> None:
        """Reserve the estimate of an attempt; raise a problem if a limit forbids it or the price is unknown."""
        if not self._limits:
            return
        estimate = self._estimate(request)
        if estimate is None:
            raise ApiProblem(
                409,
                f"the price of {request.model} is unknown, and this session has a spend limit: set its `cost` in the"
                " policy's models, or its price in [gateway.prices]",
            )
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
        price = self._spending.price(request.model)
        report_cost(price.cost(answer.tokens) if price is not None else self._listed_cost(request))
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
        size = len(json.dumps([request.prompt, list(request.messages)], default=str).encode())
        return price.cost(token_bound(dict(request.params), size, request.max_tokens, price))

    def _listed_cost(self, request: Request) -> float:
        """Return the expected cost of an attempt by the policy; 0 if it has none."""
        model = self._policy.model(request.model)
        return model.cost if model is not None else 0.0
