"""Spend tracking: model prices, spend per key, session, project and month, and budget checks before each request.

Spend is the journal's total plus what was added since, so that it matches the service and survives a restart.
Without a journal it is what this process has counted.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.spend_limits import ALERT_PERCENTS, SpendLimit, SpendLimits, month_of
from rung.gateway.keys import RequestRejected
from rung.store.queries.spend import charge_keys, spend_limits, spent_by_keys, spent_by_sessions, spent_in_month

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings

_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000
CHARACTERS_PER_TOKEN: Final = 4
_MAX_TRACKED: Final = 10_000
_MAX_PRICE_LOOKUPS: Final = 200  # bounds lookups for clients that send invented model names
_SESSION_PREFIX: Final = "budget/session/"


class ModelPrice(NamedTuple):
    """US dollars per input token and per output token."""

    input: float
    output: float


class SpendTotals(NamedTuple):
    """Calls and tokens of one session so far."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class SpendLedger:
    """Spend by key, session, project and month."""

    def __init__(self, log: Callable[[str], object] = print, journal: Any = None) -> None:
        self.limits = SpendLimits()
        self.spent: OrderedDict[str, float] = OrderedDict()  # by the id of a spend limit, or by the hash of a key
        self._journal = journal
        self._session_totals: dict[str, SpendTotals] = {}
        self._prices: dict[str, ModelPrice | None] = {}
        self._reported_alerts: set[tuple[str, int]] = set()
        self._charges: dict[str, float] = {}  # by key hash, not yet in the journal
        self._log = log
        self._hour, self._month = -1, ""
        self.pending_prices: set[str] = set()  # models whose price the background loop looks up
        self._requested_prices: set[str] = set()

    # -- prices ------------------------------------------------------------------------------------------

    def price(self, model: str, overrides: Mapping[str, Mapping[str, float]]) -> ModelPrice | None:
        """Return the price of a model; None if unknown, and then schedule a lookup."""
        if model not in self._prices:
            override = overrides.get(model)
            if override is None:
                if model and len(self._requested_prices) < _MAX_PRICE_LOOKUPS and model not in self._requested_prices:
                    self._requested_prices.add(model)
                    self.pending_prices.add(model)
                return None
            self._prices[model] = ModelPrice(override["input"] / _MILLION, override["output"] / _MILLION)
        return self._prices[model]

    async def fetch_prices(self) -> None:
        """Look up the pending prices."""
        models, self.pending_prices = sorted(self.pending_prices), set()
        if models:
            for model, listed in (await asyncio.to_thread(_fetch_listed_prices, models)).items():
                self._prices[model] = None if listed is None else ModelPrice(*listed)

    def clear_prices(self) -> None:
        """Drop cached prices after the overrides may have changed."""
        self._prices.clear()
        self._requested_prices.clear()

    # -- journal -----------------------------------------------------------------------------------------

    def refresh(self, settings: GatewaySettings, now: float) -> None:
        """Reload limits and the spend of all processes that share the journal. Blocks on the journal."""
        if self._journal is None:
            self.limits = settings.budgets
            return
        self.flush(now)
        if settings.keys:
            for key, dollars in spent_by_keys(self._journal).items():
                self._apply_recorded(key, dollars)
        self.limits = limits = spend_limits(self._journal, settings.budgets)
        if not limits.has_limits:
            return
        by_project, month = spent_in_month(self._journal, now), month_of(now)
        for project, dollars in by_project.items():
            self._apply_recorded(f"budget/project/{project}/{month}", dollars)
        self._apply_recorded(f"budget/month/{month}", sum(by_project.values()))
        if limits.session is not None:
            sessions = [name.removeprefix(_SESSION_PREFIX) for name in self.spent if name.startswith(_SESSION_PREFIX)]
            for session, dollars in spent_by_sessions(self._journal, sessions[-100:]).items():
                self._apply_recorded(_SESSION_PREFIX + session, dollars)

    def flush(self, now: float) -> None:
        """Write the spend of keys since the last flush to the journal."""
        charges, self._charges = self._charges, {}
        if charges and self._journal is not None:
            charge_keys(self._journal, charges, now)

    async def load_session(self, inbound: InboundRequest) -> None:
        """Load the earlier spend of a request's session when this process first sees the session."""
        name = _SESSION_PREFIX + inbound.session
        if self.limits.session is None or not inbound.session or name in self.spent:
            return
        before = 0.0
        if self._journal is not None:
            before = (await asyncio.to_thread(spent_by_sessions, self._journal, [inbound.session]))[inbound.session]
        self._apply_recorded(name, before)
        while len(self.spent) > _MAX_TRACKED:
            self.spent.popitem(last=False)

    def _apply_recorded(self, name: str, dollars: float) -> None:
        """Apply a total from the journal; it may lag behind this process, so keep the larger one."""
        is_new = name not in self.spent
        self.spent[name] = max(dollars, self.spent.get(name, 0.0))
        if is_new:  # thresholds reached before a restart were already reported
            limit = next((spend_limit.limit for spend_limit in self._limits_named(name) if spend_limit.id == name), 0.0)
            self._reported_alerts.update(
                (name, percent) for percent in ALERT_PERCENTS if limit and 100 * dollars >= percent * limit
            )

    def _limits_named(self, name: str) -> list[SpendLimit]:
        scope, _, rest = name.removeprefix("budget/").partition("/")
        project, _, month = rest.rpartition("/")
        return self.limits.limits_for(rest if scope == "session" else "", project, month)

    # -- counting and checking ---------------------------------------------------------------------------

    def add(
        self, inbound: InboundRequest, model: str, tokens: tuple[int, int], settings: GatewaySettings, now: float
    ) -> float:
        """Add the tokens of a response; return their cost in US dollars."""
        session = inbound.session
        if session:
            if len(self._session_totals) > _MAX_TRACKED:
                self._session_totals.clear()
            before = self._session_totals.get(session, SpendTotals())
            self._session_totals[session] = SpendTotals(
                before.calls + 1, before.tokens_in + tokens[0], before.tokens_out + tokens[1]
            )
        price = self.price(model, settings.prices)
        if price is None:
            return 0.0
        dollars = tokens[0] * price.input + tokens[1] * price.output
        if self.limits.has_limits:
            for spend_limit in self._limits_for(inbound, now):
                self.spent[spend_limit.id] = self.spent.get(spend_limit.id, 0.0) + dollars
                self._alert(spend_limit)
        if inbound.key_hash:
            self.spent[inbound.key_hash] = self.spent.get(inbound.key_hash, 0.0) + dollars
            self._charges[inbound.key_hash] = self._charges.get(inbound.key_hash, 0.0) + dollars
        return dollars

    def check(self, inbound: InboundRequest, now: float) -> None:
        """Reject a request whose spend limit is exhausted."""
        for spend_limit in self._limits_for(inbound, now):
            if self.spent.get(spend_limit.id, 0.0) >= spend_limit.limit:
                raise RequestRejected(
                    429, f"budget of ${spend_limit.limit:.2f} for this {spend_limit.scope} is spent (spend limit)"
                )

    def apply_to_policy(self, policy: Policy, inbound: InboundRequest, settings: GatewaySettings, now: float) -> Policy:
        """Return the policy with the remaining budget as its cap and the estimated cost of a call on each model."""
        remaining = [
            spend_limit.limit - self.spent.get(spend_limit.id, 0.0) for spend_limit in self._limits_for(inbound, now)
        ]
        remaining += [amount for amount in (inbound.dollars_left, policy.budget.dollars) if amount is not None]
        models = tuple(
            model if model.cost else replace(model, cost=self.estimate(inbound, model.name, settings))
            for model in policy.models
        )
        budget = replace(policy.budget, dollars=max(0.0, min(remaining))) if remaining else policy.budget
        return policy.replace(models=models, budget=budget)

    def estimate(self, inbound: InboundRequest, model: str, settings: GatewaySettings) -> float:
        """Estimate the US dollars of one call on a model: the session's average, else this request's input alone."""
        price = self.price(model, settings.prices)
        if price is None:
            return 0.0
        totals = self._session_totals.get(inbound.session, SpendTotals())
        if not totals.calls:
            return len(inbound.body) / CHARACTERS_PER_TOKEN * price.input  # a lower bound: output length is unknown
        return (totals.tokens_in * price.input + totals.tokens_out * price.output) / totals.calls

    def _limits_for(self, inbound: InboundRequest, now: float) -> list[SpendLimit]:
        hour = int(now // 3_600)
        if self._hour != hour:
            self._hour, self._month = hour, month_of(now)
        return self.limits.limits_for(inbound.session, inbound.project, self._month)

    def _alert(self, spend_limit: SpendLimit) -> None:
        for percent in ALERT_PERCENTS:
            if (
                100 * self.spent[spend_limit.id] >= percent * spend_limit.limit
                and (spend_limit.id, percent) not in self._reported_alerts
            ):
                self._reported_alerts.add((spend_limit.id, percent))
                what = f"{spend_limit.scope} {spend_limit.name}".strip()
                self._log(f"rung gateway: {what} budget: {percent} % of ${spend_limit.limit:.2f} spent")


def _fetch_listed_prices(models: list[str]) -> dict[str, list[float] | None]:
    """Read list prices in a subprocess, because loading the price list takes 30 MB of memory."""
    command = [sys.executable, "-P", "-m", __name__, *models]
    process = subprocess.run(command, capture_output=True, check=False, timeout=60)  # noqa: S603  # runs this module
    listed: dict[str, list[float] | None] = json.loads(process.stdout) if process.returncode == 0 else {}
    return listed


def listed_price(model: str) -> ModelPrice | None:
    """Return the list price of a model from the `genai-prices` package; None if it has none."""
    try:
        from genai_prices import Usage, calc_price

        listed = calc_price(Usage(input_tokens=_THOUSAND, output_tokens=_THOUSAND), model)
    except (ImportError, LookupError):
        return None
    return ModelPrice(float(listed.input_price) / _THOUSAND, float(listed.output_price) / _THOUSAND)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({model: listed_price(model) for model in sys.argv[1:]}))
