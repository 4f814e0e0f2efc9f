"""What came back, and what the client gets: status, headers and bytes, with what was done in x-rung-* headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rung.wires.registry import WireFormat

    Headers = list[tuple[bytes, bytes]]

_NOT_PASSED: Final = frozenset(
    {b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"content-encoding", b"upgrade", b"trailer"}
)
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
}
_UNSAFE: Final = re.compile(r"[^\x20-\x7e]+")
_HEADER_LIMIT: Final = 200


class GatewayResponse(NamedTuple):
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes


def passed(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers of an answer that are the client's; names in lower case."""
    return [header for header in raw if header[0] not in _NOT_PASSED]


def status_of(kind: Kind) -> int:
    """The HTTP status that says this best, where the upstream said none."""
    return _STATUSES.get(kind, 500)


def error(wire: WireFormat, status: int, message: str, *more: tuple[bytes, bytes]) -> GatewayResponse:
    """An error of ours, in the shape the client's SDK parses; it is not to be tried again."""
    body = orjson.dumps(wire.bodies.error_body(status, message))
    return GatewayResponse(status, [(b"content-type", b"application/json"), (b"x-should-retry", b"false"), *more], body)


def done(**what: Any) -> Headers:
    """What was done, as headers: names from the arguments, nothing for what is empty."""
    return [
        (b"x-rung-" + name.replace("_", "-").encode(), _UNSAFE.sub(" ", str(value))[:_HEADER_LIMIT].encode())
        for name, value in what.items()
        if value not in ("", None)
    ]
