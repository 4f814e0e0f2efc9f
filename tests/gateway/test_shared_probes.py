"""Many calls that wait for one upstream, on a clock of their own: one probe at a time, soon after the end, and no herd."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

import rung
from rung.gateway.circuit_waits import CircuitWaits
from rung.gateway.gateway import BREAKER_SETTINGS
from tests.fleet_simulation.virtual_time import VirtualLoop

CALLS = 64


class World:
    """An upstream that is overloaded for some seconds, and calls that begin with it."""

    def __init__(self, seconds: float, seed: int, hint: float | None = None) -> None:
        self.loop, self.ends, self.hint = VirtualLoop(), seconds, hint
        self.breakers = rung.BreakerRegistry(BREAKER_SETTINGS)
        self.waits = CircuitWaits(self.breakers, self.loop.time)
        self.chance = random.Random(seed)
        self.budget = rung.RetryBudget()
        self.refused: list[float] = []
        self.answered: list[float] = []

    def now(self) -> float:
        return self.loop.time()

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)

    async def asleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def attempt(self, request: rung.Request) -> str:
        asked = self.now()
        await asyncio.sleep(0.05)
        if asked < self.ends:
            self.refused.append(asked)
            raise rung.AttemptError("Overloaded", status=529, retry_after=self.hint)
        self.answered.append(asked)
        return request.model

    async def call(self) -> None:
        outcome: rung.Outcome[Any] = await rung.recover(
            self.attempt, rung.Request(prompt="x", model="a"), policy=rung.policy("call", patience=1_000, seconds=2_000),
            clock=self, jitter=self.chance.random, breakers=self.breakers, retry_budget=self.budget, service_waits=self.waits,
        )  # fmt: skip
        assert outcome.ok

    def run(self, calls: int) -> World:
        async def everything() -> None:
            await asyncio.gather(*(self.call() for _ in range(calls)))

        self.loop.run_until_complete(everything())
        return self


def test_one_call_is_answered_soon_after_the_end() -> None:
    """In the middle six seconds after the overload at most, with thirteen requests in one of 90 s."""
    played = [(seconds, World(seconds, seed).run(1)) for seconds in (10, 30, 60, 90, 300, 600) for seed in range(30)]
    assert median(world.answered[0] - seconds for seconds, world in played) <= 6
    assert max(world.answered[0] - seconds for seconds, world in played) <= 15
    assert median(len(world.refused) + 1 for seconds, world in played if seconds == 90) <= 13


@pytest.mark.parametrize("seconds", [30, 90, 300])
def test_one_probe_for_all(seconds: float) -> None:
    """After their first requests 64 calls send one probe every three seconds at most, and all follow the first success."""
    world = World(seconds, 1).run(CALLS)
    probes = [at for at in world.refused if at > 5]
    assert min(after - before for before, after in pairwise(probes)) >= 3
    assert len(world.refused) <= 2.2 * CALLS + seconds / 8
    assert world.answered[0] - seconds <= 15
    assert world.answered[-1] - world.answered[0] <= 10
    assert max(sum(at <= other < at + 0.1 for other in world.answered) for at in world.answered) <= CALLS / 2


def test_an_announced_time_is_obeyed_by_all() -> None:
    """While every refusal asks for 20 s, the probes of waiting calls are at least so far apart."""
    world = World(100, 1, hint=20.0).run(CALLS)
    probes = [at for at in world.refused if at > 25]
    assert len(probes) >= 2
    assert min(after - before for before, after in pairwise(probes)) >= 20
