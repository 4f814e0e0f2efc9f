"""Prices of models: those of the settings, else list prices, looked up once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.list_prices import fetch_list_prices
from rung.core.policy.model_prices import price_per_million

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.model_prices import ModelPrice

_MAX_LOOKUPS: Final = 200  # of one client in an hour: bounds lookups of invented model names
_HOUR_SECONDS: Final = 3_600


class PriceTable:
    """Known prices by model. Used from one event loop."""

    def __init__(self) -> None:
        self._prices: dict[str, ModelPrice | None] = {}  # of the list; None for models that it lacks
        self._overrides: dict[str, tuple[Mapping[str, Any], ModelPrice]] = {}  # of the settings, as read and parsed
        self._pending: set[str] = set()  # looked up next
        self._looked_up: set[str] = set()  # by the running lookup
        self._lookup: asyncio.Task[None] | None = None
        self._requested: Counter[str] = Counter()  # lookups by client
        self._hour = 0

    def price(self, model: str, overrides: Mapping[str, Mapping[str, Any]]) -> ModelPrice | None:
        """Return the price of a model; None if it is unknown."""
        override = overrides.get(model)
        if override is None:
            return self._prices.get(model)
        parsed = self._overrides.get(model)
        if parsed is None or parsed[0] is not override:  # a call in flight has the settings it began with
            parsed = self._overrides[model] = (override, price_per_million(override))
        return parsed[1]

    def window(self, model: str) -> int | None:
        """Return the context window of a model in tokens, also of one whose price the settings replace; None: unknown."""
        listed = self._prices.get(model)
        return None if listed is None else listed.window

    def is_awaited(self, model: str) -> bool:
        """Return whether the price of a model is being looked up, or will be next."""
        return model in self._pending or model in self._looked_up

    def is_unlisted(self, model: str) -> bool:
        """Return whether the list has been asked for a model, and has no price of it."""
        return model in self._prices and self._prices[model] is None

    def request(self, model: str, client: str, now: float) -> None:
        """Have the price of a model looked up next, unless it is known or the client has asked for too many."""
        hour = int(now // _HOUR_SECONDS)
        if hour != self._hour:  # forget the models without a price: the list may have been updated
            self._hour = hour
            self._requested.clear()
            self._prices = {name: price for name, price in self._prices.items() if price is not None}
        is_known = not model or model in self._prices or self.is_awaited(model)
        if is_known or self._requested[client] >= _MAX_LOOKUPS:
            return
        self._requested[client] += 1
        self._pending.add(model)

    def start(self) -> None:
        """Begin to look up the requested prices, unless a lookup runs: then they are next."""
        if self._pending and self._lookup is None:
            self._lookup = asyncio.create_task(self._fetch())

    async def look_up(self) -> None:
        """Look up the requested prices, and wait for them. Concurrent callers share one lookup."""
        while self._pending or self._lookup is not None:
            self.start()
            if self._lookup is not None:
                await asyncio.shield(self._lookup)

    async def _fetch(self) -> None:
        self._looked_up, self._pending = self._pending, set()
        try:
            self._prices.update(await asyncio.to_thread(fetch_list_prices, sorted(self._looked_up)))
        finally:
            self._looked_up, self._lookup = set(), None
            self.start()

    def clear(self) -> None:
        """Forget all prices after the settings may have changed."""
        self._prices.clear()
        self._overrides.clear()
        self._requested.clear()
