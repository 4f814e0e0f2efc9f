"""Response of an upstream: its connection adds what it receives, and a reader takes the body in chunks."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Final, Protocol

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind, Phase
from rung.gateway.http.decoder import ENCODINGS, BodyDecoder
from rung.gateway.http.port import header_of

if TYPE_CHECKING:
    Headers = list[tuple[bytes, bytes]]

MAX_BUFFERED_BYTES: Final = 256 * 1024  # above this, reading from the upstream pauses
_SHOWN_BYTES: Final = 8  # of an unknown encoding; not enough to show a secret


class Connection(Protocol):
    """Connection of a response, as far as the response uses it."""

    def resume(self) -> None:
        """Continue reading after the buffer was drained."""

    def release(self, response: HttpResponse) -> None:
        """Detach the response."""


class HttpResponse:
    """Response of an upstream; its body is read in chunks, decompressed."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_decoder",
        "_error",
        "_received",
        "_waiter",
        "buffered_bytes",
        "raw_headers",
        "status",
    )

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.raw_headers: Headers = []  # names in lower case
        self.buffered_bytes = 0  # received, not yet read
        self._connection: Connection | None = connection
        self._chunks: list[bytes] = []
        self._received = False  # the connection has received the whole body
        self._error: AttemptError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._decoder: BodyDecoder | None = None

    @property
    def received(self) -> bool:
        """Return whether the connection has received the whole body."""
        return self._received

    @property
    def ended(self) -> bool:
        """Return whether the whole body was read, or is returned by the next read."""
        return self._received and (self._decoder is None or (not self._chunks and self._decoder.is_complete))

    async def head(self) -> None:
        """Wait for the status and the headers."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()
        encoding = header_of(self, b"content-encoding").lower()
        if encoding and encoding != b"identity":
            if encoding not in ENCODINGS:
                text = f"unsupported content-encoding: {encoding[:_SHOWN_BYTES].decode('latin-1')}"
                raise AttemptError(text, finding=Kind.SERVER_ERROR)
            self._decoder = BodyDecoder()

    async def read_chunk(self) -> bytes:
        """Return all bytes received since the last call, or the next decompressed piece of them; empty at the end."""
        decoder = self._decoder
        while True:
            if decoder is not None and decoder.has_more:
                await asyncio.sleep(0)  # let other requests run while a large body is decompressed
                if data := self._decode(decoder, b""):
                    return data
            elif self._chunks:
                data = self._take()
                if decoder is None or (data := self._decode(decoder, data)):
                    return data
            elif self._error is not None:
                raise self._error
            elif not self._received:
                await self._wait()
            elif decoder is not None and not decoder.is_complete:
                raise interrupted("compressed response body is incomplete")
            else:
                return b""

    def close(self) -> None:
        """Stop reading: reuse the connection if the response is complete, else close it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release(self)

    def _take(self) -> bytes:
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        if self.buffered_bytes > MAX_BUFFERED_BYTES and self._connection is not None:
            self._connection.resume()
        self.buffered_bytes = 0
        return data

    def _decode(self, decoder: BodyDecoder, data: bytes) -> bytes:
        try:
            return decoder.decode(data)
        except zlib.error:
            raise interrupted("response body cannot be decompressed") from None

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # -- called by the connection ------------------------------------------------------------------------

    def add_data(self, data: bytes) -> None:
        """Buffer received body data."""
        self._chunks.append(data)
        self.buffered_bytes += len(data)

    def end(self, error: AttemptError | None = None) -> None:
        """End the response, with an error if it is incomplete."""
        if not self._received and self._error is None:
            self._received, self._error = error is None, error
        self.wake()

    def wake(self) -> None:
        """Wake the reader."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def interrupted(text: str) -> AttemptError:
    """Return the failure of a response that began and cannot be read to its end."""
    return AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
