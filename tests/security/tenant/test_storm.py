"""A storm of tenants: parallel calls, early leavers, retries and upstream faults on keys of $1 to $5.

`make storm-tenants` runs 64 tenants on several seeds; the gate runs a slice of one.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from typing import Any

import aiohttp
import pytest

from rung.gateway.keys import hash_key
from tests.gateway.behind import Behind
from tests.waiting import wait_until

TENANTS = int(os.environ.get("RUNG_TENANTS", "12"))
CALLS = int(os.environ.get("RUNG_TENANT_CALLS", "14"))  # of each tenant
SEEDS = [int(seed) for seed in os.environ.get("RUNG_TENANT_SEEDS", "1").split()]
AT_ONCE = 5  # calls of one tenant
FAULTS = ["server_error", "overloaded", "reset", "reset_headers", "cut", "no_end", "stream_error", "truncated_json"]
PRICE_IN, PRICE_OUT = 100 / 1e6, 25_000 / 1e6  # a word costs 2.5 cents
PRICES = {"small": {"input": PRICE_IN * 1e6, "output": PRICE_OUT * 1e6}}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
LIMITS = {"messages": "max_tokens", "chat": "max_completion_tokens", "responses": "max_output_tokens"}
WORD = re.compile(r"(mark[a-z]{2})\d")
LONG = aiohttp.ClientTimeout(total=120)


class Tenant:
    """One key and what came of its calls. Its mark is in what it asks, and so in what the provider answers."""

    def __init__(self, number: int, seed: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.mark = "mark" + chr(97 + number // 26) + chr(97 + number % 26)
        self.key = f"rung-{self.mark}"
        self.dollars = self.random.randint(1, 5)
        self.estimate = 0.0  # the largest of its calls
        self.got: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()  # in what it received

    def body(self, wire: str, words: int, *, stream: bool) -> dict[str, Any]:
        text = f"count to {words} as {self.mark}"
        asked = {"input": text} if wire == "responses" else {"messages": [{"role": "user", "content": text}]}
        return {"model": "small", LIMITS[wire]: words, "stream": stream, **asked}

    async def call(self, url: str, client: aiohttp.ClientSession) -> None:
        """Make a call; leave some early, and send some of those again as an SDK does."""
        wire, stream = self.random.choice(list(PATHS)), self.random.random() < 0.6
        body = self.body(wire, self.random.randint(4, 40), stream=stream)
        data = json.dumps(body).encode()
        # The gateway reserves a token for each byte, and usage that it asks for itself adds some.
        self.estimate = max(self.estimate, (len(data) + 60) * PRICE_IN + body[LIMITS[wire]] * PRICE_OUT)
        patience = self.random.choice([None, None, 0.03, 0.1, 0.3])
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        if self.random.random() < 0.3:
            headers["idempotency-key"] = f"same-for-all-{self.random.randint(1, 3)}"
        for attempt in range(2 if patience is not None and self.random.random() < 0.5 else 1):
            if attempt:
                headers["x-stainless-retry-count"] = "1"
            received = bytearray()
            try:
                async with asyncio.timeout(patience if attempt == 0 else None):
                    async with client.post(url + PATHS[wire], data=data, headers=headers) as answer:
                        self.got[str(answer.status)] += 1
                        async for piece in answer.content.iter_any():
                            received += piece
                break
            except (TimeoutError, aiohttp.ClientError) as error:
                self.got[type(error).__name__] += 1
            finally:
                self.marks.update(WORD.findall(received.decode("utf-8", "replace")))


async def storm(url: str, tenants: list[Tenant]) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=LONG) as client:

        async def one(tenant: Tenant) -> None:
            room = asyncio.Semaphore(AT_ONCE)

            async def call() -> None:
                async with room:
                    await tenant.call(url, client)

            await asyncio.gather(*(call() for _ in range(CALLS)))

        await asyncio.gather(*(one(tenant) for tenant in tenants))


def billed(behind: Behind) -> Counter[str]:
    """Return what the provider charges each tenant, by mark: for a whole answer all of it, whoever has left."""
    bill: Counter[str] = Counter()
    for call in behind.lab.calls:
        if call.status != 200 or call.fault in ("reset", "reset_headers", "stream_error", "overloaded", "server_error"):
            words = call.tokens  # nothing, or what was sent before the error
            tokens_in = 0
        else:
            limit = next(call.json[name] for name in LIMITS.values() if name in call.json)
            words = call.tokens if call.stream else limit
            tokens_in = len(call.body) // 4
        asked = re.search(r"as (mark[a-z]{2})", call.body.decode())
        bill[asked[1] if asked is not None else ""] += words * PRICE_OUT + tokens_in * PRICE_IN  # type: ignore[assignment]  # dollars are fractional
    return bill


@pytest.mark.parametrize("seed", SEEDS)
def test_tenants_in_a_storm(seed: int) -> None:
    """Nobody overspends by more than one call's estimate, and no answer reaches another tenant."""
    tenants = [Tenant(number, seed) for number in range(TENANTS)]
    keys = [{"hash": hash_key(tenant.key), "dollars": tenant.dollars, "project": tenant.mark} for tenant in tenants]
    script = {"rate": 0.2, "seed": seed, "faults": FAULTS}
    with Behind(script, keys=keys, prices=PRICES, delay=0.02, gap=0.015) as behind:
        asyncio.run(storm(behind.url, tenants))
        wait_until(lambda: behind.gateway.active_requests == 0)
        ledger, bill = behind.gateway.ledger, billed(behind)
        got = sum((tenant.got for tenant in tenants), Counter())
        for tenant in tenants:
            spent = ledger.spent.get(hash_key(tenant.key), 0.0)
            amounts = f"${tenant.dollars}, billed ${bill[tenant.mark]:.2f}, counted ${spent:.2f}, {tenant.got}"
            assert bill[tenant.mark] <= tenant.dollars + tenant.estimate, amounts
            assert spent <= tenant.dollars + tenant.estimate, amounts
            assert set(tenant.marks) <= {tenant.mark}, tenant.marks
        assert set(bill) <= {tenant.mark for tenant in tenants}
        assert sum(tenant.marks.total() for tenant in tenants) > 10 * len(tenants)  # marks were received
        assert got["200"] >= len(tenants)
        assert got["429"] >= len(tenants) // 2  # most keys were used up
        assert not ledger.purses.reserved
