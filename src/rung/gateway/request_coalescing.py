"""Request coalescing (single-flight): a retry of a request that is still in flight joins it.

An SDK that times out sends the same body again and marks it as a retry. Only marked retries join; two identical
requests without the mark are independent.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.inbound_request import InboundRequest

    Send = Callable[[dict[str, Any]], Awaitable[None]]
    _Key = tuple[str, str, str, bytes, bytes]  # caller, project, target, digest of the headers, body

# Headers that differ between the tries of one request. All others, credentials and idempotency key included, must match.
_HEADERS_OF_ONE_TRY: Final = frozenset(
    {
        b"x-stainless-retry-count", b"x-stainless-read-timeout", b"x-stainless-timeout", b"connection", b"date",
        b"traceparent", b"tracestate", b"b3", b"sentry-trace", b"x-request-id", b"x-client-request-id",
        b"x-datadog-trace-id", b"x-datadog-parent-id", b"x-datadog-tags", b"x-datadog-sampling-priority",
    }
)  # fmt: skip
_MAX_RECORDED_BYTES: Final = 8 * 1024 * 1024  # a larger response cannot be joined


class ResponseRecorder:
    """Records the response to a client while its request is in flight, so that others can follow it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._messages: list[dict[str, Any]] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._finished = False
        self.followers = 0
        self._on_abandoned: Callable[[], object] | None = None

    async def send(self, message: dict[str, Any]) -> None:
        """Send an ASGI message to the first client and record it for followers."""
        self._size += len(message.get("body", b""))
        if self._size <= _MAX_RECORDED_BYTES:
            self._messages.append(message)
            self._changed.set()
        await self._send(message)

    def detach_client(self, on_abandoned: Callable[[], object]) -> None:
        """Stop sending to the first client; call `abandoned` when the last follower leaves."""

        async def discard(_: dict[str, Any]) -> None:
            return

        self._send = discard
        self._on_abandoned = on_abandoned

    def finish(self) -> None:
        """Mark the response as finished and wake followers."""
        self._finished = True
        self._changed.set()

    @property
    def has_started(self) -> bool:
        """Return whether a response was begun."""
        return bool(self._messages)

    @property
    def is_complete(self) -> bool:
        """Return whether everything sent so far is recorded."""
        return self._size <= _MAX_RECORDED_BYTES

    async def follow(self, send: Send) -> bool:
        """Send the whole response to another client; return whether it was complete."""
        self.followers += 1
        try:
            position = 0
            while True:
                while position < len(self._messages):
                    await send(self._messages[position])
                    position += 1
                if self._finished:
                    return position > 0 and not self._messages[-1].get(
                        "more_body", self._messages[-1]["type"].endswith("start")
                    )
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.followers -= 1
            if not self.followers and not self._finished and self._on_abandoned is not None:
                self._on_abandoned()


class InFlightRequests:
    """Requests in flight that a retry can join: those with the same target, headers and body."""

    def __init__(self) -> None:
        self._running: dict[_Key, ResponseRecorder] = {}

    def __len__(self) -> int:
        """Return the number of requests that can be joined."""
        return len(self._running)

    def register(self, inbound: InboundRequest, recorder: ResponseRecorder) -> None:
        """Let retries of a request join it."""
        self._running[_key(inbound)] = recorder

    def finish(self, inbound: InboundRequest, recorder: ResponseRecorder) -> None:
        """Mark a request as finished."""
        recorder.finish()
        if self._running and self._running.get(key := _key(inbound)) is recorder:
            del self._running[key]

    def find(self, inbound: InboundRequest) -> ResponseRecorder | None:
        """Return the recorder of the request in flight that this request retries; None if there is none."""
        if not self._running or not (inbound.retry_count or b"idempotency-key" in inbound.headers):
            return None
        recorder = self._running.get(_key(inbound))
        return recorder if recorder is not None and recorder.is_complete else None


def _key(inbound: InboundRequest) -> _Key:
    """Return everything that two requests must share: any header may identify the caller, known to us or not."""
    headers = b"\n".join([b"%b:%b" % header for header in inbound.raw_headers if header[0] not in _HEADERS_OF_ONE_TRY])
    return (inbound.caller, inbound.project, inbound.target, sha256(headers).digest(), inbound.body)
