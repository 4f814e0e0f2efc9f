"""Several gateway processes on one real PostgreSQL: what they share, and what they do without the database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import httpx
import pytest

from rung.gateway.keys import hash_key
from rung.store import open_journal
from rung.store.queries.spend import spent_by_keys
from rung.testing.provider import Lab
from tests.gateway.fleet.processes import GatewayProcess, body, gateways, shared_by
from tests.gateway.pooled import EMPTY, OK
from tests.security.upstream.raw_upstream import RawUpstream
from tests.store import postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KEY = "rung-a-tenants-key"
HEADERS = {"x-api-key": KEY}
CENTS = 4  # a call of 40 words
OUTAGE_SECONDS = float(os.environ.get("RUNG_OUTAGE_SECONDS", "0"))
TABLE = """
[policy]
retries = 0
patience = 0
[gateway]
anthropic = "{url}"
[gateway.prices.small]
input = 0.0
output = 1000.0
"""
KEYED = TABLE + "[[gateway.keys]]\nhash = '{hash}'\n{limits}\n"


def keyed(lab: Lab, limits: str) -> str:
    return KEYED.format(url=lab.url, hash=hash_key(KEY), limits=limits)


async def ask_all(found: list[GatewayProcess], clients: int, calls: int) -> Counter[int]:
    """Make calls at all gateways at once; return how many were answered with each status."""
    statuses: Counter[int] = Counter()
    async with httpx.AsyncClient(timeout=120, headers=HEADERS, limits=httpx.Limits(max_connections=100)) as client:

        async def one(number: int) -> None:
            for _ in range(calls):
                answer = await client.post(f"{found[number % len(found)].url}/v1/messages", json=body())
                statuses[answer.status_code] += 1

        await asyncio.gather(*(one(number) for number in range(clients)))
    return statuses


def test_three_gateways_never_overspend(tmp_path: Path, postgres_url: str) -> None:
    """Parallel clients of three gateways spend the budget of their key, at most one call more, and all is recorded."""
    limit = 2.00
    with Lab() as lab, gateways(tmp_path, 3, keyed(lab, f"dollars = {limit}"), postgres_url) as found:
        shared_by(found)
        statuses = asyncio.run(ask_all(found, clients=12, calls=12))
        assert set(statuses) == {200, 429}
        spent = statuses[200] * CENTS / 100
        assert spent <= limit + CENTS / 100
        assert lab.attempts == statuses[200]
        for gateway in found:
            gateway.stop()
    with open_journal(postgres_url) as journal:
        assert spent_by_keys(journal)[hash_key(KEY)] == pytest.approx(spent)
    assert statuses[200] > 10


def test_one_circuit_for_all(tmp_path: Path, postgres_url: str) -> None:
    """A circuit that one gateway opens keeps the other from sending; one probe at a time is made, and closes it for both."""
    headers = {"x-api-key": "sk-ant-of-a-client"}
    with (
        Lab([{"fault": "overloaded"}]) as lab,
        gateways(tmp_path, 2, TABLE.format(url=lab.url), postgres_url) as found,
        httpx.Client(timeout=120, headers=headers) as client,
    ):
        shared_by(found)
        wait_until(lambda: client.post(f"{found[0].url}/v1/messages", json=body()) and found[0].circuits())
        wait_until(found[1].circuits)
        lab.use(delay=2.0)  # for which the probe is under way
        most = [0]
        succeeded: list[GatewayProcess] = []

        def keep_asking(gateway: GatewayProcess) -> None:
            with httpx.Client(timeout=120, headers=headers) as asking:
                while asking.post(f"{gateway.url}/v1/messages", json=body()).status_code != 200:
                    if not succeeded:
                        most[0] = max(most[0], lab.attempts)
                succeeded.append(gateway)

        threads = [threading.Thread(target=keep_asking, args=(gateway,)) for gateway in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1]  # the other one was refused while the probe was under way
        assert lab.attempts == 2  # the probe of one, and the call of the other after it
        assert not any(gateway.circuits() for gateway in found)


def test_the_database_goes_away_and_comes_back(tmp_path: Path, own_postgres: str) -> None:
    """Without PostgreSQL calls are served from what is leased; then all is recorded, and nothing is overspent."""
    limit, settings = 20.0, "dollars = 20.0"
    with Lab() as lab, gateways(tmp_path, 2, keyed(lab, settings), own_postgres) as found:
        shared_by(found)
        before = asyncio.run(ask_all(found, clients=8, calls=8))
        assert set(before) == {200}
        wait_until(lambda: all(gateway.status()["fleet"]["leased"] for gateway in found))
        with postgres.outage(own_postgres):
            during = asyncio.run(ask_all(found, clients=4, calls=2))
            assert during[200] > 0
            assert set(during) <= {200, 503}
            wait_until(lambda: all(gateway.status()["fleet"]["spending"] == "away" for gateway in found))
            wait_until(lambda: all(gateway.status()["fleet"]["state"] == "away" for gateway in found))
            shown = rung_status(found[0])
            assert "journal out of reach" in shown
            asyncio.run(ask_all(found, clients=8, calls=40))
            refused = asyncio.run(ask_all(found, clients=2, calls=1))
            assert set(refused) == {503}  # what was leased is used up
            time.sleep(OUTAGE_SECONDS)  # real seconds of a real server
        wait_until(lambda: all(gateway.status()["fleet"]["spending"] == "leased" for gateway in found))
        after = asyncio.run(ask_all(found, clients=2, calls=1))
        assert set(after) == {200}
        spent = lab.attempts * CENTS / 100
        for gateway in found:
            gateway.stop()
            lines = [line for line in gateway.log.splitlines() if line.startswith("rung gateway: the ")]
            for words in ("spend", "the fleet's journal"):
                assert ["out of reach" in line for line in lines if words in line] == [True, False], lines
    with open_journal(own_postgres) as journal:
        assert spent_by_keys(journal)[hash_key(KEY)] == pytest.approx(spent)
        assert spent <= limit


def rung_status(gateway: GatewayProcess) -> str:
    """What `rung gateway status` prints."""
    words = [sys.executable, "-m", "rung", "gateway", "status", "--url", gateway.url]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_a_rate_is_shared(tmp_path: Path, postgres_url: str) -> None:
    """Two gateways together serve a key no more often than its rate allows, and both serve it."""
    began = time.monotonic()
    with Lab() as lab, gateways(tmp_path, 2, keyed(lab, "requests_per_minute = 30"), postgres_url) as found:
        shared_by(found)
        statuses = asyncio.run(ask_all(found, clients=8, calls=10))
        allowed = 30 + (time.monotonic() - began) * 30 / 60
        assert 15 <= statuses[200] <= allowed
        assert set(statuses) == {200, 429}
        refused = wait_until(lambda: _refused(found[0]))
        assert refused.headers["retry-after"] == "2"
        assert "30 requests per minute" in refused.json()["error"]["message"]


def _refused(gateway: GatewayProcess) -> httpx.Response | None:
    answer = httpx.post(f"{gateway.url}/v1/messages", json=body(), headers=HEADERS, timeout=60)
    return answer if answer.status_code == 429 else None


def test_an_exhausted_key_rests_everywhere(tmp_path: Path, postgres_url: str) -> None:
    """A key whose quota is exhausted, as one gateway learns, is not tried by the other."""
    keys = {"KEY_A": "sk-pool-aaaaaaaa", "KEY_B": "sk-pool-bbbbbbbb"}
    with RawUpstream(lambda request: EMPTY if b"sk-pool-a" in request else OK, close=True) as upstream:
        settings = f"""
[gateway.upstreams.main]
wire = "openai"
url = "{upstream.url}"
key_envs = ["KEY_A", "KEY_B"]
"""
        with gateways(tmp_path, 2, settings, postgres_url, **keys) as found:
            shared_by(found)
            one, other = found
            with httpx.Client(timeout=60) as client:

                def ask(gateway: GatewayProcess) -> int:
                    asked = {"model": "small", "messages": [{"role": "user", "content": str(time.monotonic_ns())}]}
                    return client.post(f"{gateway.url}/v1/chat/completions", json=asked).status_code

                def states(gateway: GatewayProcess) -> list[str]:
                    return [key["state"] for key in gateway.status()["upstreams"][0]["keys"]]

                wait_until(lambda: ask(one) == 200 and "exhausted" in states(one))
                wait_until(lambda: states(other) == ["exhausted", "usable"])
                before = len(upstream.requests)
                assert [ask(other) for _ in range(4)] == [200] * 4
                assert all(b"sk-pool-b" in request for request in upstream.requests[before:])
    assert json.dumps(keys["KEY_A"]) not in one.log
