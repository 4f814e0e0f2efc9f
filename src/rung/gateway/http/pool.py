"""The way to the upstreams: connections that are kept open, one exchange at a time, no redirects followed."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.connection import UpstreamConnection, UpstreamResponse

if TYPE_CHECKING:
    import ssl

    from rung.gateway.settings import GatewaySettings, UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_IDLE: Final = 60.0  # seconds a connection is kept without use
_STAGGER: Final = 0.25  # seconds after which the next address is tried beside the first
_REDIRECTS: Final = range(300, 400)
_BODILESS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_SPACES: Final = 2  # between the three words of a request's first line
_PORTS: Final = {"http": 80, "https": 443}


class Origin:
    """One place where connections go, and those that are free now."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.path = parts.path
        self.tls = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        named = f"[{self.host}]" if ":" in self.host else self.host
        named += "" if self.port == _PORTS[parts.scheme] else f":{self.port}"
        self.head = b"host: " + named.encode("idna" if not named.isascii() else "ascii") + b"\r\n"
        self.idle: list[UpstreamConnection] = []

    def free(self) -> UpstreamConnection | None:
        """The connection that was used last, of those that still stand."""
        while self.idle:
            connection = self.idle.pop()
            if connection.open and not connection.transport.is_closing():
                return connection
        return None


class ConnectionPool:
    """Connections that are kept open."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._connect = settings.timeouts.connect
        self._origins: dict[str, Origin] = {}
        self._open: set[UpstreamConnection] = set()
        self._tls: ssl.SSLContext | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        """Close them all."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in self._open:
            connection.transport.abort()
        await asyncio.sleep(0)

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> UpstreamResponse:
        """The answer to one request, its head read and its body not."""
        origin = self._origins.get(upstream.url)
        if origin is None:
            origin = self._origins[upstream.url] = Origin(upstream.url)
        lines = [b"%b: %b\r\n" % header for header in headers]
        path = joined(origin.path, target).encode("latin-1")
        first = b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), path)
        if body or method not in _BODILESS:
            lines.append(b"content-length: %d\r\n" % len(body))
        head = b"%b%b%b\r\n" % (first, origin.head, b"".join(lines))
        breaks = len(lines) + 3
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or first.count(b" ") != _SPACES:
            raise AttemptError("a header or the path has a line break or a space in it", finding=Kind.CONFIGURATION)
        connection = origin.free() or await self._connected(origin, upstream)
        response = await connection.ask(head, body, bodiless=method == "HEAD")
        if response.status in _REDIRECTS:
            response.close()
            # A client that followed it would take its key along.
            text = f"{upstream.name} answered with a redirect ({response.status}), which is not followed"
            raise AttemptError(text, finding=Kind.CONFIGURATION)
        return response

    async def _connected(self, origin: Origin, upstream: UpstreamSettings) -> UpstreamConnection:
        try:
            async with asyncio.timeout(self._connect):
                return await self._made(origin)
        except TimeoutError:
            text = f"{upstream.name} did not take a connection within {self._connect:g} s"
            raise AttemptError(text, finding=Kind.TIMEOUT) from None
        except OSError as error:
            told = evidence_of(error)
            raise AttemptError.of(told._replace(text=f"{upstream.name} cannot be reached: {told.text}")) from None

    async def _made(self, origin: Origin) -> UpstreamConnection:
        from aiohappyeyeballs import start_connection

        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        made = await start_connection(addresses, happy_eyeballs_delay=_STAGGER, interleave=1)
        # Waiting for more before a small piece is sent would cost 40 ms.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

        def free(connection: UpstreamConnection) -> None:
            origin.idle.append(connection)
            connection.since = loop.time()
            if self._sweeping is None:
                self._sweeping = loop.call_later(_IDLE, self._sweep, loop)

        def gone(connection: UpstreamConnection) -> None:
            self._open.discard(connection)
            if connection in origin.idle:
                origin.idle.remove(connection)

        tls = self._context() if origin.tls else None
        name = origin.host if origin.tls else None
        _, connection = await loop.create_connection(
            lambda: UpstreamConnection(free, gone), sock=made, ssl=tls, server_hostname=name
        )
        self._open.add(connection)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let those go that nobody has used for long: the other side soon would."""
        old = loop.time() - _IDLE
        for origin in self._origins.values():
            for connection in [one for one in origin.idle if one.since <= old]:
                connection.transport.close()
                origin.idle.remove(connection)
        some = any(origin.idle for origin in self._origins.values())
        self._sweeping = loop.call_later(_IDLE, self._sweep, loop) if some else None


def joined(path: str, target: str) -> str:
    """The path at an upstream, whether or not its own URL already ends in /v1."""
    return path + target.removeprefix("/v1") if path.endswith("/v1") and target.startswith("/v1/") else path + target


def held_key(upstream: UpstreamSettings) -> tuple[bytes, bytes] | None:
    """The header with the key that is held here for an upstream; None when the client's is passed on."""
    if not upstream.key_env:
        return None
    key = os.environ.get(upstream.key_env, "").encode("latin-1", "replace")
    return (b"x-api-key", key) if upstream.wire == "anthropic" else (b"authorization", b"Bearer " + key)
