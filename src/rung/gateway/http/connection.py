"""HTTP/1.1 connection to an upstream: sends one request at a time and streams each response to its reader.

Built directly on httptools, because a general HTTP client costs more CPU time than the rest of the gateway. It does
not support redirects, cookies or upgrades.
"""

from __future__ import annotations

import asyncio
from errno import ECONNRESET
from typing import TYPE_CHECKING, Any, Final

import httptools

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.response import MAX_BUFFERED_BYTES, HttpResponse, interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    Headers = list[tuple[bytes, bytes]]

_MAX_HEAD_BYTES: Final = 256 * 1024
_MAX_OVERHEAD_BYTES: Final = 256 * 1024  # trailers and chunk headers without body data between them
_MAX_COMBINED_BYTES: Final = 64 * 1024  # a larger body is written separately instead of copied
_INFORMATIONAL: Final = range(100, 200)
_FINAL: Final = range(200, 600)


class UpstreamConnection(asyncio.Protocol):
    """One connection, one request at a time; calls back when it becomes idle and when it is closed."""

    transport: asyncio.Transport

    def __init__(
        self, on_idle: Callable[[UpstreamConnection], object], on_closed: Callable[[UpstreamConnection], object]
    ) -> None:
        self._on_idle = on_idle
        self._on_closed = on_closed
        self.idle_since = 0.0  # loop time at which it became idle
        self._response: HttpResponse | None = None
        self._body_chunks: list[bytes] = []
        self.on_body = self._body_chunks.append  # parser callback; a bound list.append avoids a Python call per chunk
        self._parser = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._head_bytes = 0  # received so far; -1: complete
        self._overhead_bytes = 0  # received since the last body data
        self._is_head_request = False  # the request was HEAD
        self._is_complete = False  # the parser has reached the end of the response
        self._has_length = False  # has content-length or transfer-encoding; else it ends when the connection closes
        self._reusable = False  # complete, and the upstream keeps the connection alive
        self.is_open = False

    async def send_request(self, head: bytes, body: bytes, *, is_head_request: bool = False) -> HttpResponse:
        """Send a request; return the response once its headers are received."""
        response = self._response = HttpResponse(self)
        self._headers, self._head_bytes, self._is_head_request = [], 0, is_head_request
        self._overhead_bytes = 0
        self._is_complete = self._has_length = self._reusable = False
        if len(body) <= _MAX_COMBINED_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        try:
            await response.head()
        except BaseException:
            response.close()
            raise
        return response

    @property
    def is_silent(self) -> bool:
        """Return whether no byte of a response to the last request was received."""
        return self._head_bytes == 0

    def resume(self) -> None:
        """Continue reading after the buffer was drained."""
        self.transport.resume_reading()

    def release(self, response: HttpResponse) -> None:
        """Detach a response: keep the connection if it is reusable, else abort it."""
        self._response = None
        if self._reusable and self.is_open and response.received and not self.transport.get_write_buffer_size():
            self._on_idle(self)
        else:  # do not wait for the rest of the response
            self.is_open = False
            self.transport.abort()

    # -- called by the event loop ------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Mark the connection as open."""
        self.transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Parse received data; pass all body chunks in it to the response at once."""
        response = self._response
        if response is None or response.received:  # unsolicited data
            self._abort("upstream sent unexpected data")
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._is_complete:
                self._abort(f"invalid HTTP response: {error.__context__ or type(error).__name__}")
                return
            self._reusable = False  # extra data after the response
        if self._head_bytes >= 0:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self._abort("response headers are too large")
            return
        body_chunks = self._body_chunks
        if self._is_head_request:
            body_chunks.clear()  # the upstream sent a body nevertheless
        if body_chunks:
            response.add_data(body_chunks[0] if len(body_chunks) == 1 else b"".join(body_chunks))
            body_chunks.clear()
            self._overhead_bytes = 0
            if response.buffered_bytes > MAX_BUFFERED_BYTES and not self._is_complete:
                self.transport.pause_reading()
        elif not self._is_complete:
            self._overhead_bytes += len(data)
            if self._overhead_bytes > _MAX_OVERHEAD_BYTES:
                self._abort("response trailers are too large")
                return
        if self._is_complete:
            response.end()
        else:
            response.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the current response: normally if it has no declared length, else with an error."""
        self.is_open = False
        self._on_closed(self)
        response = self._response
        if response is None or response.received:
            return
        if self._head_bytes >= 0:
            cause = exc or ConnectionResetError("upstream closed the connection without sending a response")
            response.end(AttemptError.of(evidence_of(cause)))
        elif exc is None and not self._has_length:
            self._is_complete = True
            response.end()
        else:
            error = interrupted("upstream closed the connection without sending complete message body")
            if isinstance(exc, ConnectionResetError):
                error = AttemptError.of(error.evidence._replace(errno=ECONNRESET))
            response.end(error)

    def _abort(self, text: str) -> None:
        response = self._response
        self.is_open = False
        if response is not None:
            failure = interrupted(text) if self._head_bytes < 0 else AttemptError(text, finding=Kind.NETWORK)
            response.end(failure)
        self.transport.abort()

    # -- called by the parser ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Reject a second response to the same request."""
        if self._is_complete:
            raise ValueError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; ignore trailers."""
        if self._head_bytes >= 0:
            name = name.lower()
            self._headers.append((name, value))
            if name in (b"content-length", b"transfer-encoding"):
                self._has_length = True

    def on_headers_complete(self) -> None:
        """Publish status and headers; skip informational (1xx) responses."""
        status = self._parser.get_status_code()
        if status not in _FINAL:
            if status not in _INFORMATIONAL:
                raise ValueError(f"status {status}")
            self._headers, self._has_length = [], False
            return
        response = self._response
        if response is not None:
            response.status, response.raw_headers = status, self._headers
        self._head_bytes = -1
        self._is_complete = self._is_head_request

    def on_message_complete(self) -> None:
        """Mark the response as complete."""
        if self._head_bytes < 0:
            self._is_complete = True
            self._reusable = self._parser.should_keep_alive() and self._has_length
