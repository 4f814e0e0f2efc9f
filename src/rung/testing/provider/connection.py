"""HTTP/1.1 server connection of the lab, written by hand so that faults can violate the protocol."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from rung.testing.provider.reply import ReplyEnding

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.testing.provider.reply import LabReply
    from rung.testing.provider.request_log import RequestRecord

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 32 * 2**20  # Anthropic's own limit
BREAK_DELAY_SECONDS: Final = 0.05  # lets data sent before the break arrive first
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER with zero timeout: closing sends RST


@dataclass(slots=True)
class HttpRequest:
    """A received request; a body over the limit is read and discarded."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    too_large: bool = False


class RequestHandler(Protocol):
    """Handles the requests of connections."""

    def handle(self, request: HttpRequest, connection: LabConnection) -> None:
        """Answer a request on its connection, now or later."""

    def opened(self, connection: LabConnection) -> None:
        """Register a new connection."""

    def closed(self, connection: LabConnection) -> None:
        """Unregister a closed connection."""

    def date(self) -> bytes:
        """Return the date header and the blank line after the headers."""


class LabConnection(asyncio.Protocol):
    """Connection of one client: reads requests in sequence, writes replies, applies transport faults."""

    transport: asyncio.Transport

    def __init__(self, handler: RequestHandler) -> None:
        self.handler = handler
        self.buffer = bytearray()
        self.request: HttpRequest | None = None
        self.body_left = 0  # unread bytes of the body; -1 if it is chunked
        self.close_after = False  # close the connection after the current request
        self.busy = False
        self.task: asyncio.Task[None] | None = None
        self.record: RequestRecord | None = None
        self.finish: Callable[[RequestRecord, str], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # asyncio guarantees it for TCP
        self.transport = transport
        self.handler.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Stop sending, because either side closed the connection."""
        if self.task is not None:
            self.task.cancel()
        if self.record is not None and self.finish is not None:
            self.finish(self.record, "left")
            self.record = None
        self.handler.closed(self)

    def data_received(self, data: bytes) -> None:
        """Buffer data and process complete requests."""
        self.buffer += data
        self.process_buffer()

    def process_buffer(self) -> None:
        """Handle complete requests in the buffer, unless one is being answered."""
        while not self.busy and self.buffer and not self.transport.is_closing():
            if self.request is None and not self._read_head():
                return
            if not self._read_body():
                return
            request, self.request = self.request, None
            assert request is not None  # noqa: S101  # just read
            self.busy = True
            self.handler.handle(request, self)

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self.buffer) > MAX_HEAD_BYTES:
                self._reject(b"431 Request Header Fields Too Large")
            return False
        lines = self.buffer[:end].decode("latin-1").split("\r\n")
        del self.buffer[: end + 4]
        words = lines[0].split(" ")
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                self._reject(b"400 Bad Request")
                return False
            headers[name.lower()] = value.strip()
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal():  # noqa: PLR2004  # method, target, version
            self._reject(b"400 Bad Request")
            return False
        self.request = HttpRequest(words[0], words[1], headers, b"")
        self.close_after = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        chunked = "chunked" in headers.get("transfer-encoding", "")
        self.body_left = -1 if chunked else int(length)
        self.request.too_large = self.body_left > MAX_BODY_BYTES
        if headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _reject(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.transport.close()

    def _read_body(self) -> bool:
        request = self.request
        assert request is not None  # noqa: S101  # its head was read
        if self.body_left < 0:
            return self._read_chunks(request)
        if request.too_large:
            discarded = min(self.body_left, len(self.buffer))
            del self.buffer[:discarded]
            self.body_left -= discarded
            return self.body_left == 0
        if len(self.buffer) < self.body_left:
            return False
        if self.body_left:
            with memoryview(self.buffer) as view:  # avoids a second copy
                request.body = bytes(view[: self.body_left])
            del self.buffer[: self.body_left]
        return True

    def _read_chunks(self, request: HttpRequest) -> bool:
        while True:
            end = self.buffer.find(b"\r\n")
            if end < 0:
                return False
            try:
                size = int(bytes(self.buffer[:end]).partition(b";")[0], 16)
            except ValueError:
                self._reject(b"400 Bad Request")
                return False
            if len(self.buffer) < end + 2 + size + 2:
                return False
            request.body += bytes(self.buffer[end + 2 : end + 2 + size])
            del self.buffer[: end + 2 + size + 2]
            request.too_large = request.too_large or len(request.body) > MAX_BODY_BYTES
            if size == 0:
                return True

    def write_reply(self, data: bytes) -> None:
        """Write a complete reply; the next request can then be handled."""
        self.busy = False
        self.transport.write(data)
        if self.close_after:
            self.transport.close()

    def deliver(
        self,
        reply: LabReply,
        id_replacement: tuple[bytes, bytes],
        record: RequestRecord,
        finish: Callable[[RequestRecord, str], None],
    ) -> None:
        """Send a reply part by part, with its delays and its ending."""
        self.record, self.finish = record, finish
        self.task = asyncio.get_running_loop().create_task(self._deliver(reply, id_replacement, record))

    async def _deliver(self, reply: LabReply, id_replacement: tuple[bytes, bytes], record: RequestRecord) -> None:
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.head:
            self.transport.write(reply.head_bytes().replace(*id_replacement) + self.handler.date())
        for at, part in enumerate(reply.framed()):
            if at == reply.stall_at:
                await self._stall(reply)
            elif at and reply.gap and reply.counts[at]:
                await asyncio.sleep(reply.gap)
            self.transport.write(part.replace(*id_replacement))
            record.tokens += reply.counts[at]
        if reply.stall_at == len(reply.parts):
            await self._stall(reply)
        await self._end(reply)

    async def _stall(self, reply: LabReply) -> None:
        if not reply.ping:
            await asyncio.sleep(reply.stall)
            return
        remaining = reply.stall
        while remaining > 0:
            await asyncio.sleep(min(1.0, remaining))
            remaining -= 1.0
            self.transport.write(b"%x\r\n%b\r\n" % (len(reply.ping), reply.ping))

    async def _end(self, reply: LabReply) -> None:
        if reply.ending is not ReplyEnding.END and reply.head:
            await asyncio.sleep(BREAK_DELAY_SECONDS)
        record, self.record = self.record, None
        if record is not None and self.finish is not None:
            self.finish(record, "complete" if reply.ending is ReplyEnding.END else str(reply.ending))
        self.task = None
        if reply.ending is ReplyEnding.END:
            self.write_reply(reply.end_bytes)
            self.process_buffer()
        elif reply.ending is ReplyEnding.CLOSE:
            self.transport.close()
        else:
            self.reset()

    def reset(self) -> None:
        """Reset the connection."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        self.transport.abort()
