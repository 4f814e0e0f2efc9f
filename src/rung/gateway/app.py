"""ASGI application of the gateway: routing, admission, and errors in the client's API format."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.gateway import response as responses
from rung.gateway.client_monitor import ClientMonitor
from rung.gateway.http.pool import upstream_key_header
from rung.gateway.inbound_request import InboundRequest, NotJson, find_model, headers_for_upstream
from rung.gateway.keys import RequestRejected, authorize
from rung.gateway.model_listing import answer_lookup, is_lookup
from rung.gateway.phase_timeouts import BODY, PhaseTimer
from rung.gateway.recovery import handle
from rung.gateway.request_coalescing import ResponseRecorder
from rung.gateway.spending.paid_attempts import CallSpending, admit, release
from rung.wires.registry import ANTHROPIC, CHAT, MESSAGES, OPENAI, PATHS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from rung.gateway.gateway import Gateway
    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.response import GatewayResponse
    from rung.gateway.settings import UpstreamSettings
    from rung.wires.registry import WireFormat

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Scope = dict[str, Any]

_PROJECT_PREFIX: Final = "/p/"
_OWN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_JSON: Final = (b"content-type", b"application/json")
_PROMETHEUS_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class ClientDisconnected(Exception):
    """The client disconnected before it had sent the whole request."""


class GatewayApp:
    """Plain ASGI application: no framework between the server and the proxied call."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.ready = False
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _lifespan(self, receive, send)
            return
        path: str = scope["path"]
        project = ""
        if path.startswith(_PROJECT_PREFIX):
            project, _, rest = path[len(_PROJECT_PREFIX) :].partition("/")
            path = "/" + rest
        wire = PATHS.get(path)
        if wire is None and not path.startswith("/v1/"):
            wire = PATHS.get("/v1" + path)  # the client's base URL lacks /v1
            path = "/v1" + path if wire is not None else path
        if scope["method"] == "POST" and wire is not None:
            await self._limit_concurrency(wire, path, project, scope, receive, send)
        elif path in _OWN_PATHS or (path == "/" and scope["method"] in ("HEAD", "GET")):
            await self._health(path, send)
        else:
            await self._passthrough(path, scope, receive, send)

    # -- model calls -------------------------------------------------------------------------------------

    async def _limit_concurrency(
        self, wire: WireFormat, path: str, project: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        gateway = self.gateway
        limits = gateway.settings.limits
        if gateway.active_requests >= limits.concurrency or self.draining:
            message = (
                "gateway is shutting down"
                if self.draining
                else f"{gateway.active_requests} requests in flight: concurrency limit reached"
            )
            status = 503 if self.draining else 529
            await _reject(send, wire, RequestRejected(status, message, retry_after=1, should_retry=True))
            return
        gateway.active_requests += 1
        try:
            await self._proxy(wire, path, project, scope, receive, send)
        finally:
            gateway.active_requests -= 1

    async def _proxy(
        self, wire: WireFormat, path: str, project: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        settings = self.gateway.settings
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        try:
            body = await _read_body(headers, receive, settings.limits.body, settings.limits.receive)
            inbound = self._parse_request(wire, path, project, scope, headers, body)
            in_flight = self.gateway.in_flight
            recorded = in_flight.find(inbound)
            spending = CallSpending() if recorded is not None else await admit(self.gateway, inbound)
        except (NotJson, RequestRejected) as error:
            await _reject(send, wire, error)
            return
        except ClientDisconnected:
            return
        if recorded is not None:
            self.gateway.metrics.add("rung_joined_total")
            await _run_while_connected(recorded.follow(send), receive)
            return
        recorder = ResponseRecorder(send)
        proxied = self.gateway.new_proxied_call(inbound, recorder.send, spending)
        monitor = ClientMonitor(proxied, receive, settings.header_hold_seconds, in_flight, recorder)
        try:
            await handle(self.gateway, proxied)
        except asyncio.CancelledError:
            if not monitor.client_left:
                raise
            self.gateway.metrics.add("rung_cancelled_total")
        finally:
            monitor.stop()
            in_flight.finish(inbound, recorder)
            release(self.gateway, proxied)

    def _parse_request(
        self, wire: WireFormat, path: str, project: str, scope: Scope, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> InboundRequest:
        settings = self.gateway.settings
        upstream = settings.of_wire(wire.upstream)[0]
        by_name = dict(headers)
        query = scope["query_string"]
        project = project or by_name.get(b"x-rung-project", b"").decode("latin-1")[:100]
        secret = by_name.get(b"x-api-key") or by_name.get(b"authorization") or b""
        inbound = InboundRequest(
            wire=wire,
            upstream=upstream,
            target=f"{path}?{query.decode('latin-1')}" if query else path,
            headers=by_name,
            upstream_headers=headers_for_upstream(headers, upstream_key_header(upstream)),
            body=body,
            project=project,
            model=find_model(body),
            credential=hash(secret) & 0xFFFFFFFF,
        )
        if body.lstrip()[:1] != b"{":
            inbound.parsed()
        if settings.keys:
            authorize(settings.keys, inbound, secret, self.gateway.clock.now(), self.gateway.ledger.spent)
        return inbound

    # -- everything else ---------------------------------------------------------------------------------

    async def _health(self, path: str, send: Send) -> None:
        """Answer health checks and metrics scrapes."""
        gateway = self.gateway
        if path == "/metrics":
            open_circuits = sum(breaker.circuit != "closed" for _, breaker in gateway.breakers.items())
            text = gateway.metrics.text(
                running=gateway.active_requests, circuits_open=open_circuits, retry_tokens=gateway.retry_budget.tokens
            )
            await _reply(send, responses.GatewayResponse(200, [_PROMETHEUS_TEXT], text.encode()))
            return
        up = path != "/readyz" or (self.ready and not self.draining)
        body = orjson.dumps({"status": "ok" if up else "not ready", "running": gateway.active_requests})
        await _reply(send, responses.GatewayResponse(200 if up else 503, [_JSON], body))

    async def _passthrough(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward any other API request unchanged and stream its response back."""
        gateway = self.gateway
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        wire, upstream = self._upstream_for(path, dict(headers))
        target = _raw_target(scope)
        try:
            body = await _read_body(headers, receive, gateway.settings.limits.body, gateway.settings.limits.receive)
            upstream_headers = headers_for_upstream(headers, upstream_key_header(upstream))
            models: tuple[str, ...] = ()
            if gateway.settings.keys:
                by_name = dict(headers)
                secret = by_name.get(b"x-api-key") or by_name.get(b"authorization") or b""
                models = authorize(
                    gateway.settings.keys, None, secret, gateway.clock.now(), gateway.ledger.spent
                ).models
            if is_lookup(scope["method"], path):
                lookup = (scope["method"], target, upstream_headers, body)
                await _reply(send, await answer_lookup(gateway, wire, upstream, path, lookup, models))
                return
            response = await asyncio.wait_for(
                gateway.client.send(upstream, scope["method"], target, upstream_headers, body),
                gateway.settings.timeouts.total,
            )
        except ClientDisconnected:
            return
        except RequestRejected as error:
            await _reject(send, wire, error)
        except Exception as error:  # noqa: BLE001  # every upstream failure becomes an error response
            status = 504 if isinstance(error, TimeoutError) else 502
            text = error.evidence.text if isinstance(error, AttemptError) else evidence_of(error).text
            await _reply(
                send, responses.error_response(wire, status, f"upstream request failed ({upstream.name}): {text[:300]}")
            )
        else:
            try:
                async with asyncio.timeout(gateway.settings.timeouts.total):
                    await _stream_back(response, send)
            finally:
                response.close()

    def _upstream_for(self, path: str, headers: dict[bytes, bytes]) -> tuple[WireFormat, UpstreamSettings]:
        """Return the wire format and the upstream that serve a path."""
        is_anthropic = path.startswith("/v1/messages") or b"anthropic-version" in headers
        name = ANTHROPIC if is_anthropic else OPENAI
        return (MESSAGES if is_anthropic else CHAT), self.gateway.settings.of_wire(name)[0]


def _raw_target(scope: Scope) -> str:
    """Return path and query exactly as the client sent them, without the project prefix."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    if path.startswith(_PROJECT_PREFIX):
        path = "/" + path[len(_PROJECT_PREFIX) :].partition("/")[2]
    return f"{path}?{query}" if query else path


async def _stream_back(response: UpstreamResponse, send: Send) -> None:
    headers = responses.headers_for_client(response.raw_headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    while chunk := await response.read_chunk():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _run_while_connected(work: Coroutine[Any, Any, object], receive: Receive) -> None:
    """Run a coroutine until it ends or the client disconnects."""
    working = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, response: GatewayResponse, *, close: bool = False) -> None:
    length = (b"content-length", str(len(response.body)).encode())
    extra = [(b"connection", b"close")] if close else []
    await send(
        {"type": "http.response.start", "status": response.status, "headers": [*response.headers, length, *extra]}
    )
    await send({"type": "http.response.body", "body": response.body})


async def _reject(send: Send, wire: WireFormat, error: NotJson | RequestRejected) -> None:
    if isinstance(error, RequestRejected):
        await _reply(send, responses.rejection(wire, error), close=error.close)
    else:
        await _reply(send, responses.error_response(wire, 400, str(error)))


async def _read_body(headers: list[tuple[bytes, bytes]], receive: Receive, max_bytes: int, seconds: float) -> bytes:
    """Return the whole body; reject a body that is declared too large before reading it."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > max_bytes:
            raise _too_large(max_bytes)
    try:
        return await _receive_body(receive, max_bytes, seconds)
    except AttemptError:
        raise RequestRejected(408, "request body timed out", close=True) from None


def _too_large(max_bytes: int) -> RequestRejected:
    return RequestRejected(413, f"request body is larger than {max_bytes} bytes", close=True)


async def _receive_body(receive: Receive, max_bytes: int, seconds: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # runs inside a task
    with PhaseTimer(asyncio.get_running_loop(), task) as timer:
        timer.start_phase(BODY, seconds)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            body: bytes = message.get("body", b"")
            size += len(body)
            if size > max_bytes:
                raise _too_large(max_bytes)
            if not message.get("more_body"):
                return b"".join([*pieces, body]) if pieces else body
            pieces.append(body)


async def _lifespan(app: GatewayApp, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await app.gateway.load()
            app.ready = True
            background = asyncio.create_task(app.gateway.background_loop())
            await send({"type": "lifespan.startup.complete"})
        else:
            app.ready = False
            background.cancel()
            await app.gateway.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
