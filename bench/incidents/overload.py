"""How soon after an overload calls are answered, and what they send until then, in virtual time.

One caller, or many at once, meet a provider that refuses every call for so many seconds from their first request: by the
library (each call waits by itself) and by the gateway (waiting calls share the probes of a circuit).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from bench.incidents import virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.incidents.world import Upstream

LENGTHS: Final = (10, 30, 60, 90, 300, 600)  # seconds
MANY: Final = 64
FAILURE_SECONDS: Final = 0.05


def main() -> None:
    """Print one row for each way in, number of callers and length."""
    virtual_time.install()  # before the modules that are measured are imported
    logging.getLogger("rung").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60, metavar="N", help="runs of one caller (default: 60)")
    runs = parser.parse_args().runs
    print("way in   callers  overload   first answer after its end      last answer   requests per caller   at once")
    print("                             median  95 %                    median        median  most          most")
    for name, way in (("library", _library), ("gateway", _gateway)):
        for callers in (1, MANY):
            for seconds in LENGTHS:
                _print_row(name, callers, seconds, [_played(way, callers, seconds, seed) for seed in range(runs if callers == 1 else max(3, runs // 12))])  # fmt: skip


def _print_row(name: str, callers: int, seconds: int, found: list[tuple[float, float, float, int]]) -> None:
    first, last, sent, at_once = (sorted(column) for column in zip(*found, strict=True))
    high = first[int(0.95 * (len(first) - 1))]
    print(
        f"{name:8} {callers:7} {seconds:7} s {statistics.median(first):10.1f} s {high:6.1f} s {statistics.median(last):20.1f} s"
        f" {statistics.median(sent):10.1f} {sent[-1]:6.1f} {at_once[-1]:10}",
        flush=True,
    )


def _played(
    way: Callable[[Upstream, int, float], Any], callers: int, seconds: float, seed: int
) -> tuple[float, float, float, int]:
    """Return when the first and the last call was answered after the end, and how many requests were sent until then.

    The requests: those of a caller with the answered one, and the most of one second after the first ten.
    """
    from bench.incidents.world import Outage, Upstream

    random.seed(seed)
    upstream = Upstream([Outage(0.0, seconds, 1.0)], random.Random(seed))
    answered = virtual_time.run(way(upstream, callers, time.monotonic()))
    assert len(answered) == callers
    during = [at for at in upstream.requests if at < seconds]
    late = [int(at) for at in during if at >= 10.0]
    return (
        min(answered) - seconds,
        max(answered) - seconds,
        len(during) / callers + 1,
        max(map(late.count, late), default=0),
    )


async def _library(upstream: Upstream, callers: int, began: float) -> list[float]:
    import rung

    async def attempt(request: rung.Request) -> str:
        asked = time.monotonic() - began
        if upstream.fails(asked):
            await asyncio.sleep(FAILURE_SECONDS)
            raise rung.AttemptError("Overloaded", status=529)
        await asyncio.sleep(0.8)
        return str(asked)

    policy = rung.policy("call", patience=3_000, seconds=4_000)
    breakers, budget = rung.BreakerRegistry(), rung.RetryBudget()

    async def call() -> float:
        request = rung.Request(prompt="x", model="a")
        outcome = await rung.recover(attempt, request, policy=policy, breakers=breakers, retry_budget=budget)
        assert outcome.ok, outcome
        return float(outcome.value or 0.0)

    return await asyncio.gather(*(call() for _ in range(callers)))


async def _gateway(upstream: Upstream, callers: int, began: float) -> list[float]:
    from bench.incidents import rung_gateway
    from bench.incidents.clients import Client
    from bench.incidents.world import Call
    from rung.gateway import circuit_waits

    vars(circuit_waits)["_MIN_POLL_SECONDS"] = 0.25
    vars(rung_gateway)["FAILURE_SECONDS"] = FAILURE_SECONDS
    gateway = rung_gateway.RungGateway("one model", {"first": upstream, "other model": upstream}, began)
    client = Client("SDK, 2 retries", retries=2)

    async def call(number: int) -> float:
        assert await client.call(gateway, Call(began + number / 1e6, 0.8))
        return time.monotonic() - began - 0.8

    return await asyncio.gather(*(call(number) for number in range(callers)))


if __name__ == "__main__":
    main()
