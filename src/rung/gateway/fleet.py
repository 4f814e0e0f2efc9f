"""This gateway as one of a fleet: exchanges circuits, retry tokens, rates and resting keys with the others, once a second.

A fleet is the gateways on one PostgreSQL journal. Requests never wait for the exchange, with one exception: a request whose
key has no slice of its rate, or has used it up, waits for the next one before it is refused. Runs on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.budget import RetryBudget
from rung.core.policy.shared_rate import SharedRate
from rung.core.policy.shared_retry_budget import SharedRetryBudget
from rung.engine.loop.shared_breakers import SharedBreakers
from rung.gateway.keys import RequestRejected
from rung.gateway.upstream.headers import upstream_key
from rung.gateway.upstream.key_pool import with_one_key
from rung.store.backends.postgres import PostgresBackend
from rung.wiring.fleet_limits import EXCHANGE_SECONDS, SharedLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rung.core.policy.key_pool import KeyStatus
    from rung.gateway.gateway import Gateway
    from rung.gateway.settings import GatewayKey
    from rung.gateway.upstream.key_pool import KeyPool
    from rung.store.journal.journal import Journal

FLEET: Final = "gateway"
_RETRIES: Final[Mapping[str, Any]] = {"price": 2, "per_call": 1, "initial": 500, "per_second": 0}
_WAIT_SECONDS: Final = 2.0  # for an exchange that brings a slice
_MIN_PAUSE_SECONDS: Final = 0.1  # between two exchanges
_MIN_SHARED_SECONDS: Final = 2.0  # a key that rests for a shorter time is usable again before others hear of it


def is_fleet(journal: Journal | None) -> bool:
    """Return whether a journal is one that a fleet shares."""
    return journal is not None and isinstance(journal.backend, PostgresBackend)


def retry_budget(journal: Journal | None) -> RetryBudget:
    """Return the retry budget of a gateway: its own, or a slice of its fleet's."""
    return SharedRetryBudget(**_RETRIES) if is_fleet(journal) else RetryBudget(**_RETRIES)


