"""A gateway for one cell, in a thread of this process; its timeouts are short, so that stalls end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import uvloop

from rung.core.policy.parser import parse_policy_file
from rung.gateway.serve import RunningGateway
from rung.gateway.settings import settings_from

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUTS: Final = {"connect": 2.0, "headers": 4.0, "total": 6.0, "first_token": 4.0, "idle": 3.0, "last_resort_factor": 1.0}  # fmt: skip
START_SECONDS: Final = 120.0
# A price that the settings have is not looked up, which would cost each cell a process of its own.
MODELS: Final = ("claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-x", "gpt-5.1", "gpt-4o", "gpt-x", "gpt-y", "qwen-x", "gemini-2.5-pro")  # fmt: skip
PRICES: Final = {model: {"input": 1.0, "output": 1.0} for model in MODELS}


@asynccontextmanager
async def gateway(provider_url: str, *, patience: float = 1.0) -> AsyncIterator[str]:
    """Run a gateway with the default policy in front of a provider; yields its address. Timeouts are times `patience`."""
    timeouts = {name: value * (1.0 if name == "last_resort_factor" else patience) for name, value in TIMEOUTS.items()}
    table = {"anthropic": provider_url, "openai": provider_url, "gemini": provider_url, "timeouts": timeouts}
    async with gateway_with(table, {}) as url:
        yield url


@asynccontextmanager
async def gateway_with(table: dict[str, Any], policy: dict[str, Any]) -> AsyncIterator[str]:
    """Run a gateway with these settings and this policy file, and the defaults for everything else."""
    started = threading.Event()
    settings = settings_from({"port": 0, "prices": PRICES, **table}, parse_policy_file(policy))
    served = RunningGateway(settings, None, lambda _: started.set())
    thread = threading.Thread(target=lambda: uvloop.run(served.run()), daemon=True)
    thread.start()
    if not await asyncio.to_thread(started.wait, START_SECONDS):
        raise RuntimeError("the gateway did not start")
    try:
        yield f"http://127.0.0.1:{served.port}"
    finally:
        served.stop()
        await asyncio.to_thread(thread.join, START_SECONDS)
