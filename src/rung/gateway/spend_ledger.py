"""What tokens cost and what is left to spend: prices looked up once per model, budgets checked before, not after.

What was spent is what the journal says, and what has been added since: the same numbers as the service shows, after a
restart, too. Without a journal it is what this process has counted.
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
_KNOWN_LIMIT: Final = 10_000
_ASKED_LIMIT: Final = 200  # models whose price is looked up: whoever makes names up is not followed
_SESSION: Final = "budget/session/"


class ModelPrice(NamedTuple):
    """US dollars for one token in and one out."""

    input: float
    output: float


class SpendTotals(NamedTuple):
    """What one session has used so far."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class SpendLedger:
    """Who has spent what: by key, session, project and month."""

    def __init__(self, tell: Callable[[str], object] = print, journal: Any = None) -> None:
        self.allowance = SpendLimits()
        self.spent: OrderedDict[str, float] = OrderedDict()  # by the id of a purse, and by the hash of a key
        self._journal = journal
        self._history: dict[str, SpendTotals] = {}
        self._prices: dict[str, ModelPrice | None] = {}
        self._alerted: set[tuple[str, int]] = set()
        self._charges: dict[str, float] = {}  # of keys, not written down yet
        self._tell = tell
        self._hour, self._named = -1, ""
        self.wanted: set[str] = set()  # models whose price is to be looked up
        self._asked: set[str] = set()

    # -- prices ------------------------------------------------------------------------------------------

    def price(self, model: str, overrides: Mapping[str, Mapping[str, float]]) -> ModelPrice | None:
        """What a model costs; None when nobody knows."""
        if model not in self._prices:
            own = overrides.get(model)
            if own is None:
                if model and len(self._asked) < _ASKED_LIMIT and model not in self._asked:
                    self._asked.add(model)
                    self.wanted.add(model)
                return None
            self._prices[model] = ModelPrice(own["input"] / _MILLION, own["output"] / _MILLION)
        return self._prices[model]

    async def look_up(self) -> None:
        """Look up the prices that were wanted and are not known."""
        models, self.wanted = sorted(self.wanted), set()
        if models:
            for model, found in (await asyncio.to_thread(_listed, models)).items():
                self._prices[model] = None if found is None else ModelPrice(*found)

    def forget_prices(self) -> None:
        """The overrides may have changed."""
        self._prices.clear()
        self._asked.clear()

    # -- what the journal says ---------------------------------------------------------------------------

    def read(self, settings: GatewaySettings, now: float) -> None:
        """Take up what people have set and what was spent by whoever writes to the same journal. Waits for it."""
        if self._journal is None:
            self.allowance = settings.budgets
            return
        self.flush(now)
        if settings.keys:
            for key, dollars in spent_by_keys(self._journal).items():
                self._known(key, dollars)
        self.allowance = limits = spend_limits(self._journal, settings.budgets)
        if not limits.has_limits:
            return
        by_project, month = spent_in_month(self._journal, now), month_of(now)
        for project, dollars in by_project.items():
            self._known(f"budget/project/{project}/{month}", dollars)
        self._known(f"budget/month/{month}", sum(by_project.values()))
        if limits.session is not None:
            sessions = [name.removeprefix(_SESSION) for name in self.spent if name.startswith(_SESSION)]
            for session, dollars in spent_by_sessions(self._journal, sessions[-100:]).items():
                self._known(_SESSION + session, dollars)

    def flush(self, now: float) -> None:
        """Write down what keys have spent since the last time."""
        charges, self._charges = self._charges, {}
        if charges and self._journal is not None:
            charge_keys(self._journal, charges, now)

    async def load_session(self, call: InboundRequest) -> None:
        """Know what the session of a call has spent before this process saw it."""
        name = _SESSION + call.session
        if self.allowance.session is None or not call.session or name in self.spent:
            return
        before = 0.0
        if self._journal is not None:
            before = (await asyncio.to_thread(spent_by_sessions, self._journal, [call.session]))[call.session]
        self._known(name, before)
        while len(self.spent) > _KNOWN_LIMIT:
            self.spent.popitem(last=False)

    def _known(self, name: str, dollars: float) -> None:
        """So much is written down; what was added since is not there yet, so that the larger one is right."""
        fresh = name not in self.spent
        self.spent[name] = max(dollars, self.spent.get(name, 0.0))
        if fresh:  # what was reached before has been told before
            limit = next((purse.limit for purse in self._all(name) if purse.id == name), 0.0)
            self._alerted.update((name, mark) for mark in ALERT_PERCENTS if limit and 100 * dollars >= mark * limit)

    def _all(self, name: str) -> list[SpendLimit]:
        scope, _, rest = name.removeprefix("budget/").partition("/")
        project, _, month = rest.rpartition("/")
        return self.allowance.limits_for(rest if scope == "session" else "", project, month)

    # -- counting and checking ---------------------------------------------------------------------------

    def add(
        self, call: InboundRequest, model: str, tokens: tuple[int, int], settings: GatewaySettings, now: float
    ) -> float:
        """Count what an answer cost; the dollars."""
        session = call.session
        if session:
            if len(self._history) > _KNOWN_LIMIT:
                self._history.clear()
            before = self._history.get(session, SpendTotals())
            self._history[session] = SpendTotals(
                before.calls + 1, before.tokens_in + tokens[0], before.tokens_out + tokens[1]
            )
        price = self.price(model, settings.prices)
        if price is None:
            return 0.0
        dollars = tokens[0] * price.input + tokens[1] * price.output
        if self.allowance.has_limits:
            for purse in self._purses(call, now):
                self.spent[purse.id] = self.spent.get(purse.id, 0.0) + dollars
                self._alert(purse)
        if call.key:
            self.spent[call.key] = self.spent.get(call.key, 0.0) + dollars
            self._charges[call.key] = self._charges.get(call.key, 0.0) + dollars
        return dollars

    def check(self, call: InboundRequest, now: float) -> None:
        """Pause whoever has spent all there is."""
        for purse in self._purses(call, now):
            if self.spent.get(purse.id, 0.0) >= purse.limit:
                raise RequestRejected(
                    429, f"the budget of ${purse.limit:.2f} for this {purse.scope} is spent (spend limit)"
                )

    def apply_to_policy(self, policy: Policy, call: InboundRequest, settings: GatewaySettings, now: float) -> Policy:
        """The policy with what is left as its cap, and each model with what a call of this session would cost on it."""
        lefts = [purse.limit - self.spent.get(purse.id, 0.0) for purse in self._purses(call, now)]
        lefts += [left for left in (call.dollars, policy.budget.dollars) if left is not None]
        models = tuple(
            model if model.cost else replace(model, cost=self.estimate(call, model.name, settings))
            for model in policy.models
        )
        budget = replace(policy.budget, dollars=max(0.0, min(lefts))) if lefts else policy.budget
        return policy.replace(models=models, budget=budget)

    def estimate(self, call: InboundRequest, model: str, settings: GatewaySettings) -> float:
        """US dollars of one call on a model by this session's own tokens; without a history by this call's alone."""
        price = self.price(model, settings.prices)
        if price is None:
            return 0.0
        past = self._history.get(call.session, SpendTotals())
        if not past.calls:
            return len(call.body) / CHARACTERS_PER_TOKEN * price.input  # at the least: what it will say nobody knows
        return (past.tokens_in * price.input + past.tokens_out * price.output) / past.calls

    def _purses(self, call: InboundRequest, now: float) -> list[SpendLimit]:
        hour = int(now // 3_600)
        if self._hour != hour:
            self._hour, self._named = hour, month_of(now)
        return self.allowance.limits_for(call.session, call.project, self._named)

    def _alert(self, purse: SpendLimit) -> None:
        for mark in ALERT_PERCENTS:
            if 100 * self.spent[purse.id] >= mark * purse.limit and (purse.id, mark) not in self._alerted:
                self._alerted.add((purse.id, mark))
                what = f"{purse.scope} {purse.name}".strip()
                self._tell(f"rung gateway: the {what} has spent {mark} % of ${purse.limit:.2f}")


def _listed(models: list[str]) -> dict[str, list[float] | None]:
    """Prices from the price list, read by a process of its own: its 30 MB are given back when that ends."""
    command = [sys.executable, "-m", __name__, *models]
    work = subprocess.run(command, capture_output=True, check=False, timeout=60)  # noqa: S603  # our own
    found: dict[str, list[float] | None] = json.loads(work.stdout) if work.returncode == 0 else {}
    return found


def listed_price(model: str) -> ModelPrice | None:
    """Price of a model by the list of the `genai-prices` package; None when it has none."""
    try:
        from genai_prices import Usage, calc_price

        found = calc_price(Usage(input_tokens=_THOUSAND, output_tokens=_THOUSAND), model)
    except (ImportError, LookupError):
        return None
    return ModelPrice(float(found.input_price) / _THOUSAND, float(found.output_price) / _THOUSAND)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({model: listed_price(model) for model in sys.argv[1:]}))
