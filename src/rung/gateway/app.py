"""The ASGI application: which request goes where, what is let in, and errors in the shape its client reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.gateway import response as answers
from rung.gateway.client_monitor import ClientMonitor
from rung.gateway.http.pool import held_key
from rung.gateway.inbound_request import InboundRequest, NotJson, model_in, passed_headers
from rung.gateway.keys import RequestRejected, admit
from rung.gateway.model_listing import is_lookup, look_up
from rung.gateway.phase_timeouts import BODY, PhaseTimer
from rung.gateway.recovery import handle
from rung.gateway.request_coalescing import ResponseRecorder
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

_PROJECT: Final = "/p/"
_OWN: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class ClientDisconnected(Exception):  # it says what happened
    """The client left before it had sent everything."""


class GatewayApp:
    """Plain ASGI: nothing between the server and the exchange."""

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
        if path.startswith(_PROJECT):
            project, _, rest = path[len(_PROJECT) :].partition("/")
            path = "/" + rest
        wire = PATHS.get(path)
        if wire is None and not path.startswith("/v1/"):
            wire = PATHS.get("/v1" + path)  # a base URL without /v1
            path = "/v1" + path if wire is not None else path
        if scope["method"] == "POST" and wire is not None:
            await self._call(wire, path, project, scope, receive, send)
        elif path in _OWN or (path == "/" and scope["method"] in ("HEAD", "GET")):
            await self._health(path, send)
        else:
            await self._passthrough(path, scope, receive, send)

    # -- calls of a model --------------------------------------------------------------------------------

    async def _call(
        self, wire: WireFormat, path: str, project: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        gateway = self.gateway
        limits = gateway.settings.limits
        if gateway.running >= limits.concurrency or self.draining:
            message = "the gateway is shutting down" if self.draining else f"{gateway.running} requests are under way"
            more = (b"retry-after", b"1")
            answer = answers.error(wire, 503 if self.draining else 529, message, more)
            retry = [(name, b"true" if name == b"x-should-retry" else value) for name, value in answer.headers]
            await _reply(send, answer._replace(headers=retry))
            return
        gateway.running += 1
        try:
            await self._admitted(wire, path, project, scope, receive, send)
        finally:
            gateway.running -= 1

    async def _admitted(
        self, wire: WireFormat, path: str, project: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        settings = self.gateway.settings
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        try:
            body = await _body(headers, receive, settings.limits.body, settings.limits.receive)
            call = self._read(wire, path, project, scope, headers, body)
            if self.gateway.costs.allowance.has_limits:
                await self.gateway.costs.load_session(call)
                self.gateway.costs.check(call, self.gateway.clock.now())
        except (NotJson, RequestRejected) as error:
            await _refuse(send, wire, error)
            return
        except ClientDisconnected:
            return
        joining = self.gateway.joining
        running = joining.running(call)
        if running is not None:
            self.gateway.metrics.add("rung_joined_total")
            await _unless_gone(running.follow(send), receive)
            return
        copy = ResponseRecorder(send)
        exchange = self.gateway.exchange(call, copy.send)
        vigil = ClientMonitor(exchange, receive, settings.header_hold_seconds, joining, copy)
        try:
            await handle(self.gateway, exchange)
        except asyncio.CancelledError:
            if not vigil.left:
                raise
            self.gateway.metrics.add("rung_cancelled_total")
        finally:
            vigil.end()
            joining.end(call, copy)

    def _read(
        self, wire: WireFormat, path: str, project: str, scope: Scope, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> InboundRequest:
        settings = self.gateway.settings
        upstream = settings.of_wire(wire.upstream)[0]
        named = dict(headers)
        query = scope["query_string"]
        project = project or named.get(b"x-rung-project", b"").decode("latin-1")[:100]
        secret = named.get(b"x-api-key") or named.get(b"authorization") or b""
        call = InboundRequest(
            wire=wire,
            upstream=upstream,
            target=f"{path}?{query.decode('latin-1')}" if query else path,
            headers=named,
            passed=passed_headers(headers, held_key(upstream)),
            body=body,
            project=project,
            model=model_in(body),
            credential=hash(secret) & 0xFFFFFFFF,
        )
        if body.lstrip()[:1] != b"{":
            call.parsed()
        if settings.keys:
            admit(settings.keys, call, secret, self.gateway.clock.now(), self.gateway.costs.spent)
        return call

    # -- everything else ---------------------------------------------------------------------------------

    async def _health(self, path: str, send: Send) -> None:
        """Health and counts."""
        gateway = self.gateway
        if path == "/metrics":
            open_circuits = sum(breaker.circuit != "closed" for _, breaker in gateway.breakers.items())
            text = gateway.metrics.text(
                running=gateway.running, circuits_open=open_circuits, retry_tokens=gateway.retry_budget.tokens
            )
            await _reply(send, answers.GatewayResponse(200, [_TEXT], text.encode()))
            return
        up = path != "/readyz" or (self.ready and not self.draining)
        body = orjson.dumps({"status": "ok" if up else "not ready", "running": gateway.running})
        await _reply(send, answers.GatewayResponse(200 if up else 503, [_JSON], body))

    async def _passthrough(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Whatever else an API has: passed on as it is, and its answer passed back as it comes."""
        gateway = self.gateway
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        wire, upstream = self._upstream_for(path, dict(headers))
        target = _raw(scope)
        try:
            body = await _body(headers, receive, gateway.settings.limits.body, gateway.settings.limits.receive)
            passed = passed_headers(headers, held_key(upstream))
            models: tuple[str, ...] = ()
            if gateway.settings.keys:
                named = dict(headers)
                secret = named.get(b"x-api-key") or named.get(b"authorization") or b""
                models = admit(gateway.settings.keys, None, secret, gateway.clock.now(), gateway.costs.spent).models
            if is_lookup(scope["method"], path):
                asked = (scope["method"], target, passed, body)
                await _reply(send, await look_up(gateway, wire, upstream, path, asked, models))
                return
            response = await asyncio.wait_for(
                gateway.client.send(upstream, scope["method"], target, passed, body),
                gateway.settings.timeouts.total,
            )
        except ClientDisconnected:
            return
        except RequestRejected as error:
            await _refuse(send, wire, error)
        except Exception as error:  # noqa: BLE001  # whatever goes wrong on the way there
            status = 504 if isinstance(error, TimeoutError) else 502
            text = error.evidence.text if isinstance(error, AttemptError) else evidence_of(error).text
            await _reply(send, answers.error(wire, status, f"{upstream.name} could not be asked: {text[:300]}"))
        else:
            try:
                async with asyncio.timeout(gateway.settings.timeouts.total):
                    await _pass_back(response, send)
            finally:
                response.close()

    def _upstream_for(self, path: str, headers: dict[bytes, bytes]) -> tuple[WireFormat, UpstreamSettings]:
        """The upstream a path belongs to."""
        theirs = path.startswith("/v1/messages") or b"anthropic-version" in headers
        name = ANTHROPIC if theirs else OPENAI
        return (MESSAGES if theirs else CHAT), self.gateway.settings.of_wire(name)[0]


