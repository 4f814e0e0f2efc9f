"""Pool of keep-alive connections to the upstreams: one request at a time per connection, no redirects."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.connection import UpstreamConnection, HttpResponse

if TYPE_CHECKING:
    import ssl

    from rung.gateway.settings import GatewaySettings, UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_MAX_IDLE_SECONDS: Final = 60.0  # idle connections are closed after this
_HAPPY_EYEBALLS_SECONDS: Final = 0.25  # Happy Eyeballs: delay before the next address is tried in parallel
_REDIRECTS: Final = range(300, 400)
_BODILESS_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_REQUEST_LINE_SPACES: Final = 2  # between method, target and version
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Origin:
    """One scheme, host and port, with its idle connections."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.path = parts.path
        self.tls = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or _DEFAULT_PORTS[parts.scheme]
        authority = f"[{self.host}]" if ":" in self.host else self.host
        authority += "" if self.port == _DEFAULT_PORTS[parts.scheme] else f":{self.port}"
        self.head = b"host: " + authority.encode("idna" if not authority.isascii() else "ascii") + b"\r\n"
        self.idle: list[UpstreamConnection] = []

    def take_idle(self) -> UpstreamConnection | None:
        """Return the most recently used open connection; None if there is none."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_open and not connection.transport.is_closing():
                return connection
        return None


class ConnectionPool:
    """Keep-alive connection pool; implements `UpstreamClient`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._connect_timeout = settings.timeouts.connect
        self._origins: dict[str, Origin] = {}
        self._connections: set[UpstreamConnection] = set()
        self._tls: ssl.SSLContext | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in self._connections:
            connection.transport.abort()
        await asyncio.sleep(0)

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> HttpResponse:
        """Send one request; return the response once its headers are received."""
        origin = self._origins.get(upstream.url)
        if origin is None:
            origin = self._origins[upstream.url] = Origin(upstream.url)
        lines = [b"%b: %b\r\n" % header for header in headers]
        path = join_path(origin.path, target).encode("latin-1")
        request_line = b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), path)
        if body or method not in _BODILESS_METHODS:
            lines.append(b"content-length: %d\r\n" % len(body))
        head = b"%b%b%b\r\n" % (request_line, origin.head, b"".join(lines))
        line_ends = len(lines) + 3
        if (
            head.count(b"\n") != line_ends
            or head.count(b"\r") != line_ends
            or request_line.count(b" ") != _REQUEST_LINE_SPACES
        ):
            raise AttemptError(
                "invalid request: a header or the path contains a line break or a space", finding=Kind.CONFIGURATION
            )
        connection = origin.take_idle() or await self._connect(origin, upstream)
        response = await connection.send_request(head, body, is_head_request=method == "HEAD")
        if response.status in _REDIRECTS:
            response.close()
            # Following it would send the key to another host.
            text = f"upstream {upstream.name} returned a redirect ({response.status}); redirects are not followed"
            raise AttemptError(text, finding=Kind.CONFIGURATION)
        return response

    async def _connect(self, origin: Origin, upstream: UpstreamSettings) -> UpstreamConnection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await self._open_connection(origin)
        except TimeoutError:
            text = f"connection to upstream {upstream.name} timed out after {self._connect_timeout:g} s"
            raise AttemptError(text, finding=Kind.TIMEOUT) from None
        except OSError as error:
            evidence = evidence_of(error)
            raise AttemptError.of(
                evidence._replace(text=f"cannot connect to upstream {upstream.name}: {evidence.text}")
            ) from None

    async def _open_connection(self, origin: Origin) -> UpstreamConnection:
        from aiohappyeyeballs import start_connection

        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        sock = await start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_SECONDS, interleave=1)
        # Nagle's algorithm would delay small writes by 40 ms.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

        def on_idle(connection: UpstreamConnection) -> None:
            origin.idle.append(connection)
            connection.idle_since = loop.time()
            if self._sweep_timer is None:
                self._sweep_timer = loop.call_later(_MAX_IDLE_SECONDS, self._sweep, loop)

        def on_closed(connection: UpstreamConnection) -> None:
            self._connections.discard(connection)
            if connection in origin.idle:
                origin.idle.remove(connection)

        tls = self._context() if origin.tls else None
        name = origin.host if origin.tls else None
        _, connection = await loop.create_connection(
            lambda: UpstreamConnection(on_idle, on_closed), sock=sock, ssl=tls, server_hostname=name
        )
        self._connections.add(connection)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that were idle for too long, before the upstream does."""
        cutoff = loop.time() - _MAX_IDLE_SECONDS
        for origin in self._origins.values():
            for connection in [connection for connection in origin.idle if connection.idle_since <= cutoff]:
                connection.transport.close()
                origin.idle.remove(connection)
        has_idle = any(origin.idle for origin in self._origins.values())
        self._sweep_timer = loop.call_later(_MAX_IDLE_SECONDS, self._sweep, loop) if has_idle else None


def join_path(path: str, target: str) -> str:
    """Join an upstream's base path and a target, without repeating /v1."""
    return path + target.removeprefix("/v1") if path.endswith("/v1") and target.startswith("/v1/") else path + target


def upstream_key_header(upstream: UpstreamSettings) -> tuple[bytes, bytes] | None:
    """Return the header with the gateway's key for an upstream; None if the client's key is passed on."""
    if not upstream.key_env:
        return None
    key = os.environ.get(upstream.key_env, "").encode("latin-1", "replace")
    return (b"x-api-key", key) if upstream.wire == "anthropic" else (b"authorization", b"Bearer " + key)
