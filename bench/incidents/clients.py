"""Clients with their own retries, as their sources and our measurements show them, and the direct route.

The Python SDKs of Anthropic and OpenAI wait 0.5 s, doubled up to 8 s and shortened by up to a quarter, obey a
Retry-After of at most a minute and `x-should-retry`, and give each request 600 s. Claude Code makes ten retries, waits up
to 32 s and lengthens by up to a quarter (`make walls`: it lives for 178 to 186 s); it also repeats a stream that ends
with an error.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from bench.incidents.world import Call, Upstream

FAILURE_SECONDS: Final = 1.0  # how long a failing upstream takes to say so
MAX_OBEYED_SECONDS: Final = 60.0
OVERLOADED: Final = 529


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one request, as the client sees it."""

    is_ok: bool
    retry_after: float | None = None
    should_retry: bool | None = None
    has_started: bool = False  # the error came inside a stream


class Route(Protocol):
    """Way of a request to a model."""

    async def send(self, call: Call, attempt: int, *, stream: bool) -> Answer:
        """Send one request; the client's timeout cancels it."""
        ...


@dataclass(frozen=True, slots=True)
class Client:
    """A client: how often and how patiently it repeats."""

    name: str
    retries: int
    cap: float = 8.0
    shortest: float = 0.75  # of a wait
    longest: float = 1.0
    stream: bool = False
    timeout: float = 600.0

    async def call(self, route: Route, call: Call) -> bool:
        """Make a call; return whether it was answered."""
        for attempt in range(self.retries + 1):
            try:
                async with asyncio.timeout(self.timeout):
                    answer = await route.send(call, attempt, stream=self.stream)
            except TimeoutError:
                answer = Answer(is_ok=False)
            if answer.is_ok:
                return True
            is_final = answer.should_retry is False or (answer.has_started and self.name != "Claude Code")
            if is_final or attempt == self.retries:
                return False
            wait = min(0.5 * 2**attempt, self.cap) * random.uniform(self.shortest, self.longest)
            if answer.retry_after is not None and 0 < answer.retry_after <= MAX_OBEYED_SECONDS:
                wait = answer.retry_after
            await asyncio.sleep(wait)
        return False


CLIENTS: Final = (
    Client("SDK, 2 retries", 2),
    Client("SDK, 10 retries", 10),
    Client("Claude Code", 10, cap=32.0, shortest=1.0, longest=1.25, stream=True),
)


class Direct:
    """No gateway: the first provider's first model."""

    def __init__(self, upstreams: dict[str, Upstream], began: float) -> None:
        self._upstream, self._began = upstreams["first"], began

    async def send(self, call: Call, attempt: int, *, stream: bool) -> Answer:
        """Send a request to the provider."""
        return Answer(is_ok=await answered(self._upstream, call, self._began))


async def answered(upstream: Upstream, call: Call, began: float) -> bool:
    """Let an upstream answer; return whether it did. `began`: clock at the start of the incident."""
    if upstream.fails(time.monotonic() - began):
        await asyncio.sleep(FAILURE_SECONDS)
        return False
    await asyncio.sleep(call.seconds)
    return True