def _raw(scope: Scope) -> str:
    """The path and query as they were written: what stands in them is not ours to read."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    if path.startswith(_PROJECT):
        path = "/" + path[len(_PROJECT) :].partition("/")[2]
    return f"{path}?{query}" if query else path


async def _pass_back(response: UpstreamResponse, send: Send) -> None:
    headers = answers.passed(response.raw_headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    while chunk := await response.piece():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _unless_gone(work: Coroutine[Any, Any, object], receive: Receive) -> None:
    """Do this for as long as the client is there."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        leaving.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, answer: GatewayResponse, *, close: bool = False) -> None:
    length = (b"content-length", str(len(answer.body)).encode())
    more = [(b"connection", b"close")] if close else []
    await send({"type": "http.response.start", "status": answer.status, "headers": [*answer.headers, length, *more]})
    await send({"type": "http.response.body", "body": answer.body})


async def _refuse(send: Send, wire: WireFormat, error: NotJson | RequestRejected) -> None:
    status, close = (error.status, error.close) if isinstance(error, RequestRejected) else (400, False)
    await _reply(send, answers.error(wire, status, str(error)), close=close)


async def _body(headers: list[tuple[bytes, bytes]], receive: Receive, most: int, seconds: float) -> bytes:
    """The whole body; one that is too large is refused before it has come."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > most:
            raise _too_large(most)
    try:
        return await _gathered(receive, most, seconds)
    except AttemptError:
        raise RequestRejected(408, "the request body timed out", close=True) from None


def _too_large(most: int) -> RequestRejected:
    return RequestRejected(413, f"the body is larger than {most} bytes", close=True)


async def _gathered(receive: Receive, most: int, seconds: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # we are in one
    with PhaseTimer(asyncio.get_running_loop(), task) as clock:
        clock.wait_for(BODY, seconds)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            body: bytes = message.get("body", b"")
            size += len(body)
            if size > most:
                raise _too_large(most)
            if not message.get("more_body"):
                return b"".join([*pieces, body]) if pieces else body
            pieces.append(body)


async def _lifespan(app: GatewayApp, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await app.gateway.begin()
            app.ready = True
            attending = asyncio.create_task(app.gateway.background_loop())
            await send({"type": "lifespan.startup.complete"})
        else:
            app.ready = False
            attending.cancel()
            await app.gateway.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
