"""Writer of one response to the client: headers before the first bytes, and what was done in x-rung-* headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.gateway import response as answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.phase_timeouts import PhaseTimer
    from rung.gateway.response import GatewayResponse

    Headers = list[tuple[bytes, bytes]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

_OK: Final = 200
_FIRST_TIME: Final = (b"x-rung-attempts", b"1")
_STREAM_HEADERS: Final = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))


class ResponseWriter:
    """State of the response to one client."""

    __slots__ = ("_send", "attempts", "begun", "clock", "headers", "notes", "over")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False  # the client has headers
        self.over = False  # the client has everything
        self.headers: Headers = []  # of the upstream's stream
        self.clock: PhaseTimer | None = None  # of the running attempt
        self.attempts = 0
        self.notes: dict[str, Any] = {}  # what was done, for the headers

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send a piece of a stream; the headers before the first one."""
        if not data and not last:
            return
        if not self.begun:
            self.begun = True
            headers = [*(self.headers or _STREAM_HEADERS), *self._done()]
            await self._send({"type": "http.response.start", "status": _OK, "headers": headers})
        clock = self.clock
        if clock is not None:
            clock.writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        if clock is not None:
            clock.writing = False
        self.over = last

    async def reply(self, answer: GatewayResponse) -> None:
        """Send a whole response."""
        self.begun = self.over = True
        length = (b"content-length", str(len(answer.body)).encode())
        headers = [*answer.headers, *self._done(), length]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer.body})

    def _done(self) -> Headers:
        return answers.done(attempts=self.attempts, **self.notes) if self.notes else [_FIRST_TIME]
