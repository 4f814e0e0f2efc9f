"""Calls without limits that ended before the price of their model was known: they are booked when it is looked up.

A call with limits waits for the price before it is sent. One without limits does not: its cost alone can wait.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.usage import Usage
    from rung.core.policy.model_prices import ModelPrice
    from rung.gateway.spending.ledger import SpendLedger
    from rung.gateway.upstream.health import Route

_LOOKUP_INTERVAL_SECONDS: Final = 60.0  # after a lookup that failed
_MAX_WAIT_SECONDS: Final = 300.0
_MAX_CALLS: Final = 10_000
_MAX_REPORTED: Final = 1_000  # models; clients choose their names


class UnpricedUsage(NamedTuple):
    """Tokens of an attempt on a model whose price is being looked up."""

    model: str
    usage: Usage
    route: Route


class UnpricedCall(NamedTuple):
    """A call that has ended. `record` writes it down with its cost, which is `dollars` and that of the usage."""

    ended_at: float
    usage: Sequence[UnpricedUsage]
    dollars: float
    key_hash: str
    prices: Mapping[str, Mapping[str, Any]]  # of the settings that the call began with
    record: Callable[[float], None]


class UnpricedCalls:
    """Calls that wait for a price, the oldest first. Runs on one event loop."""

    def __init__(
        self,
        ledger: SpendLedger,
        count_dollars: Callable[[Route, float], None],
        log: Callable[[str], object],
    ) -> None:
        self._ledger, self._count_dollars, self._log = ledger, count_dollars, log
        self._calls: deque[UnpricedCall] = deque()
        self._reported: set[str] = set()
        self._next_lookup = 0.0

    def add(self, call: UnpricedCall) -> None:
        """Keep a call until its prices are known. Of too many, the oldest is booked without."""
        self._calls.append(call)
        if len(self._calls) > _MAX_CALLS:
            self._book(self._calls.popleft())

    def book(self, now: float, *, at_end: bool = False) -> None:
        """Book the calls whose prices are known; without a price those that waited too long, and all others `at_end`."""
        for _ in range(len(self._calls)):
            call = self._calls.popleft()
            waits = not at_end and now - call.ended_at < _MAX_WAIT_SECONDS
            if waits and any(self._is_unknown(each.model, call) for each in call.usage):
                self._calls.append(call)
            else:
                self._book(call)
        if self._calls and now >= self._next_lookup:
            self._next_lookup = now + _LOOKUP_INTERVAL_SECONDS
            for call in self._calls:  # again, after a lookup that failed
                for each in call.usage:
                    self._ledger.prices.request(each.model, call.key_hash, now)
            self._ledger.prices.start()

    def report(self, model: str) -> None:
        """Say once that a model has no price, so that its calls are booked as $0."""
        if model not in self._reported and len(self._reported) < _MAX_REPORTED:
            self._reported.add(model)
            self._log(
                f"rung gateway: the price of model {model[:200]!r} is unknown: its calls are booked as $0. Set `input` and"
                f" `output` (US dollars for a million tokens) in [gateway.prices.{model[:200]!r}]"
            )

    def _is_unknown(self, model: str, call: UnpricedCall) -> bool:
        prices = self._ledger.prices
        return prices.price(model, call.prices) is None and not prices.is_unlisted(model)

    def _book(self, call: UnpricedCall) -> None:
        total = call.dollars
        for each in call.usage:
            price = self._ledger.prices.price(each.model, call.prices)
            if price is None:
                self.report(each.model)
            else:
                total += self.charge(each, price, call.key_hash)
        call.record(total)

    def charge(self, used: UnpricedUsage, price: ModelPrice, key_hash: str) -> float:
        """Count the cost of usage whose price is known now; return it in US dollars."""
        dollars = price.cost(used.usage)
        self._ledger.charge_unlimited(key_hash, dollars)
        self._count_dollars(used.route, dollars)
        return dollars
