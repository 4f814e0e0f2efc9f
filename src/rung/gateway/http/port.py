"""Port to the upstreams: the methods that the gateway needs of an HTTP client.

`pool.ConnectionPool` implements it on HTTP/1.1. Another client (for a proxy, HTTP/2 or client certificates) can replace
it if it has these methods and raises `AttemptError` or `OSError` on failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from rung.gateway.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_OK: Final = 200
_BAD_REQUEST: Final = 400


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

    async def close(self) -> None:
        """Close all connections."""
        ...


async def read_body(response: UpstreamResponse) -> bytes:
    """Read the whole body."""
    first = await response.read_chunk()
    if response.ended:
        return first
    chunks = [first]
    while chunk := await response.read_chunk():
        chunks.append(chunk)
    return b"".join(chunks)


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
