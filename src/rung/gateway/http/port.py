"""Port to the upstreams: the methods that the gateway needs of an HTTP client.

`pool.ConnectionPool` implements it on HTTP/1.1. Another client (for HTTP/2, say) can replace it if it has these methods
and raises `AttemptError` or `OSError` on failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_OK: Final = 200
_BAD_REQUEST: Final = 400
_MAX_ERROR_BYTES: Final = 1024 * 1024  # a recovery keeps the errors of all its attempts


class UpstreamResponse(Protocol):
    """Response of an upstream: its headers have been read, its body not yet."""

    status: int
    raw_headers: Headers  # names in lower case

    @property
    def ended(self) -> bool:
        """Return whether the whole body was received."""
        ...

    async def read_chunk(self) -> bytes:
        """Return all bytes received since the last call, decompressed; empty at the end."""
        ...

    def close(self) -> None:
        """Discard the unread rest; may be called more than once."""
        ...


class UpstreamClient(Protocol):
    """HTTP client: no redirects, no retries, no cookies."""

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> UpstreamResponse:
        """Send one request; return the response once its headers are received."""
        ...

    def reload(self, settings: GatewaySettings) -> None:
        """Use the upstreams of these settings; raise ConfigError if one of them cannot be used."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


async def read_body(response: UpstreamResponse, max_bytes: int) -> bytes:
    """Read the whole body; raise AttemptError if it is larger. The body of an error is cut instead."""
    if response.status >= _BAD_REQUEST:
        max_bytes = min(max_bytes, _MAX_ERROR_BYTES)
    chunks = [await response.read_chunk()]
    size = len(chunks[0])
    while chunks[-1] and not response.ended and size <= max_bytes:
        chunks.append(await response.read_chunk())
        size += len(chunks[-1])
    body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    if size > max_bytes:
        if response.status < _BAD_REQUEST:
            raise too_large(max_bytes)
        body = body[:max_bytes]
    return body


def too_large(max_bytes: int) -> AttemptError:
    """Return the failure of an answer above the size limit; asking again would not make it smaller."""
    return AttemptError(f"answer is larger than {max_bytes} bytes (limits.answer)", finding=Kind.RESOURCE_EXHAUSTED)


def is_ok(response: UpstreamResponse) -> bool:
    """Return whether the status is a success or a redirect."""
    return _OK <= response.status < _BAD_REQUEST


def header_of(response: UpstreamResponse, name: bytes) -> bytes:
    """Return the value of a header; empty if there is none."""
    for header, value in response.raw_headers:
        if header == name:
            return value
    return b""


def text_headers(response: UpstreamResponse) -> dict[str, str]:
    """Return the headers as text, by lower-case name."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in response.raw_headers}
