"""A TCP load balancer for tests: readiness checks over HTTP, new connections to ready servers in turn."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Self

CHECK_SECONDS = 0.05
_CHUNK = 65_536


@dataclass
class Server:
    """A server behind the balancer."""

    port: int
    is_ready: bool = False
    open: int = 0  # connections
    connections: int = 0  # in total


class Balancer:
    """Forwards bytes; a connection stays with its server, and a server that is not ready gets no new one."""

    def __init__(self) -> None:
        self.servers: list[Server] = []
        self._turn = 0
        self._changed = asyncio.Condition()
        self._checks: list[asyncio.Task[None]] = []
        self._forwards: set[asyncio.Task[None]] = set()  # they end with their clients

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        for task in self._checks:
            task.cancel()
        await asyncio.gather(*self._checks, *self._forwards, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def add(self, port: int) -> Server:
        """Add a server, which gets connections once it is ready."""
        self.servers.append(server := Server(port))
        self._checks.append(asyncio.create_task(self._check(server)))
        return server

    async def until_ready(self, server: Server, *, ready: bool = True) -> None:
        """Wait until the checks of a server succeed, or until one fails."""
        async with self._changed:
            await self._changed.wait_for(lambda: server.is_ready is ready)

    async def _check(self, server: Server) -> None:
        while True:
            is_ready = await _answers_ok(server.port, "/readyz")
            async with self._changed:
                server.is_ready = is_ready
                self._changed.notify_all()
            await asyncio.sleep(CHECK_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._forwards.add(task)
        task.add_done_callback(self._forwards.discard)
        with contextlib.suppress(OSError), contextlib.closing(writer):
            async with self._changed:
                await self._changed.wait_for(lambda: any(server.is_ready for server in self.servers))
            ready = [server for server in self.servers if server.is_ready]
            self._turn += 1
            await self._forward(ready[self._turn % len(ready)], reader, writer)

    async def _forward(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.open += 1
        server.connections += 1
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", server.port)
            with contextlib.closing(to_server):
                up = asyncio.create_task(_copy(reader, to_server))
                await _copy(from_server, writer)
                up.cancel()
        finally:
            server.open -= 1


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _answers_ok(port: int, path: str) -> bool:
    """Return whether the server answers a request with 200, on a connection of its own."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    with contextlib.closing(writer), contextlib.suppress(OSError):
        writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode())
        return (await reader.read(_CHUNK)).startswith(b"HTTP/1.1 200 ")
    return False
