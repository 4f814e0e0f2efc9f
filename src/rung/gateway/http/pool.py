"""Pool of keep-alive connections to the upstreams: one request at a time per connection, no redirects."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.connection import UpstreamConnection
from rung.gateway.http.origin import Origin, tls_context
from rung.gateway.http.proxy import open_tunnel

if TYPE_CHECKING:
    import ssl

    from rung.gateway.http.response import HttpResponse
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_MAX_IDLE_SECONDS: Final = 60.0  # idle connections are closed after this
_HAPPY_EYEBALLS_SECONDS: Final = 0.25  # Happy Eyeballs: delay before the next address is tried in parallel
_REDIRECTS: Final = range(300, 400)
_BODILESS_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
_REQUEST_LINE_SPACES: Final = 2  # between method, target and version
# These may be sent again if an idle connection turns out to be closed.
_IDEMPOTENT_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_NOT_MODIFIED: Final = 304


class ConnectionPool:
    """Keep-alive connection pool; implements `UpstreamClient`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._origins: dict[UpstreamSettings, Origin] = {}
        self._connections: set[UpstreamConnection] = set()
        self._tls: dict[tuple[str, ...], ssl.SSLContext | None] = {}
        self._sweep_timer: asyncio.TimerHandle | None = None
        self.reload(settings)

    def reload(self, settings: GatewaySettings) -> None:
        """Use the upstreams of these settings; raise ConfigError if one of them cannot be used."""
        self._origins |= {upstream: self._origin(upstream) for upstream in settings.upstreams}
        self._connect_timeout = settings.timeouts.connect

    def _origin(self, upstream: UpstreamSettings) -> Origin:
        origin = self._origins.get(upstream)
        if origin is None:
            key = (upstream.url.partition(":")[0], upstream.tls_ca_file, upstream.tls_cert_file, upstream.tls_key_file)
            if key not in self._tls:
                self._tls[key] = tls_context(upstream)
            origin = Origin(upstream, self._tls[key])
        return origin

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
        origin = self._origins.get(upstream)
        if origin is None:
            origin = self._origins[upstream] = self._origin(upstream)
        lines = origin.lines + [b"%b: %b\r\n" % header for header in headers]
        request_line = b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), origin.target(target))
        if body or method not in _BODILESS_METHODS:
            lines.append(b"content-length: %d\r\n" % len(body))
        head = b"%b%b\r\n" % (request_line, b"".join(lines))
        line_ends = len(lines) + 2
        if (
            head.count(b"\n") != line_ends
            or head.count(b"\r") != line_ends
            or request_line.count(b" ") != _REQUEST_LINE_SPACES
        ):
            raise AttemptError(
                "invalid request: a header or the path contains a line break or a space", finding=Kind.CONFIGURATION
            )
        response = await self._exchange(origin, upstream, method, head, body)
        if response.status in _REDIRECTS and not (response.status == _NOT_MODIFIED and method in ("GET", "HEAD")):
            response.close()
            # Following it would send the key to another host.
            text = f"upstream {upstream.name} returned a redirect ({response.status}); redirects are not followed"
            raise AttemptError(text, finding=Kind.CONFIGURATION)
        return response

    async def _exchange(
        self, origin: Origin, upstream: UpstreamSettings, method: str, head: bytes, body: bytes
    ) -> HttpResponse:
        idle = origin.take_idle()
        if idle is not None:
            try:
                return await idle.send_request(head, body, is_head_request=method == "HEAD")
            except AttemptError:
                if not idle.is_silent or method not in _IDEMPOTENT_METHODS:
                    raise
        connection = await self._connect(origin, upstream)
        return await connection.send_request(head, body, is_head_request=method == "HEAD")

    async def _connect(self, origin: Origin, upstream: UpstreamSettings) -> UpstreamConnection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await self._open_connection(origin)
        except TimeoutError:
            text = f"connection to upstream {upstream.name} timed out after {self._connect_timeout:g} s"
            raise AttemptError(text, finding=Kind.TIMEOUT) from None
        except OSError as error:
            evidence = evidence_of(error)
            through = f" through proxy {origin.proxy.url.address}" if origin.proxy is not None else ""
            text = f"cannot connect to upstream {upstream.name}{through}: {evidence.text}"
            raise AttemptError.of(evidence._replace(text=text)) from None

    async def _open_connection(self, origin: Origin) -> UpstreamConnection:
        from aiohappyeyeballs import start_connection

        loop = asyncio.get_running_loop()
        peer = origin.url if origin.proxy is None else origin.proxy.url
        addresses = await loop.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM)
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

        try:
            if origin.proxy is not None and origin.tls is not None:
                await open_tunnel(loop, sock, origin.proxy, origin.url)
        except BaseException:
            sock.close()
            raise
        name = origin.url.host if origin.tls is not None else None
        _, connection = await loop.create_connection(
            lambda: UpstreamConnection(on_idle, on_closed), sock=sock, ssl=origin.tls, server_hostname=name
        )
        self._connections.add(connection)
        return connection

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that were idle for too long, before the upstream does."""
        cutoff = loop.time() - _MAX_IDLE_SECONDS
        for origin in self._origins.values():
            for connection in [connection for connection in origin.idle if connection.idle_since <= cutoff]:
                connection.transport.close()
                origin.idle.remove(connection)
        has_idle = any(origin.idle for origin in self._origins.values())
        self._sweep_timer = loop.call_later(_MAX_IDLE_SECONDS, self._sweep, loop) if has_idle else None