class GatewayFleet:
    """State that this gateway shares with its fleet; without one, the limits of its keys alone."""

    def __init__(self, gateway: Gateway, log: Callable[[str], object]) -> None:
        self._gateway = gateway
        self._rates: dict[str, SharedRate] = {}  # by key hash, also of keys without a rate now
        self._exchanged, self._wanted = asyncio.Event(), asyncio.Event()
        self._adopted: set[tuple[str, str]] = set()  # keys and models that rest because others said so
        self._news: dict[str, KeyStatus | None] = {}  # about keys, not yet told
        self.limits: SharedLimits | None = None
        budget, holder = gateway.retry_budget, f"gateway-{token_hex(8)}"
        if gateway.journal is not None and isinstance(budget, SharedRetryBudget):
            waits, probe = gateway.circuit_waits, gateway.route_probe
            breakers = SharedBreakers(gateway.breakers, holder, waits.is_waited_for, probe.mark_healthy)
            self.limits = SharedLimits(
                gateway.journal, FLEET, budget, breakers, lambda text: log(f"rung gateway: {text}"), holder
            )

    # -- exchange ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Exchange for ever, about once a second."""
        while self.limits is not None:
            await asyncio.sleep(_MIN_PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), EXCHANGE_SECONDS - _MIN_PAUSE_SECONDS)
            self._wanted.clear()
            await self.exchange()

    async def exchange(self) -> None:
        """Publish what this gateway has learned and used, and adopt the state of the others."""
        limits, clock = self.limits, self._gateway.clock
        if limits is None:
            return
        now = clock.now()
        self._use_rates(limits, now)
        offset = 0.0 if limits.clock_offset is None else limits.clock_offset
        self._news |= {name: _shifted(status, offset) for name, status in self._key_news(now)}
        try:
            view = await asyncio.to_thread(limits.send, limits.collect(now, self._news))
        except Exception as error:  # noqa: BLE001  # an unavailable store must not stop requests
            limits.fail(error, clock.now())
        else:
            self._news = {}
            limits.apply(view, clock.now())
            self._adopt_rests({name: _shifted(each, now - view.now) for name, each in view.rests.items()}, clock.now())
        self._exchanged.set()
        self._exchanged = asyncio.Event()

    def leave(self) -> None:
        """Return what this gateway holds. Blocks on the journal."""
        if self.limits is not None:
            with suppress(Exception):  # its slices expire
                self.limits.leave(self.limits.collect(self._gateway.clock.now()))

    # -- rates -------------------------------------------------------------------------------------------

    def _use_rates(self, limits: SharedLimits, now: float) -> None:
        limits.rates = {
            key.hash: self._rate(key.hash, key.requests_per_minute, now)
            for key in self._gateway.settings.keys
            if key.requests_per_minute is not None and key.hash in self._rates and self._rates[key.hash].is_used(now)
        }

    def _rate(self, name: str, per_minute: float, now: float) -> SharedRate:
        rate = self._rates.get(name)
        if rate is None:
            rate = self._rates[name] = SharedRate(per_minute)
            if self.limits is None:
                rate.own(now)
        rate.per_minute = per_minute
        return rate

    async def take(self, key: GatewayKey) -> None:
        """Count a request for the rate of its key; reject it if the rate is exceeded."""
        if key.requests_per_minute is None:
            return
        clock = self._gateway.clock
        rate = self._rate(key.hash, key.requests_per_minute, clock.now())
        if rate.take(clock.now()):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                while (
                    not rate.is_own and not rate.is_exhausted
                ):  # an exchange under way may have begun before this call
                    self._wanted.set()
                    await self._exchanged.wait()
                    if rate.take(clock.now()):
                        return
        raise RequestRejected(
            429,
            f"rate limit of this key: {key.requests_per_minute:g} requests per minute",
            retry_after=math.ceil(rate.seconds_per_call()),
            should_retry=True,
        )

    # -- circuits and keys -------------------------------------------------------------------------------

    def may_probe(self, route: str) -> bool:
        """Return whether this gateway may try a route that calls were handed away from: no other one of the fleet does."""
        return self.limits is None or self.limits.breakers.may_probe(route, self._gateway.clock.now())

    def _pools(self) -> Iterator[tuple[KeyPool, str, str]]:
        """Yield each key of each pool: the pool, the name of the key, and a digest by which all gateways know it."""
        for upstream in self._gateway.settings.upstreams:
            for name in upstream.key_envs:
                digest = blake2b(upstream_key(with_one_key(upstream, name)), digest_size=12, person=b"rung-fleet-key")
                yield self._gateway.upstream_table.key_pool(upstream), name, digest.hexdigest()

    def _key_news(self, now: float) -> Iterator[tuple[str, KeyStatus | None]]:
        for pool, name, digest in self._pools():
            for model, status in pool.take_news(name):
                if status is None or status.until > now + _MIN_SHARED_SECONDS:
                    self._adopted.discard((digest, model))
                    yield f"{digest}/{model}", status

    def _adopt_rests(self, rests: Mapping[str, KeyStatus | None], now: float) -> None:
        for pool, name, digest in self._pools():
            for key, status in rests.items():
                of, _, model = key.partition("/")
                if of == digest and status is not None and pool.adopt(name, model, status, now):
                    self._adopted.add((digest, model))
            for of, model in [each for each in self._adopted if each[0] == digest]:
                if f"{of}/{model}" not in rests:
                    self._adopted.discard((of, model))
                    pool.revive_adopted(name, model)

    # -- status ------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return how this gateway shares its limits, as JSON."""
        limits, ledger = self.limits, self._gateway.ledger
        leased = ledger.leased if ledger.is_leasing else None
        return {
            "state": "none" if limits is None else "away" if limits.away_since is not None else "shared",
            "since": None if limits is None else limits.away_since,
            "gateways": 1 if limits is None else max(1, len(limits.holders)),
            "spending": "own" if leased is None else "leased" if ledger.away_since is None else "away",
            "leased": 0 if leased is None else len(leased.leased),
            "leased_until": None if leased is None or not leased.leased else leased.valid_until,
        }


def _shifted(status: KeyStatus | None, seconds: float) -> KeyStatus | None:
    """Return a status on another clock."""
    return None if status is None else status._replace(until=status.until + seconds)
