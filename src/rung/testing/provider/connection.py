"""HTTP/1.1 by hand, because a lab must be able to break it: one object for each connection."""

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

LARGEST_HEAD: Final = 64 * 1024
LARGEST_BODY: Final = 32 * 2**20  # Anthropic's own limit
BEFORE_BREAKING: Final = 0.05  # seconds: what was sent before arrives first, as it would from afar
RESET: Final = struct.pack("ii", 1, 0)  # to linger for no time: closing resets


@dataclass(slots=True)
class HttpRequest:
    """A request as it came in; a body over the limit is read and thrown away."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    too_large: bool = False


class RequestHandler(Protocol):
    """Who answers requests: `take` is given the connection to answer on."""

    def take(self, request: HttpRequest, connection: LabConnection) -> None:
        """Answer, now or later."""

    def opened(self, connection: LabConnection) -> None:
        """Somebody connected."""

    def closed(self, connection: LabConnection) -> None:
        """Somebody left."""

    def date(self) -> bytes:
        """The date's header."""


class LabConnection(asyncio.Protocol):
    """One client: reads requests one after another, writes answers, breaks off when told."""

    transport: asyncio.Transport

    def __init__(self, answers: RequestHandler) -> None:
        self.answers = answers
        self.buffer = bytearray()
        self.request: HttpRequest | None = None
        self.left = 0  # bytes of the body still to come; -1 while it is chunked
        self.last = False  # the client wants no other request answered here
        self.busy = False
        self.task: asyncio.Task[None] | None = None
        self.record: RequestRecord | None = None
        self.finish: Callable[[RequestRecord, str], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connected."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # asyncio's promise for TCP
        self.transport = transport
        self.answers.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The client left, or we did: whatever was being sent is over."""
        if self.task is not None:
            self.task.cancel()
        if self.record is not None and self.finish is not None:
            self.finish(self.record, "left")
            self.record = None
        self.answers.closed(self)

    def data_received(self, data: bytes) -> None:
        """Read on; answer each request that is complete, unless one is being answered."""
        self.buffer += data
        self.read_on()

    def read_on(self) -> None:
        """Take what is complete in the buffer."""
        while not self.busy and self.buffer and not self.transport.is_closing():
            if self.request is None and not self._read_head():
                return
            if not self._read_body():
                return
            request, self.request = self.request, None
            assert request is not None  # noqa: S101  # just read
            self.busy = True
            self.answers.take(request, self)

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self.buffer) > LARGEST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")
            return False
        lines = self.buffer[:end].decode("latin-1").split("\r\n")
        del self.buffer[: end + 4]
        words = lines[0].split(" ")
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                self._refuse(b"400 Bad Request")
                return False
            headers[name.lower()] = value.strip()
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal():  # noqa: PLR2004  # method, target, version
            self._refuse(b"400 Bad Request")
            return False
        self.request = HttpRequest(words[0], words[1], headers, b"")
        self.last = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        chunked = "chunked" in headers.get("transfer-encoding", "")
        self.left = -1 if chunked else int(length)
        self.request.too_large = self.left > LARGEST_BODY
        if headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _refuse(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.transport.close()

    def _read_body(self) -> bool:
        request = self.request
        assert request is not None  # noqa: S101  # its head was read
        if self.left < 0:
            return self._read_chunks(request)
        if request.too_large:
            gone = min(self.left, len(self.buffer))
            del self.buffer[:gone]
            self.left -= gone
            return self.left == 0
        if len(self.buffer) < self.left:
            return False
        if self.left:
            with memoryview(self.buffer) as view:  # one copy, not two
                request.body = bytes(view[: self.left])
            del self.buffer[: self.left]
        return True

    def _read_chunks(self, request: HttpRequest) -> bool:
        while True:
            end = self.buffer.find(b"\r\n")
            if end < 0:
                return False
            try:
                size = int(bytes(self.buffer[:end]).partition(b";")[0], 16)
            except ValueError:
                self._refuse(b"400 Bad Request")
                return False
            if len(self.buffer) < end + 2 + size + 2:
                return False
            request.body += bytes(self.buffer[end + 2 : end + 2 + size])
            del self.buffer[: end + 2 + size + 2]
            request.too_large = request.too_large or len(request.body) > LARGEST_BODY
            if size == 0:
                return True

    def write_whole(self, data: bytes) -> None:
        """An answer that is complete: the next request is taken."""
        self.busy = False
        self.transport.write(data)
        if self.last:
            self.transport.close()

    def deliver(
        self,
        reply: LabReply,
        mark: tuple[bytes, bytes],
        record: RequestRecord,
        finish: Callable[[RequestRecord, str], None],
    ) -> None:
        """Send an answer part by part, with its waits and its ending."""
        self.record, self.finish = record, finish
        self.task = asyncio.get_running_loop().create_task(self._deliver(reply, mark, record))

    async def _deliver(self, reply: LabReply, mark: tuple[bytes, bytes], record: RequestRecord) -> None:
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.head:
            self.transport.write(reply.head_bytes().replace(*mark) + self.answers.date())
        for at, part in enumerate(reply.framed()):
            if at == reply.stall_at:
                await self._stall(reply)
            elif at and reply.gap and reply.counts[at]:
                await asyncio.sleep(reply.gap)
            self.transport.write(part.replace(*mark))
            record.tokens += reply.counts[at]
        if reply.stall_at == len(reply.parts):
            await self._stall(reply)
        await self._end(reply)

    async def _stall(self, reply: LabReply) -> None:
        if not reply.ping:
            await asyncio.sleep(reply.stall)
            return
        left = reply.stall
        while left > 0:
            await asyncio.sleep(min(1.0, left))
            left -= 1.0
            self.transport.write(b"%x\r\n%b\r\n" % (len(reply.ping), reply.ping))

    async def _end(self, reply: LabReply) -> None:
        if reply.ending is not ReplyEnding.END and reply.head:
            await asyncio.sleep(BEFORE_BREAKING)
        record, self.record = self.record, None
        if record is not None and self.finish is not None:
            self.finish(record, "complete" if reply.ending is ReplyEnding.END else str(reply.ending))
        self.task = None
        if reply.ending is ReplyEnding.END:
            self.write_whole(reply.end_bytes)
            self.read_on()
        elif reply.ending is ReplyEnding.CLOSE:
            self.transport.close()
        else:
            self.reset()

    def reset(self) -> None:
        """Leave without a goodbye."""
        made = self.transport.get_extra_info("socket")
        if made is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()
