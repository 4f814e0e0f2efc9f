"""Task of the engine benchmark: steps that do nothing."""

from __future__ import annotations

import time
from typing import Any

import rung


async def nothing() -> None:
    """Do nothing, as a step."""


@rung.durable.task("steps")
async def steps(count: int) -> dict[str, Any]:
    """Run so many steps. Return when the run began and ended."""
    began = time.time()
    for number in range(count):
        await rung.durable.step(f"s{number}", nothing)
    return {"began": began, "ended": time.time()}
