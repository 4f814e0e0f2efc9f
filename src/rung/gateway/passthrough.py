"""Requests that are no model calls: model lists and token counts with retries, everything else forwarded once."""

from __future__ import annotations

import asyncio
from errno import ECONNRESET
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.gateway import response as responses
from rung.gateway.admission.request_body import decode_body, receive_body
from rung.gateway.admission.routes import find_forward
from rung.gateway.client_monitor import run_while_connected
from rung.gateway.http.server_protocol import RESET_EXTENSION
from rung.gateway.keys import RequestRejected, check_models
from rung.gateway.model_listing import COUNT_TOKENS, answer_lookup, is_lookup
from rung.gateway.upstream.headers import headers_for_upstream
from rung.wires.gemini_path import parse_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.admission.call import Call
    from rung.gateway.gateway import Gateway
    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.settings import GatewayKey

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]


_NO_RECOVERY: Final = (b"x-rung-recovery", b"none")  # the request was forwarded once, and its response as it came


async def forward(gateway: Gateway, call: Call, key: GatewayKey | None, receive: Receive, send: Send) -> None:
    """Forward a request and stream its response back."""
    settings, wire, path = gateway.settings, call.wire, call.route.path
    forwarded_to = find_forward(settings, key, call.method, call.route, call.headers)
    upstream = (
        settings.upstream(forwarded_to) if forwarded_to else settings.first_upstream(wire.upstream, is_model_call=False)
    )
    upstream = gateway.upstream_table.with_any_key(upstream, gateway.clock.now())
    body = await receive_body(call.headers, receive, settings.limits)
    raw_headers = call.raw_headers
    if key is not None and key.models:
        body = _check_body(key, path, decode_body(call.headers, body, settings.limits.body))
        raw_headers = [header for header in raw_headers if header[0] != b"content-encoding"]
    headers = headers_for_upstream(raw_headers, upstream)
    request = (call.method, call.target, headers, body)
    try:
        if is_lookup(call.method, path):
            models = key.models if key is not None else ()
            await responses.send_whole(send, await answer_lookup(gateway, wire, upstream, path, request, models))
            return
        response = await asyncio.wait_for(gateway.client.send(upstream, *request), settings.timeouts.total)
    except Exception as error:  # noqa: BLE001  # every upstream failure becomes an error response
        status = 504 if isinstance(error, TimeoutError) else 502
        text = error.evidence.text if isinstance(error, AttemptError) else evidence_of(error).text
        message = f"upstream request failed ({upstream.name}): {text[:300]}"
        await responses.send_whole(send, responses.error_response(wire, status, message, _NO_RECOVERY))
        return
    try:
        async with asyncio.timeout(settings.timeouts.total):
            await run_while_connected(_stream_back(response, send), receive)
    except (AttemptError, OSError) as error:
        if evidence_of(error).errno == ECONNRESET and (reset := call.scope.get("extensions", {}).get(RESET_EXTENSION)):
            reset()
        return  # the server closes an unfinished response, so the client sees that it is cut
    finally:
        response.close()


def _check_body(key: GatewayKey, path: str, body: bytes) -> bytes:
    """Return the body, as it was checked if it names a model. A path of Gemini's API names the model itself."""
    if (method := parse_path(path)) is not None:
        check_models(key, {"model": method.model})
        return body
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict) or "model" not in parsed:
        if path == COUNT_TOKENS:
            raise RequestRejected(400, "request body is not a JSON object with a model")
        return body
    check_models(key, parsed)
    return orjson.dumps(parsed)


async def _stream_back(response: UpstreamResponse, send: Send) -> None:
    headers = [*responses.headers_for_client(response.raw_headers), _NO_RECOVERY]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    while chunk := await response.read_chunk():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
