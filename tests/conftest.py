"""What the tests share: one way to recover in both modes, on a clock of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rung
from rung.testing import FakeClock, Script


class World:
    """A recovery in one of the two modes, with nothing shared with any other test."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.clock = FakeClock()
        self.breakers = rung.Breakers()
        self.retry_budget = rung.RetryBudget()

    def recover(self, attempt: Any, request: Any, **ports: Any) -> rung.Outcome[Any]:
        ports = {
            "clock": self.clock,
            "jitter": lambda: 0.5,
            "breakers": self.breakers,
            "retry_budget": self.retry_budget,
            **ports,
        }
        if self.mode == "sync":
            return rung.recover_sync(attempt, request, **ports)
        attempt = attempt.attempt if isinstance(attempt, Script) else attempt
        return asyncio.run(rung.recover(attempt, request, **ports))


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)
