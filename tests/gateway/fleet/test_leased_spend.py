"""Slices of spend limits: calls reserve without the journal, and ledgers on one journal never spend a dollar twice."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.usage import Usage
from rung.core.policy.model_prices import ModelPrice
from rung.gateway.inbound_request import InboundRequest
from rung.gateway.keys import RequestRejected
from rung.gateway.settings import GatewaySettings, settings_from
from rung.gateway.spending.ledger import SpendLedger
from rung.gateway.upstream.settings import UpstreamSettings
from rung.store import open_journal
from rung.store.fleet.spend_slices import DOUBT_SECONDS, LEASE_SECONDS, WantedSlice, lease_spend
from rung.store.queries.spend import charge_keys, spent_by_keys
from rung.store.spend_holds import SpendRefusal, held_by_others, left
from rung.wires.registry import MESSAGES
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.policy.purses import Reservation
    from rung.store.journal.journal import Journal

KEY = "a" * 64
PRICE = ModelPrice(0.0, 1.0)  # a dollar for a token


class Counted:
    """Journal that counts its writes."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.writes = journal, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def write(self, *arguments: Any) -> Any:
        self.writes += 1
        return self.journal.write(*arguments)


def settings_of(dollars: float) -> GatewaySettings:
    return settings_from({"keys": [{"hash": KEY, "dollars": dollars}], "anthropic": "http://127.0.0.1:9"})


def inbound(dollars: float) -> InboundRequest:
    found = InboundRequest(
        wire=MESSAGES,
        upstream=UpstreamSettings(name="anthropic", wire="anthropic", url="http://127.0.0.1:9"),
        target="/v1/messages",
        raw_headers=[],
        headers={},
        session="",
        upstream_headers=[],
        body=b"{}",
        model="small",
    )
    found.key_hash, found.key_dollars = KEY, dollars
    return found


async def begin(ledger: SpendLedger, limit: float, dollars: float) -> Reservation:
    """Reserve dollars for a call."""
    now = time.time()
    reservation = await ledger.admit(inbound(limit), now)
    await ledger.reserve(reservation, dollars, now)
    return reservation


def end(ledger: SpendLedger, reservation: Reservation, limit: float, dollars: int) -> None:
    """Settle a call that cost so many dollars."""
    ledger.settle(reservation, inbound(limit), "small", PRICE, Usage(output=dollars), time.time())
    ledger.purses.release(reservation)


@pytest.fixture
def journals(postgres_url: str) -> Iterator[list[Journal]]:
    opened = [open_journal(postgres_url) for _ in range(3)]
    yield opened
    for journal in opened:
        journal.close()


def test_calls_do_not_ask_the_journal(journals: list[Journal]) -> None:
    """While a slice lasts, calls reserve and settle without a single write to the journal."""

    async def run() -> tuple[int, int]:
        journal = Counted(journals[0])
        ledger = SpendLedger(journal=journal)  # type: ignore[arg-type]  # it is one in all but its type
        for _ in range(20):
            end(ledger, await begin(ledger, 10_000.0, 2.0), 10_000.0, 1)
        await ledger.refresh(settings_of(10_000.0), time.time())
        first, journal.writes = journal.writes, 0
        for _ in range(20):
            end(ledger, await begin(ledger, 10_000.0, 2.0), 10_000.0, 1)
        return first, journal.writes

    before, after = asyncio.run(run())
    assert before >= 2
    assert after == 0


def test_a_nearly_spent_limit_is_decided_by_the_journal(journals: list[Journal]) -> None:
    """Near the end nobody holds dollars that it does not need: what is left can be spent by any process."""

    async def run() -> None:
        one, other = (SpendLedger(journal=journal) for journal in journals[:2])
        for ledger in (one, other):
            await ledger.refresh(settings_of(4.0), time.time())
        first = await begin(one, 4.0, 1.0)
        assert await begin(other, 4.0, 1.0)
        end(one, first, 4.0, 1)
        for _ in range(3):  # what is recorded is no longer held
            await one.refresh(settings_of(4.0), time.time())
        assert await begin(other, 4.0, 1.0)
        assert await begin(other, 4.0, 1.0)
        with pytest.raises(RequestRejected, match="are reserved by calls in flight"):
            await begin(one, 4.0, 1.0)

    asyncio.run(run())


