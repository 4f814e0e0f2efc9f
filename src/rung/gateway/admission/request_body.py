"""Bodies of inbound requests: received within limits of size and time, and decompressed within the same size."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import AttemptError
from rung.gateway.keys import RequestRejected
from rung.gateway.phase_timeouts import BODY, PhaseTimer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.settings import SizeLimits

    Headers = list[tuple[bytes, bytes]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

_DECODED: Final = (b"gzip", b"x-gzip", b"deflate")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # some clients write one; JSON has none
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32  # detected by the first bytes


class ClientDisconnected(Exception):
    """The client disconnected before it had sent the whole request."""


async def receive_body(headers: dict[bytes, bytes], receive: Receive, limits: SizeLimits) -> bytes:
    """Return the whole body; reject a body that is declared too large before reading it."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body:
        raise _too_large(limits.body)
    try:
        return await _receive(receive, limits)
    except AttemptError:
        raise RequestRejected(408, "request body timed out", close=True) from None


def decode_body(headers: dict[bytes, bytes], body: bytes, max_bytes: int) -> bytes:
    """Return the decompressed body, without a byte order mark."""
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding in (b"", b"identity"):
        return body.removeprefix(_BYTE_ORDER_MARK)
    if encoding not in _DECODED:
        named = encoding.decode("latin-1")[:100]
        raise RequestRejected(415, f"content-encoding {named!r} is not supported; allowed: gzip, deflate, identity")
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        decoded = decoder.decompress(body, max_bytes + 1)
    except zlib.error:
        raise RequestRejected(400, f"request body is not valid {encoding.decode()} data") from None
    if len(decoded) > max_bytes:
        raise _too_large(max_bytes)
    if not decoder.eof or decoder.unused_data:
        raise RequestRejected(400, f"request body is not one complete {encoding.decode()} stream")
    return decoded.removeprefix(_BYTE_ORDER_MARK)


def _too_large(max_bytes: int) -> RequestRejected:
    return RequestRejected(413, f"request body is larger than {max_bytes} bytes", close=True)


async def _receive(receive: Receive, limits: SizeLimits) -> bytes:
    pieces: list[bytes] = []
    size = 0
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # runs inside a task
    with PhaseTimer(asyncio.get_running_loop(), task) as timer:
        timer.start_phase(BODY, limits.receive)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            body: bytes = message.get("body", b"")
            size += len(body)
            if size > limits.body:
                raise _too_large(limits.body)
            if not message.get("more_body"):
                return b"".join([*pieces, body]) if pieces else body
            pieces.append(body)
