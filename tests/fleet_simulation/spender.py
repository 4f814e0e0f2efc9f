"""What one process of the simulated fleet spends: slices of shared limits, and dollars as a gateway."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from rung.core.domain.errors import StoreUnavailable
from rung.core.domain.usage import Usage
from rung.core.policy.model_prices import ModelPrice
from rung.core.policy.purses import Reservation
from rung.core.policy.shared_rate import SharedRate
from rung.core.policy.slices import SharedLimit, SliceHolder
from rung.core.policy.spend_limits import SpendLimit
from rung.gateway.keys import RequestRejected
from rung.gateway.settings import GatewayKey, GatewaySettings
from rung.gateway.spending.ledger import SpendLedger
from rung.store.fleet import slices

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rung.gateway.inbound_request import InboundRequest
    from rung.store.journal.journal import Journal
    from tests.fleet_simulation.virtual_time import Process
    from tests.fleet_simulation.world import World

DOLLARS = SharedLimit(amount=12.0, lease_seconds=12.0, doubt_seconds=3_600.0)
CALLS_PER_MINUTE = 30.0
KEY = GatewayKey(hash="0" * 64, name="tenant")
SPEND = SpendLimit("key", KEY.name, 2.0, KEY.hash)
ESTIMATE = 0.3  # dollars of one call
PRICE = ModelPrice(0.01, 0.0)
AWAY = (StoreUnavailable, TimeoutError)


class Spender:
    """Part of a process that spends."""

    def __init__(self, world: World, process: Process, journal: Journal) -> None:
        self.world, self.process, self.journal = world, process, journal
        self.holder, self.rate, self.number = SliceHolder(0.5), SharedRate(CALLS_PER_MINUTE), 0
        self.ledger = SpendLedger(lambda text: world.trace(f"{process.name} {text}"), journal)
        self.spent = 0.0  # by the ledger
        # Not a random name: rows are added up in the order of names, and round differently.
        self.ledger._holder = process.name  # noqa: SLF001
        if self.ledger.leased is not None:
            self.ledger.leased._holder = process.name  # noqa: SLF001

    def parts(self) -> list[Coroutine[Any, Any, None]]:
        """Return what runs in the process."""
        return [self._spend_slices(), self._spend_as_gateway(), self._call_upstream()]

    async def _spend_slices(self) -> None:
        clock, chance = self.process.clock, self.world.chance
        while True:
            self.number += 1
            limits = {
                "dollars": slices.LimitRequest(DOLLARS, self.holder.request(clock.read(), chance.choice([0.0, 0.4]))),
                "rate": slices.LimitRequest(self.rate.limit, self.rate.request(clock.read())),
            }
            with suppress(*AWAY):
                report = slices.FleetReport(number=self.number, limits=limits)
                view = await asyncio.to_thread(slices.exchange, self.journal, "f", self.process.name, report)
                self.holder.apply(view.leases["dollars"], DOLLARS.lease_seconds)
                self.rate.apply(view.leases["rate"])
            for _ in range(chance.randrange(1, 5)):
                await asyncio.sleep(chance.uniform(0.1, 2.5))
                amount = chance.uniform(0.05, 0.6)
                if self.holder.take(amount, clock.read()):
                    self.world.spend_from_slice(amount)
                if self.rate.take(clock.read()):
                    self.world.count_call()

    async def _spend_as_gateway(self) -> None:
        settings = GatewaySettings(keys=(KEY,))
        while True:
            await self.ledger.refresh(settings, self.process.clock.read())
            await asyncio.sleep(self.world.chance.uniform(2.0, 8.0))

    async def _call_upstream(self) -> None:
        chance, clock = self.world.chance, self.process.clock
        inbound = cast("InboundRequest", SimpleNamespace(session="", key_hash=SPEND.id, key_dollars=SPEND.limit))
        while True:
            await asyncio.sleep(chance.uniform(0.5, 5.0))
            reservation = Reservation(limits=(SPEND,))
            try:
                await self.ledger.reserve(reservation, ESTIMATE, clock.read())
            except RequestRejected:
                continue
            usage = Usage(input=chance.choice([1, 10, 29, 30]))
            self.world.spend_by_ledger(PRICE.cost(usage))
            await asyncio.sleep(chance.uniform(0.1, 6.0))
            self.ledger.settle(reservation, inbound, "model", PRICE, usage, clock.read())
            self.spent += PRICE.cost(usage)
            self.ledger.purses.release(reservation)
