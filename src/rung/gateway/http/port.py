"""Port to the upstreams: the four methods that the gateway needs of an HTTP client.

`upstream.Pool` implements it on HTTP/1.1. Another client (for a proxy, HTTP/2 or client certificates) takes its place
when it has these methods and raises `AttemptError` or `OSError` for what goes wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from rung.gateway.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_OK: Final = 200
_BAD: Final = 400


class UpstreamResponse(Protocol):
    """Response of an upstream: its head has been read, its body not yet."""

    status: int
    raw_headers: Headers  # names in lower case

    @property
    def ended(self) -> bool:
        """Whether the whole body has been received."""
        ...

    async def piece(self) -> bytes:
        """All bytes received since the last call, decompressed; empty at the end."""
        ...

    def close(self) -> None:
        """Drop what was not read; may be called more than once."""
        ...


class UpstreamClient(Protocol):
    """HTTP client: no redirects, no retries, no cookies."""

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> UpstreamResponse:
        """Send one request; the response, once its head has been received."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


async def read_body(response: UpstreamResponse) -> bytes:
    """The whole body."""
    first = await response.piece()
    if response.ended:
        return first
    pieces = [first]
    while piece := await response.piece():
        pieces.append(piece)
    return b"".join(pieces)


def is_ok(response: UpstreamResponse) -> bool:
    """Whether the status reports a success."""
    return _OK <= response.status < _BAD


def header_of(response: UpstreamResponse, name: bytes) -> bytes:
    """The value of a header; empty when there is none."""
    for known, value in response.raw_headers:
        if known == name:
            return value
    return b""


def text_headers(response: UpstreamResponse) -> dict[str, str]:
    """The headers as text, by their names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in response.raw_headers}
