"""The provider's HTTP server on asyncio streams, and what a fault does to a response."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench.clients.provider import chat, gemini, messages, responses
from bench.clients.provider.script import FAULTS, STREAM_ONLY, Asked, Play, Turn, is_answer
from bench.clients.provider.sse import CALL, END, START, TEXT, Part

if TYPE_CHECKING:
    from types import ModuleType

WIRES: Final[dict[str, ModuleType]] = {"messages": messages, "chat": chat, "responses": responses, "gemini": gemini}
PATHS: Final = {"/messages": "messages", "/chat/completions": "chat", "/responses": "responses"}
STATUS: Final = {"429": 429, "529": 529, "500": 500, "502 page": 502}
PAGE: Final = (
    b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
)
REASONS: Final = {200: "OK", 404: "Not Found", 426: "Upgrade Required", 429: "Too Many Requests"}
PAUSE_SECONDS: Final = 0.005  # between the parts of a stream
SETTLE_SECONDS: Final = 0.1  # before a cut, so that the bytes before it arrive


class Cut(Exception):
    """The connection ends here: by a reset, or by closing it."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self.reset = reset


@dataclass(slots=True)
class Provider:
    """One provider for one task: a play, at most one fault, and what was asked."""

    play: Play
    fault: str | None = None
    requests: int = 0  # requests about the task
    struck: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[Any]] = field(default_factory=set)

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**24)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while True:
                await self._answer(reader, writer)
        except Cut as cut:
            if cut.reset:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the client left, or the provider stops
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        body = await _read_body(reader, headers)
        path = target.partition("?")[0]
        found = _ask(path, body) if method == "POST" else None
        if found is None:
            await _reply(writer, *_other(method, path, headers))
            return
        turn = self.play.respond(found)
        if turn is None:
            await self._send(writer, found, Turn(text="ok"), self._strike_other(found))
            return
        self.requests += 1
        await self._send(writer, found, turn, self._strike(found))

    def _strike(self, asked: Asked) -> str | None:
        """Return the fault that strikes this request."""
        if self.fault is None or self.struck or (self.fault in STREAM_ONLY and not asked.is_stream):
            return None
        if (FAULTS[self.fault] == "answer") != is_answer(self.play, asked):
            return None
        self.struck += 1
        return self.fault

    def _strike_other(self, asked: Asked) -> str | None:
        """Return the fault that strikes a request that is not about the task, such as one for a title."""
        return None

    async def _send(self, writer: asyncio.StreamWriter, asked: Asked, turn: Turn, fault: str | None) -> None:
        wire = WIRES[asked.wire]
        await _before_headers(writer, asked, fault)
        if fault == "empty message":
            turn = Turn()
        elif fault == "output limit":
            words = turn.text.split(" ")
            turn = Turn(text=" ".join(words[: len(words) // 2]), is_limited=True)
        number = id(turn) % 10**9 + self.requests
        if asked.is_stream:
            await _stream(writer, wire.stream(asked, turn, number), wire, fault)
        else:
            await _whole(writer, json.dumps(wire.whole(asked, turn, number), ensure_ascii=False).encode(), fault)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    body = b""
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _ask(path: str, body: bytes) -> Asked | None:
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    if ":" in path.rpartition("/")[2]:
        model, _, action = path.rpartition("/")[2].partition(":")
        is_known = action in ("streamGenerateContent", "generateContent")
        return gemini.read(parsed, model=model, is_stream=action.startswith("stream")) if is_known else None
    name = next((name for ending, name in PATHS.items() if path.endswith(ending)), None)
    asked: Asked | None = WIRES[name].read(parsed) if name else None
    return asked


def _other(method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Answer what is no call of the model: model lists, token counts, attempts to open a WebSocket."""
    if "upgrade" in headers:
        return 426, b"{}"
    if path.endswith("/models"):
        return 200, json.dumps({"object": "list", "data": [{"id": "m", "object": "model", "type": "model"}]}).encode()
    if path.endswith(("/count_tokens", ":countTokens")):
        return 200, json.dumps({"input_tokens": 100, "totalTokens": 100}).encode()
    if method in ("HEAD", "GET") and path == "/":
        return 200, b""
    return 404, json.dumps(chat.error(404, f"unknown path {path}")).encode()


async def _reply(
    writer: asyncio.StreamWriter, status: int, body: bytes, kind: str = "application/json", extra: str = ""
) -> None:
    reason = REASONS.get(status, "Error")
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _before_headers(writer: asyncio.StreamWriter, asked: Asked, fault: str | None) -> None:
    """Do what a fault does before a response has begun; raises Cut where that ends the request."""
    if fault is None:
        return
    if fault == "stall before headers":
        await _stall(writer)
    if fault.endswith("before headers"):
        raise Cut(reset=fault.startswith("reset"))
    if fault == "empty 200":
        kind = "text/event-stream" if asked.is_stream else "application/json"
        await _reply(writer, 200, b"", kind, "connection: close\r\n")
        raise Cut(reset=False)
    if fault in STATUS:
        status = 503 if fault == "529" and asked.wire != "messages" else STATUS[fault]
        body = PAGE if status == 502 else json.dumps(WIRES[asked.wire].error(status, f"fault {status}")).encode()
        kind = "text/html" if status == 502 else "application/json"
        await _reply(writer, status, body, kind, "retry-after: 1\r\n" if status == 429 else "")
        raise Cut(reset=False)


async def _stall(writer: asyncio.StreamWriter) -> None:
    """Send nothing more until the client leaves."""
    await writer.drain()
    while not writer.is_closing():  # noqa: ASYNC110  # a writer has no event for that
        await asyncio.sleep(0.05)
    raise Cut(reset=False)


async def _whole(writer: asyncio.StreamWriter, body: bytes, fault: str | None) -> None:
    if fault is None or not fault.startswith(("cut", "stall")):
        await _reply(writer, 200, body)
        return
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body[: len(body) // 2])
    await _break(writer, fault)


async def _stream(writer: asyncio.StreamWriter, parts: list[Part], wire: ModuleType, fault: str | None) -> None:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    for part in _until_fault(parts, fault):
        writer.write(b"%x\r\n%b\r\n" % (len(part.data), part.data))
        await writer.drain()
        await asyncio.sleep(PAUSE_SECONDS)
    if fault is not None and fault.startswith(("cut", "stall")):
        await _break(writer, fault)
    if fault is not None and fault.startswith("error event"):
        data = wire.error_event().data
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _break(writer: asyncio.StreamWriter, fault: str) -> None:
    await writer.drain()
    await asyncio.sleep(SETTLE_SECONDS)
    if fault.startswith("stall"):
        await _stall(writer)
    raise Cut(reset=fault != "cut by close")


def _until_fault(parts: list[Part], fault: str | None) -> list[Part]:
    """Return the parts that are sent before the fault."""
    if fault == "no end":
        return [part for part in parts if part.kind != END]
    if fault == "error event before text":
        return [part for part in parts if part.kind == START]
    if fault in ("cut by reset", "cut by close", "error event in text", "stall in text"):
        return _half(parts, TEXT)
    if fault in ("cut in call", "stall in call"):
        return _half(parts, CALL)
    return parts


def _half(parts: list[Part], kind: str) -> list[Part]:
    places = [place for place, part in enumerate(parts) if part.kind == kind]
    return parts[: places[len(places) // 2]] if places else parts[:1]
