"""The same request sent again while the first one is running: answered by that one, not asked a second time.

An SDK that has lost patience sends the same body once more and says so. Two who ask the same on purpose do
not say so, and are answered each by itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.inbound_request import InboundRequest

    Send = Callable[[dict[str, Any]], Awaitable[None]]

_KEPT: Final = 8 * 1024 * 1024  # bytes of an answer that are kept for who may join


class ResponseRecorder:
    """What a client was sent, for whoever joins; kept while its request runs."""

    def __init__(self, send: Send) -> None:
        self._first = send
        self._sent: list[dict[str, Any]] = []
        self._size = 0
        self._more = asyncio.Event()
        self._ended = False
        self.followers = 0
        self._abandoned: Callable[[], object] | None = None

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message to the first client, and keep it for the others."""
        self._size += len(message.get("body", b""))
        if self._size <= _KEPT:
            self._sent.append(message)
            self._more.set()
        await self._first(message)

    def leave(self, abandoned: Callable[[], object]) -> None:
        """The first client has left; others are still here. Called when the last of them has left, too."""

        async def nowhere(_: dict[str, Any]) -> None:
            return

        self._first = nowhere
        self._abandoned = abandoned

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True
        self._more.set()

    @property
    def complete(self) -> bool:
        """Is all of it here?"""
        return self._size <= _KEPT

    async def follow(self, send: Send) -> bool:
        """Send another client all of it, from its beginning to its end; False when that did not come."""
        self.followers += 1
        try:
            at = 0
            while True:
                while at < len(self._sent):
                    await send(self._sent[at])
                    at += 1
                if self._ended:
                    return at > 0 and not self._sent[-1].get("more_body", self._sent[-1]["type"].endswith("start"))
                self._more.clear()
                await self._more.wait()
        finally:
            self.followers -= 1
            if not self.followers and not self._ended and self._abandoned is not None:
                self._abandoned()


class InFlightRequests:
    """The requests that are running, by what they ask."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, int, bytes], ResponseRecorder] = {}

    def __len__(self) -> int:
        """How many can be joined now."""
        return len(self._running)

    def begin(self, call: InboundRequest, copy: ResponseRecorder) -> None:
        """This one has been running for a moment: others may join it."""
        self._running[_key(call)] = copy

    def end(self, call: InboundRequest, copy: ResponseRecorder) -> None:
        """It is over."""
        copy.end()
        if self._running and self._running.get(_key(call)) is copy:
            del self._running[_key(call)]

    def running(self, call: InboundRequest) -> ResponseRecorder | None:
        """The request this one was sent again for."""
        if not self._running or not (call.resent or b"idempotency-key" in call.headers):
            return None
        found = self._running.get(_key(call))
        return found if found is not None and found.complete else None


def _key(call: InboundRequest) -> tuple[str, int, bytes]:
    return (call.target, call.credential, call.body)
