"""ASGI application of the gateway: routing, admission, and errors in the client's API format."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.gateway import response as responses
from rung.gateway.admission.call import Call, read_request, wire_of
from rung.gateway.admission.google_paths import may_have_key, with_header_credentials
from rung.gateway.admission.model_route import route_model
from rung.gateway.admission.request_body import ClientDisconnected, decode_body, receive_body
from rung.gateway.admission.routes import check_path, find_route, matches
from rung.gateway.call_replay import CallReplays
from rung.gateway.client_monitor import ClientMonitor, run_while_connected
from rung.gateway.inbound_request import NotJson
from rung.gateway.json_array import JsonArraySender
from rung.gateway.keys import RequestRejected, authenticate, check_project
from rung.gateway.passthrough import forward
from rung.gateway.recovery import handle
from rung.gateway.request_coalescing import ResponseRecorder
from rung.gateway.spending.paid_attempts import admit, release
from rung.gateway.status_page import STATUS_PATH, answer_status, upstream_metrics
from rung.wires.registry import GEMINI
from rung.wiring.request_origin import LOOPBACK_HOSTS, check_host, check_origin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.gateway import Gateway
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewayKey
    from rung.wires.registry import WireFormat

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Scope = dict[str, Any]

_OWN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_JSON: Final = (b"content-type", b"application/json")
_PROMETHEUS_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class GatewayApp:
    """Plain ASGI application: no framework between the server and the proxied call."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.ready = False
        self.draining = False  # not ready; what still arrives is served, for it would fail elsewhere
        self.replays = CallReplays(gateway)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _lifespan(self, receive, send)
            return
        headers = dict(scope["headers"])
        wire: WireFormat | None = None
        try:
            self._check_origin(headers)
            _check_protocol(headers)
            route = find_route(scope["raw_path"])
            wire = route.wire
            if scope["query_string"] and may_have_key(route.path):
                scope = with_header_credentials(scope)
                headers = dict(scope["headers"])
            if route.path == STATUS_PATH and scope["method"] == "GET":
                await responses.send_whole(send, answer_status(self.gateway, scope, headers))
            elif route.path in _OWN_PATHS or (route.path == "/" and scope["method"] in ("HEAD", "GET")):
                await self._health(route.path, send)
            else:
                await self._admit(Call(scope, route, headers), receive, send)
        except (NotJson, RequestRejected) as error:
            await _reject(send, wire or wire_of(scope["path"], headers), error)
        except ClientDisconnected:
            return

    # -- admission ---------------------------------------------------------------------------------------

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        """Reject unknown host names (DNS rebinding) and requests of other sites' pages."""
        gateway, host = self.gateway, headers.get(b"host", b"").decode("latin-1")
        unknown = check_host(host, gateway.host_names, allow_ip_hosts=gateway.settings.host not in LOOPBACK_HOSTS)
        if unknown is not None:
            text = f"{unknown.detail}; to accept it, add it to allowed_hosts in [gateway]"
            raise RequestRejected(unknown.status, text, close=True)
        origin, site = (
            headers[name].decode("latin-1") if name in headers else None for name in (b"origin", b"sec-fetch-site")
        )
        foreign = None if origin in gateway.settings.allowed_origins else check_origin(host, origin, site)
        if foreign is not None:
            raise RequestRejected(foreign.status, foreign.detail, close=True)

    async def _admit(self, call: Call, receive: Receive, send: Send) -> None:
        """Check the limits and the key of a request before its body is read, then handle it."""
        gateway = self.gateway
        gateway.received_requests += 1
        if gateway.active_requests >= gateway.settings.limits.concurrency:
            raise self._busy()
        key = self._check_key(call) if gateway.settings.keys else None
        if key is not None and key.requests_per_minute is not None:
            await gateway.fleet.take(key)
        gateway.active_requests += 1
        try:
            if call.method == "POST" and call.route.wire is not None and not self._is_forwarded(call):
                await self._proxy(call, key, receive, send)
            else:
                await forward(gateway, call, key, receive, send)
        finally:
            gateway.active_requests -= 1

    def _is_forwarded(self, call: Call) -> bool:
        """Return whether settings without an upstream of Gemini's API forward its model calls."""
        settings = self.gateway.settings
        if call.route.wire is not GEMINI or settings.of_wire(GEMINI.upstream):
            return False
        return any(matches(pattern, call.method, call.route.path) for pattern in settings.forward)

    def _busy(self) -> RequestRejected:
        message = f"{self.gateway.active_requests} requests in flight: concurrency limit reached"
        return RequestRejected(529, message, retry_after=self.gateway.circuit_waits.busy_seconds(), should_retry=True)

    def _check_key(self, call: Call) -> GatewayKey:
        """Return the key of a call, which may use its path and its project."""
        gateway, keys = self.gateway, self.gateway.settings.keys
        try:
            key = authenticate(keys, call.headers, gateway.clock.now(), gateway.ledger.spent)
            check_path(key, call.method, call.route)
            check_project(keys, key, call.project)
        except RequestRejected as error:
            error.close = call.has_large_body
            raise
        return key

    # -- model calls -------------------------------------------------------------------------------------

    async def _proxy(self, call: Call, key: GatewayKey | None, receive: Receive, send: Send) -> None:
        gateway = self.gateway
        settings = gateway.settings
        if call.wants_array:
            send = JsonArraySender(send).send
        body = await receive_body(call.headers, receive, settings.limits)
        inbound = read_request(settings, call, decode_body(call.headers, body, settings.limits.body), key)
        with suppress(NotJson):  # left to the upstream to reject
            gateway.references.resolve(inbound)
        if await self._join(inbound, receive, send):
            return
        await gateway.policies.prepare(inbound.project)
        route_model(gateway.upstream_table, gateway.settings, gateway.policy(inbound.project), inbound)
        spending = await admit(gateway, inbound)
        recorder = ResponseRecorder(send)
        proxied = gateway.new_proxied_call(inbound, recorder.send, spending)
        monitor = ClientMonitor(proxied, receive, gateway.in_flight, recorder)
        try:
            await handle(gateway, proxied)
        except asyncio.CancelledError:
            if not monitor.client_left:
                gateway.stopped_requests += 1
                raise
            gateway.metrics.add("rung_cancelled_total")
        finally:
            monitor.stop()
            gateway.in_flight.finish(inbound, recorder)
            release(gateway, proxied)

    async def _join(self, inbound: InboundRequest, receive: Receive, send: Send) -> bool:
        """Follow the request in flight that this one retries; return False if there is none, or it gave no answer."""
        recorded = self.gateway.in_flight.find(inbound)
        if recorded is None:
            return False
        self.gateway.metrics.add("rung_joined_total")
        is_connected = await run_while_connected(recorded.follow(send), receive)
        return recorded.has_started or not is_connected  # the first client may leave just before another one joins

    # -- the gateway's own paths -------------------------------------------------------------------------

    async def _health(self, path: str, send: Send) -> None:
        """Answer health checks and metrics scrapes."""
        gateway = self.gateway
        if path == "/metrics":
            open_circuits = sum(breaker.circuit != "closed" for _, breaker in gateway.breakers.items())
            text = gateway.metrics.text(
                running=gateway.active_requests, circuits_open=open_circuits, retry_tokens=gateway.retry_budget.tokens
            )
            text += upstream_metrics(gateway)
            await responses.send_whole(send, responses.GatewayResponse(200, [_PROMETHEUS_TEXT], text.encode()))
            return
        up = path != "/readyz" or (self.ready and not self.draining)
        body = orjson.dumps({"status": "ok" if up else "not ready", "running": gateway.active_requests})
        await responses.send_whole(send, responses.GatewayResponse(200 if up else 503, [_JSON], body))


def _check_protocol(headers: dict[bytes, bytes]) -> None:
    """Reject a WebSocket at once: clients that try one first, such as Codex, then use HTTP without waiting."""
    if headers.get(b"upgrade", b"").lower() == b"websocket":
        raise RequestRejected(426, "WebSocket connections are not supported; send the request over HTTP", close=True)


async def _reject(send: Send, wire: WireFormat, error: NotJson | RequestRejected) -> None:
    if isinstance(error, RequestRejected):
        await responses.send_whole(send, responses.rejection(wire, error), close=error.close)
    else:
        await responses.send_whole(send, responses.error_response(wire, 400, str(error)))


async def _lifespan(app: GatewayApp, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await app.gateway.load()
            app.ready = True
            background = asyncio.create_task(app.gateway.background_loop(app.replays.poll))
            exchange = asyncio.create_task(app.gateway.fleet.run())
            await send({"type": "lifespan.startup.complete"})
        else:
            app.ready = False
            background.cancel()
            exchange.cancel()
            if app.gateway.journal is not None:
                with suppress(StoreError, StoreUnavailable):
                    await asyncio.to_thread(app.replays.close, app.gateway.journal)
            await app.gateway.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