def test_a_renewal_does_not_grant_what_calls_wait_for(journals: list[Journal]) -> None:
    """Calls that wait for the journal are decided by it, also if the slices are renewed before their turn."""

    async def run() -> None:
        one, other = (SpendLedger(journal=journal) for journal in journals[:2])
        await begin(other, 4.0, 4.0)
        assert one.leased is not None
        async with one.leased.turn:
            renewal = asyncio.create_task(one.leased.renew(time.time()))
            await asyncio.sleep(0)
            calls = [asyncio.create_task(begin(one, 4.0, 1.0)) for _ in range(3)]
            await asyncio.sleep(0.01)
        await renewal
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(answer, RequestRejected) for answer in answers)
        assert not one.purses.reserved

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_ledgers(journals: list[Journal], seed: int) -> None:
    """Three ledgers that reserve at once, at random, spend the limit, and at most one call's estimate more."""
    chance, limit, spent = random.Random(seed), 300.0, [0.0]

    async def call(ledger: SpendLedger) -> bool:
        """Make a call; return False when the limit is spent."""
        estimate = chance.randint(1, 9)
        try:
            reservation = await begin(ledger, limit, estimate)
        except RequestRejected as refused:
            await asyncio.sleep(0.02)
            return "is spent" not in str(refused)
        await asyncio.sleep(chance.random() / 50)
        cost = chance.randint(0, estimate)
        spent[0] += cost
        end(ledger, reservation, limit, cost)
        return True

    async def client(ledger: SpendLedger) -> None:
        while await call(ledger):
            pass

    async def refresh(ledger: SpendLedger) -> None:
        while True:
            await ledger.refresh(settings_of(limit), time.time())
            await asyncio.sleep(0.02)

    async def run() -> None:
        ledgers = [SpendLedger(log=lambda _: None, journal=journal) for journal in journals]
        refreshing = [asyncio.create_task(refresh(ledger)) for ledger in ledgers]
        await asyncio.gather(*(client(ledger) for ledger in ledgers for _ in range(4)))
        for task in refreshing:
            task.cancel()
        await asyncio.gather(*refreshing, return_exceptions=True)
        for ledger in ledgers:
            ledger.flush(time.time())

    asyncio.run(run())
    assert limit <= spent[0] <= limit + 9
    assert spent_by_keys(journals[0])[KEY] == pytest.approx(spent[0])
    assert not held_by_others(journals[0], "", time.time()).present


def test_without_the_journal_only_what_is_leased_is_spent(own_postgres: str) -> None:
    """While PostgreSQL is away, calls spend the slice, then are refused; it is said once, and all spend is recorded later."""
    lines: list[str] = []

    async def spend(ledger: SpendLedger, calls: int) -> tuple[int, RequestRejected | None]:
        for made in range(calls):
            try:
                end(ledger, await begin(ledger, 1_000.0, 1.0), 1_000.0, 1)
            except RequestRejected as refused:
                return made, refused
        return calls, None

    async def run(journal: Journal) -> float:
        ledger, settings = SpendLedger(lines.append, journal), settings_of(1_000.0)
        assert await spend(ledger, 10) == (10, None)
        await ledger.refresh(settings, time.time())
        assert ledger.leased is not None
        leased = ledger.leased.leased[KEY]
        with postgres.outage(own_postgres):
            for _ in range(2):
                await ledger.refresh(settings, time.time())
            made, refused = await spend(ledger, 1_000)
            assert refused is not None
            assert "the journal is out of reach" in str(refused)
            assert (refused.status, refused.should_retry) == (503, True)
            assert 0 < made <= leased
            for _ in range(2):
                await ledger.refresh(settings, time.time())
        while ledger.away_since is not None:
            await ledger.refresh(settings, time.time())
        assert await spend(ledger, 1) == (1, None)
        ledger.flush(time.time())
        return 10 + made + 1

    with open_journal(own_postgres, on_warning=lambda _: None) as journal:
        spent = asyncio.run(run(journal))
        assert spent_by_keys(journal)[KEY] == pytest.approx(spent)
    told = [line for line in lines if "journal" in line]
    assert ["out of reach" in line for line in told] == [True, False]
    assert "spend what is leased" in told[0]


def test_an_expired_lease_is_not_spent(journals: list[Journal]) -> None:
    """A slice that could not be renewed for its time is not used any more."""

    async def run() -> None:
        ledger = SpendLedger(journal=journals[0])
        await begin(ledger, 1_000.0, 1.0)
        assert ledger.leased is not None
        limits = (await ledger.admit(inbound(1_000.0), 0.0)).limits
        assert ledger.leased.covers(limits, time.time())
        assert not ledger.leased.covers(limits, time.time() + LEASE_SECONDS)

    asyncio.run(run())


def test_the_slice_of_a_dead_process_is_in_doubt_and_then_free(journals: list[Journal]) -> None:
    """Others leave a dead process's slice alone until it can no longer come back with what it spent."""
    journal, now = journals[0], time.time()
    (limit,) = asyncio.run(SpendLedger().admit(inbound(10.0), now)).limits
    wanted = [WantedSlice(limit, 2.0, 1.0)]
    assert lease_spend(journal, "dead", {}, {}, wanted, [limit], 4.0, now) == {limit.id: 6.0}
    refused = lease_spend(journal, "b", {limit.id: 4.0}, {}, [], [limit], 7.0, now + LEASE_SECONDS)
    assert refused == SpendRefusal(limit, 10.0)
    assert left(journal, [limit], now + LEASE_SECONDS + DOUBT_SECONDS - 1) == pytest.approx(4.0)
    assert left(journal, [limit], now + LEASE_SECONDS + DOUBT_SECONDS + 1) == pytest.approx(10.0)


def test_charges_that_are_sent_again_count_once(journals: list[Journal]) -> None:
    """A batch of charges whose writing had no answer is added once."""
    for _ in range(2):
        charge_keys(journals[0], {KEY: 2.0}, 1.0, ("a", 1))
    charge_keys(journals[0], {KEY: 3.0}, 2.0, ("a", 2))
    charge_keys(journals[0], {KEY: 4.0}, 3.0, ("b", 1))
    assert spent_by_keys(journals[0]) == {KEY: 9.0}
