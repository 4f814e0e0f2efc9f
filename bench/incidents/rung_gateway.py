"""The gateway itself, in this process: its ASGI application with default settings, on upstreams that fail as recorded."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final

from bench.incidents.clients import FAILURE_SECONDS, OVERLOADED, Answer
from bench.incidents.world import FIRST_TOKEN_SECONDS
from rung.core.policy.parser import parse_policy_file
from rung.gateway import circuit_waits
from rung.gateway.app import GatewayApp
from rung.gateway.gateway import Gateway
from rung.gateway.settings import settings_from

if TYPE_CHECKING:
    from bench.incidents.world import Call, Upstream
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

MODEL: Final = "sonnet"
OTHER_MODEL: Final = "haiku"
_ERROR: Final = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).encode()
_MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": None, "stop_sequence": None,
    "content": [], "usage": {"input_tokens": 9, "output_tokens": 1},
}  # fmt: skip
_WHOLE: Final = json.dumps(
    _MESSAGE | {"content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
).encode()
_EVENTS: Final = (
    {"type": "message_start", "message": _MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
)  # fmt: skip
_STREAM: Final = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in _EVENTS)


# A waiting call polls its circuit. Over days of virtual time, every 5 s is often enough; the probes come as always.
vars(circuit_waits)["_MIN_POLL_SECONDS"] = 5.0


class _Response:
    """Response of a simulated upstream."""

    def __init__(self, status: int, body: bytes, seconds: float, *, stream: bool) -> None:
        self.status = status
        self.raw_headers = [(b"content-type", b"text/event-stream" if stream else b"application/json")]
        self._body, self._seconds = body, seconds

    @property
    def ended(self) -> bool:
        return not self._body

    async def read_chunk(self) -> bytes:
        await asyncio.sleep(self._seconds)
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        self._body = b""


class _Client:
    """The gateway's upstream port, on simulated upstreams."""

    def __init__(self, upstreams: dict[tuple[str, str], Upstream], began: float) -> None:
        self._upstreams, self._began = upstreams, began

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> _Response:
        request = json.loads(body)
        simulated = self._upstreams[upstream.name, request["model"]]
        if simulated.fails(time.monotonic() - self._began):
            await asyncio.sleep(FAILURE_SECONDS)
            return _Response(OVERLOADED, _ERROR, 0.0, stream=False)
        seconds = float(request["metadata"]["user_id"])
        await asyncio.sleep(FIRST_TOKEN_SECONDS)
        stream = bool(request.get("stream"))
        return _Response(200, _STREAM if stream else _WHOLE, max(0.0, seconds - FIRST_TOKEN_SECONDS), stream=stream)

    def reload(self, settings: GatewaySettings) -> None:
        assert settings.upstreams

    async def close(self) -> None:
        """Nothing is open."""


class RungGateway:
    """A gateway with one model, two models of one provider, or two providers; everything else is default."""

    def __init__(self, route: str, upstreams: dict[str, Upstream], began: float) -> None:
        names = [MODEL, OTHER_MODEL] if route == "two models" else [MODEL]
        # With prices, nothing is looked up in a thread: one that stays in its pool would stop the virtual clock.
        prices = {name: {"input": 1.0, "output": 1.0} for name in (MODEL, OTHER_MODEL)}
        table: dict[str, Any] = {"anthropic": "http://first", "prices": prices}
        simulated = {("anthropic", MODEL): upstreams["first"], ("anthropic", OTHER_MODEL): upstreams["other model"]}
        if route == "two providers":
            table["upstreams"] = {
                "backup": {"wire": "anthropic", "url": "http://second", "client_credentials": "forward"}
            }
            simulated["backup", MODEL] = upstreams["second"]
        book = parse_policy_file({"policy": {"models": names}})
        gateway = Gateway(settings_from(table, book), client=_Client(simulated, began), log=lambda text: None)
        self._app = GatewayApp(gateway)

    async def send(self, call: Call, attempt: int, *, stream: bool) -> Answer:
        """Send a request to the gateway, with the headers of an SDK; leave it when the client's time is over."""
        request = {
            "model": MODEL, "max_tokens": 1_000, "stream": stream, "metadata": {"user_id": str(call.seconds)},
            "messages": [{"role": "user", "content": f"task of {call.at!r}"}],
        }  # fmt: skip
        exchange = _Exchange(json.dumps(request).encode())
        try:
            await self._app(exchange.scope(attempt), exchange.receive, exchange.send)
        except asyncio.CancelledError:
            exchange.left.set()
            raise
        return exchange.answer()


class _Exchange:
    """One request over ASGI and what came back."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.left = asyncio.Event()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.received = b""

    def scope(self, attempt: int) -> dict[str, Any]:
        headers = {
            "host": "127.0.0.1:8484", "content-type": "application/json", "x-api-key": "key", "anthropic-version": "2023-06-01",
            "content-length": str(len(self._body or b"")), "x-stainless-timeout": "600", "x-stainless-read-timeout": "600",
            "x-stainless-retry-count": str(attempt),
        }  # fmt: skip
        path = "/v1/messages"
        return {
            "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path, "raw_path": path.encode(),
            "query_string": b"", "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8484),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.received += message.get("body", b"")

    def answer(self) -> Answer:
        has_failed_inside = b"event: error" in self.received
        is_complete = b'"text": "done"' in self.received or b'"text":"done"' in self.received
        if self.status == 200 and is_complete and not has_failed_inside:
            return Answer(is_ok=True)
        retry_after = self.headers.get(b"retry-after")
        should_retry = self.headers.get(b"x-should-retry")
        return Answer(
            is_ok=False,
            retry_after=float(retry_after) if retry_after else None,
            should_retry=should_retry == b"true" if should_retry else None,
            has_started=self.status == 200,
        )
