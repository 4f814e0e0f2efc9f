"""What tokens cost and what is left to spend: prices looked up once per model, budgets checked before, not after."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.gateway.keys import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy import Policy
    from rung.gateway.call import Call
    from rung.gateway.settings import Settings

_MILLION: Final = 1_000_000
ALERTS: Final = (50, 75, 90, 100)  # percent of a budget at which somebody should know
_KNOWN_LIMIT: Final = 10_000
_ASKED_LIMIT: Final = 200  # models whose price is looked up: whoever makes names up is not followed


class Price(NamedTuple):
    """US dollars for one token in and one out."""

    input: float
    output: float


class Spent(NamedTuple):
    """What one session has used so far, on average per call."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class Costs:
    """Who has spent what: by key, session, project and month."""

    def __init__(self, tell: Callable[[str], object] = print) -> None:
        self.spent: dict[str, float] = {}
        self._history: dict[str, Spent] = {}
        self._prices: dict[str, Price | None] = {}
        self._alerted: set[tuple[str, int]] = set()
        self._tell = tell
        self._hour, self._named = -1, ""
        self.wanted: set[str] = set()  # models whose price is to be looked up
        self._asked: set[str] = set()

    def price(self, model: str, overrides: Mapping[str, Mapping[str, float]]) -> Price | None:
        """What a model costs; None when nobody knows."""
        if model not in self._prices:
            own = overrides.get(model)
            if own is None:
                if model and len(self._asked) < _ASKED_LIMIT and model not in self._asked:
                    self._asked.add(model)
                    self.wanted.add(model)
                return None
            self._prices[model] = Price(own["input"] / _MILLION, own["output"] / _MILLION)
        return self._prices[model]

    async def look_up(self) -> None:
        """Look up the models somebody wants to know about, in a process of its own: the list takes 30 MB to read."""
        models, self.wanted = sorted(self.wanted), set()
        if models:
            for model, found in (await asyncio.to_thread(_listed, models)).items():
                self._prices[model] = None if found is None else Price(*found)

    def forget_prices(self) -> None:
        """The overrides may have changed."""
        self._prices.clear()
        self._asked.clear()

    def add(self, call: Call, model: str, tokens: tuple[int, int], settings: Settings, now: float) -> float:
        """Count what an answer cost; the dollars."""
        session = call.session
        if session:
            if len(self._history) > _KNOWN_LIMIT:
                self._history.clear()
            before = self._history.get(session, Spent())
            self._history[session] = Spent(
                before.calls + 1, before.tokens_in + tokens[0], before.tokens_out + tokens[1]
            )
        price = self.price(model, settings.prices)
        if price is None:
            return 0.0
        dollars = tokens[0] * price.input + tokens[1] * price.output
        for name, limit in self._purses(call, settings, now):
            self.spent[name] = self.spent.get(name, 0.0) + dollars
            self._alert(name, limit)
        if call.key:
            self.spent[call.key] = self.spent.get(call.key, 0.0) + dollars
        return dollars

    def admit(self, call: Call, settings: Settings, now: float) -> None:
        """Pause whoever has spent all there is."""
        for name, limit in self._purses(call, settings, now):
            if limit is not None and self.spent.get(name, 0.0) >= limit:
                raise Refusal(
                    429, f"the budget of ${limit:.2f} for this {name.partition(':')[0]} is spent (spend limit)"
                )

    def within(self, policy: Policy, call: Call, settings: Settings, now: float) -> Policy:
        """The policy with what is left as its cap, and each model with what a call of this session would cost on it."""
        lefts = [
            limit - self.spent.get(name, 0.0) for name, limit in self._purses(call, settings, now) if limit is not None
        ]
        lefts += [left for left in (call.dollars, policy.budget.dollars) if left is not None]
        models = tuple(
            model if model.cost else replace(model, cost=self.estimate(call, model.name, settings))
            for model in policy.models
        )
        budget = replace(policy.budget, dollars=max(0.0, min(lefts))) if lefts else policy.budget
        return policy.but(models=models, budget=budget)

    def estimate(self, call: Call, model: str, settings: Settings) -> float:
        """US dollars of one call on a model, by this session's own history; 0 when nobody knows."""
        price = self.price(model, settings.prices)
        past = self._history.get(call.session, Spent())
        if price is None or not past.calls:
            return 0.0
        return (past.tokens_in * price.input + past.tokens_out * price.output) / past.calls

    def _purses(self, call: Call, settings: Settings, now: float) -> list[tuple[str, float | None]]:
        budgets = settings.budgets
        month = self._month(now)
        purses: list[tuple[str, float | None]] = [
            (f"project:{call.project}", budgets.project),
            (f"month:{month}:{call.project}", budgets.month),
        ]
        if call.session:
            purses.append((f"session:{call.session}", budgets.session))
        return purses

    def _month(self, now: float) -> str:
        hour = int(now // 3_600)
        if self._hour != hour:
            self._hour, self._named = hour, datetime.fromtimestamp(now, UTC).strftime("%Y-%m")
        return self._named

    def _alert(self, name: str, limit: float | None) -> None:
        if not limit:
            return
        percent = 100 * self.spent[name] / limit
        for mark in ALERTS:
            if percent >= mark and (name, mark) not in self._alerted:
                self._alerted.add((name, mark))
                self._tell(f"rung gateway: {name} has spent {mark} % of ${limit:.2f}")


def _listed(models: list[str]) -> dict[str, list[float] | None]:
    command = [sys.executable, "-m", "rung.gateway.prices", *models]
    work = subprocess.run(command, capture_output=True, check=False, timeout=60)  # noqa: S603  # our own
    found: dict[str, list[float] | None] = json.loads(work.stdout) if work.returncode == 0 else {}
    return found
