"""Writer of one client response: headers before the first bytes, recovery details in x-rung-* headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.gateway import response as responses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.phase_timeouts import PhaseTimer
    from rung.gateway.response import GatewayResponse

    Headers = list[tuple[bytes, bytes]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

_OK: Final = 200
_ONE_ATTEMPT: Final = (b"x-rung-attempts", b"1")
_STREAM_HEADERS: Final = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))


class ResponseWriter:
    """State of the response to one client."""

    __slots__ = (
        "_has_comments",
        "_send",
        "_sent_notes",
        "attempts",
        "finished",
        "headers",
        "headers_sent",
        "notes",
        "timer",
    )

    def __init__(self, send: Send, *, has_comments: bool = True) -> None:
        self._send = send
        self._has_comments = has_comments  # the client ignores comments in a stream
        self.headers_sent = False  # the response headers were sent
        self.finished = False  # the last byte was sent
        self.headers: Headers = []  # of the upstream's stream
        self.timer: PhaseTimer | None = None  # of the running attempt
        self.attempts = 0
        self.notes: dict[str, Any] = {}  # values of the x-rung-* headers
        self._sent_notes: Headers = []  # x-rung-* headers that were sent

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send a chunk of a stream; send the headers before the first chunk."""
        if not data and not last:
            return
        if not self.headers_sent:
            self.headers_sent = True
            self._sent_notes = self._rung_headers()
            headers = [*(self.headers or _STREAM_HEADERS), *self._sent_notes]
            await self._send({"type": "http.response.start", "status": _OK, "headers": headers})
        elif last and self._has_comments:
            data = self._late_notes() + data
        timer = self.timer
        if timer is not None:
            timer.writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        if timer is not None:
            timer.writing = False
        self.finished = last

    async def reply(self, response: GatewayResponse) -> None:
        """Send a whole response."""
        self.headers_sent = self.finished = True
        length = (b"content-length", str(len(response.body)).encode())
        headers = [*response.headers, *self._rung_headers(), length]
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": response.body})

    def _late_notes(self) -> bytes:
        """Return the recovery details that came after the headers, as a comment of the event stream."""
        late = [header for header in self._rung_headers() if header not in self._sent_notes]
        return b": %b\n\n" % b"; ".join(b"%b: %b" % header for header in late) if late else b""

    def _rung_headers(self) -> Headers:
        return responses.rung_headers(attempts=self.attempts, **self.notes) if self.notes else [_ONE_ATTEMPT]
