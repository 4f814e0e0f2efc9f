"""Responses to clients: passed-on upstream headers, error responses, and x-rung-* headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Kind, is_passing
from rung.gateway.upstream.headers import OWN_PREFIX, connection_named
from rung.wires.context_limit import CONTEXT_LIMIT_CODE, context_limit_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rung.core.domain.failures import Evidence, Failure
    from rung.gateway.keys import RequestRejected
    from rung.wires.registry import WireFormat

    Headers = list[tuple[bytes, bytes]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

_DROPPED_HEADERS: Final = frozenset(
    {
        b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"content-encoding", b"upgrade",
        b"trailer", b"proxy-authenticate", b"proxy-connection", b"te",
    }
)  # fmt: skip
_BODY_HEADERS: Final = (b"content-type", b"cache-control", b"etag")
_STATUSES: Final[Mapping[Kind, int]] = {
    Kind.RATE_LIMIT: 429,
    Kind.QUOTA_EXHAUSTED: 429,
    Kind.BUDGET_EXHAUSTED: 402,
    Kind.OVERLOADED: 529,
    Kind.TIMEOUT: 504,
    Kind.NETWORK: 502,
    Kind.STREAM_INTERRUPTED: 502,
    Kind.SERVICE_DOWN: 503,
    Kind.AUTH_ERROR: 401,
    Kind.MISSING_CREDENTIALS: 401,
    Kind.INVALID_REQUEST: 400,
    Kind.CONTEXT_LIMIT: 400,
    Kind.MODEL_UNAVAILABLE: 404,
    Kind.NOT_FOUND: 404,
    Kind.PERMISSION_DENIED: 403,
    Kind.MALFORMED_OUTPUT: 502,
    Kind.CONFIGURATION: 502,
    Kind.RESOURCE_EXHAUSTED: 502,
}
_SHOULD_RETRY: Final = b"x-should-retry"
_RETRY_AFTER: Final = (b"retry-after", b"retry-after-ms")
_UNSAFE_CHARACTERS: Final = re.compile(r"[^\x20-\x7e]+")
_MAX_VALUE_CHARACTERS: Final = 200


class GatewayResponse(NamedTuple):
    """A complete HTTP response."""

    status: int
    headers: Headers
    body: bytes


def headers_for_client(raw: Headers) -> Headers:
    """Return the upstream response headers that are passed on to the client; names are in lower case."""
    named = connection_named(raw)
    return [
        header
        for header in raw
        if header[0] not in _DROPPED_HEADERS and header[0] not in named and not header[0].startswith(OWN_PREFIX)
    ]


def stream_headers(response: GatewayResponse) -> Headers:
    """Return the headers of a whole response that is sent as a stream."""
    kept = [header for header in response.headers if header[0] not in _BODY_HEADERS]
    return [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), *kept]


async def send_whole(send: Send, response: GatewayResponse, *, close: bool = False) -> None:
    """Send a whole response; `close` tells the client that its connection is closed after it."""
    length = (b"content-length", str(len(response.body)).encode())
    headers = [*response.headers, length, *([(b"connection", b"close")] if close else [])]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def status_for(kind: Kind) -> int:
    """Return the HTTP status for a failure kind, for failures without an upstream status."""
    return _STATUSES.get(kind, 500)


def error_response(
    wire: WireFormat, status: int, message: str, *extra: tuple[bytes, bytes], code: str = ""
) -> GatewayResponse:
    """Return an error response of the gateway in the client's API format, marked not retryable."""
    response = upstream_error(wire, status, message, code)
    return response._replace(headers=[*response.headers, (_SHOULD_RETRY, b"false"), *extra])


def upstream_error(wire: WireFormat, status: int, message: str, code: str = "") -> GatewayResponse:
    """Return the error of an upstream that has sent no response, in the client's API format."""
    body = orjson.dumps(wire.bodies.error_body(status, message, code))
    return GatewayResponse(status, [(b"content-type", b"application/json")], body)


def context_limit_error(wire: WireFormat, failure: Failure) -> GatewayResponse:
    """Return the error of a full context window, with the code and in the words by which the client's agent knows it."""
    message = context_limit_message(wire.name, failure.message, failure.tokens)
    return upstream_error(wire, _STATUSES[Kind.CONTEXT_LIMIT], message, CONTEXT_LIMIT_CODE)


def translated_error(wire: WireFormat, response: GatewayResponse, evidence: Evidence) -> GatewayResponse:
    """Return the error response of an upstream with another API, in the client's format. The advice on retries stays."""
    kept = [header for header in response.headers if header[0] in (*_RETRY_AFTER, _SHOULD_RETRY)]
    failure = classify(evidence)
    if failure.kind is Kind.CONTEXT_LIMIT:
        error = context_limit_error(wire, failure)
    else:
        error = upstream_error(wire, response.status, failure.message)
    return error._replace(headers=[*error.headers, *kept])


def with_retry_advice(response: GatewayResponse, failure: Failure, wait: int = 0) -> GatewayResponse:
    """Return the final error with what a client needs for its own retries.

    After trouble that passes nothing is said against them, and the wait is named if it is known: that of the upstream, or
    `wait`, the seconds until the gateway tries the upstream again. Otherwise repeating the request cannot help.
    """
    headers = response.headers
    if not is_passing(failure):
        kept = [header for header in headers if header[0] != _SHOULD_RETRY]
        return response._replace(headers=[*kept, (_SHOULD_RETRY, b"false")])
    if wait > 0:
        headers = [header for header in headers if header[0] not in _RETRY_AFTER]  # it was sent some time ago
    elif failure.retry_after is None or any(name in _RETRY_AFTER for name, _ in headers):
        return response
    seconds = max(wait, 0 if failure.retry_after is None else int(failure.retry_after) + 1)
    return response._replace(headers=[*headers, (b"retry-after", str(seconds).encode())])


def rejection(wire: WireFormat, error: RequestRejected) -> GatewayResponse:
    """Return the response to a rejected request: when to try again, and whether a client should by itself."""
    extra = [] if error.retry_after is None else [(b"retry-after", str(error.retry_after).encode())]
    response = error_response(wire, error.status, str(error), *extra, code=error.code)
    if not error.should_retry:
        return response
    headers = [(name, b"true" if name == _SHOULD_RETRY else value) for name, value in response.headers]
    return response._replace(headers=headers)


def rung_headers(**values: Any) -> Headers:
    """Return x-rung-* headers, named after the arguments; skip empty values."""
    return [
        (
            b"x-rung-" + name.replace("_", "-").encode(),
            _UNSAFE_CHARACTERS.sub(" ", str(value))[:_MAX_VALUE_CHARACTERS].encode(),
        )
        for name, value in values.items()
        if value not in ("", None)
    ]
