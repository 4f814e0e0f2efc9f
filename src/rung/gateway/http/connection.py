"""A connection to an upstream: one request after another is written, each answer handed over as it comes.

HTTP/1.1 by httptools' parser and nothing between it and whoever waits: a client library costs more than all the
rest of a gateway. What it is not for: redirects, cookies, proxies, upgrades.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, Final

import httptools

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind, Phase
from rung.gateway.http.port import header_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Headers = list[tuple[bytes, bytes]]

_LARGEST_HEAD: Final = 256 * 1024
_MOST: Final = 256 * 1024  # bytes that wait for a reader; then the upstream waits
_JOINED: Final = 64 * 1024  # a larger body is not copied to stand behind its head
_AUTO: Final = 32 + zlib.MAX_WBITS  # gzip or deflate, as its first bytes say
_OK: Final = 200


class UpstreamResponse:
    """An answer: its head is here, its body comes."""

    __slots__ = ("_connection", "_decoder", "_ended", "_error", "_pieces", "_waiter", "raw_headers", "size", "status")

    def __init__(self, connection: UpstreamConnection) -> None:
        self.status = 0
        self.raw_headers: Headers = []  # names in lower case
        self.size = 0  # bytes that wait for a reader
        self._connection: UpstreamConnection | None = connection
        self._pieces: list[bytes] = []
        self._ended = False
        self._error: AttemptError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._decoder: Any = None

    @property
    def ended(self) -> bool:
        """Is all of it here?"""
        return self._ended

    async def head(self) -> None:
        """Wait for the head."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()
        encoding = header_of(self, b"content-encoding").lower()
        if encoding and encoding != b"identity":
            if encoding not in (b"gzip", b"x-gzip", b"deflate"):
                text = f"the answer is encoded as {encoding[:40].decode('latin-1')}, which was not asked for"
                raise AttemptError(text, finding=Kind.SERVER_ERROR)
            self._decoder = zlib.decompressobj(_AUTO)

    async def piece(self) -> bytes:
        """What has come since the last one; empty at the end."""
        while True:
            pieces = self._pieces
            if pieces:
                data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                if self.size > _MOST and self._connection is not None:
                    self._connection.resume()
                self.size = 0
                if self._decoder is None:
                    return data
                data = self._decoded(data)
                if data:
                    return data
            elif self._error is not None:
                raise self._error
            elif self._ended:
                return b""
            else:
                await self._wait()

    def close(self) -> None:
        """Nobody wants more of it: a connection on which nothing more comes is used again, any other one ends."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release(self)

    def _decoded(self, data: bytes) -> bytes:
        try:
            decoded: bytes = self._decoder.decompress(data)
        except zlib.error:
            raise _cut("the answer cannot be decompressed") from None
        return decoded

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # -- what the connection tells it --------------------------------------------------------------------

    def came(self, data: bytes) -> None:
        """A piece of the body has come."""
        self._pieces.append(data)
        self.size += len(data)

    def end(self, error: AttemptError | None = None) -> None:
        """Nothing more comes."""
        if not self._ended and self._error is None:
            self._ended, self._error = error is None, error
        self.wake()

    def wake(self) -> None:
        """Whoever waits shall look."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class UpstreamConnection(asyncio.Protocol):
    """One connection, one exchange at a time; `free` is told when it may be used again, `gone` when it may not."""

    transport: asyncio.Transport

    def __init__(
        self, free: Callable[[UpstreamConnection], object], gone: Callable[[UpstreamConnection], object]
    ) -> None:
        self._free = free
        self._gone = gone
        self.since = 0.0  # when it was last used
        self._response: UpstreamResponse | None = None
        self._bodies: list[bytes] = []
        self.on_body = self._bodies.append  # called for each chunk: not even a function of ours stands between
        self._parser = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._head = 0  # bytes of the head so far; -1: it is here
        self._bodiless = False  # it was asked with HEAD
        self._whole = False  # the parser has seen the end
        self._sized = False  # the answer says where it ends; else the connection's end is its end
        self._reusable = False  # the end has been seen, and another answer may follow
        self.open = False

    async def ask(self, head: bytes, body: bytes, *, bodiless: bool = False) -> UpstreamResponse:
        """Write a request; the answer, once its head has come."""
        response = self._response = UpstreamResponse(self)
        self._headers, self._head, self._bodiless = [], 0, bodiless
        self._whole = self._sized = self._reusable = False
        if len(body) <= _JOINED:
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

    def resume(self) -> None:
        """There is room again."""
        self.transport.resume_reading()

    def release(self, response: UpstreamResponse) -> None:
        """An answer is no longer wanted."""
        self._response = None
        if self._reusable and self.open and response.ended and not self.transport.get_write_buffer_size():
            self._free(self)
        else:  # what is still under way is not waited for
            self.open = False
            self.transport.abort()

    # -- what the loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """It stands."""
        self.transport = transport
        self.open = True

    def data_received(self, data: bytes) -> None:
        """Read on; what one piece of data brings is handed over at once, in however many chunks it is."""
        response = self._response
        if response is None or response.ended:  # nobody has asked for this
            self._drop("the upstream sent more than it was asked for")
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._whole:
                self._drop(f"the answer is not HTTP: {type(error).__name__}")
                return
            self._reusable = False  # there is more than was asked for
        if self._head >= 0:
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                self._drop("the headers are too large")
            return
        bodies = self._bodies
        if bodies:
            response.came(bodies[0] if len(bodies) == 1 else b"".join(bodies))
            bodies.clear()
            if response.size > _MOST and not self._whole:
                self.transport.pause_reading()
        if self._whole:
            response.end()
        else:
            response.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone, and what was under way with it; where nothing says how long an answer is, that is its end."""
        self.open = False
        self._gone(self)
        response = self._response
        if response is None or response.ended:
            return
        if self._head >= 0:
            lost = exc or ConnectionResetError("the upstream closed the connection without sending a response")
            response.end(AttemptError.of(evidence_of(lost)))
        elif exc is None and not self._sized:
            self._whole = True
            response.end()
        else:
            response.end(_cut("the upstream closed the connection without sending complete message body"))

    def _drop(self, text: str) -> None:
        response = self._response
        self.open = False
        if response is not None:
            told = _cut(text) if self._head < 0 else AttemptError(text, finding=Kind.NETWORK)
            response.end(told)
        self.transport.abort()

    # -- what the parser calls ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer begins; a second one to the same request is nobody's."""
        if self._whole:
            raise ValueError

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody reads."""
        if self._head >= 0:
            name = name.lower()
            self._headers.append((name, value))
            if name in (b"content-length", b"transfer-encoding"):
                self._sized = True

    def on_headers_complete(self) -> None:
        """The head is here, unless it only says that another one will come."""
        status = self._parser.get_status_code()
        if status < _OK:
            self._headers, self._sized = [], False
            return
        response = self._response
        if response is not None:
            response.status, response.raw_headers = status, self._headers
        self._head = -1
        self._whole = self._bodiless

    def on_message_complete(self) -> None:
        """The end."""
        if self._head < 0:
            self._whole = True
            self._reusable = self._parser.should_keep_alive() and self._sized


def _cut(text: str) -> AttemptError:
    return AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
