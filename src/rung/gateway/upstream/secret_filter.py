"""Filter between the gateway and an upstream that got the gateway's own key: the key never comes back in a response.

Upstreams and proxies echo request headers in error pages and debug output. Patterns find keys of a known shape; here the
key itself is known, so it is cut by value, before the client, a log or the journal can see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.gateway.upstream.headers import upstream_key

if TYPE_CHECKING:
    from rung.gateway.http.port import UpstreamClient, UpstreamResponse
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_MIN_KEY_BYTES: Final = 8  # a shorter text is no secret, and may occur by chance
_REPLACEMENT: Final = b"<secret:upstream-key>"
_BEARER: Final = b"Bearer "
_SET_COOKIE: Final = b"set-cookie"  # belongs to the gateway's account, not to the client


class SecretFilter:
    """HTTP client that removes each upstream's own key from its responses."""

    def __init__(self, client: UpstreamClient) -> None:
        self._client = client
        self.reload, self.close = client.reload, client.close

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: Headers, body: bytes
    ) -> UpstreamResponse:
        """Send one request; return the response without the key that was sent."""
        response = await self._client.send(upstream, method, target, headers, body)
        key = _token(headers) if upstream.has_cloud_identity else upstream_key(upstream)
        return FilteredResponse(response, key) if len(key) >= _MIN_KEY_BYTES else response


def _token(headers: Headers) -> bytes:
    """Return the access token in the headers of a request; empty for a signature, which is of no use to others."""
    for name, value in headers:
        if name == b"authorization" and value.startswith(_BEARER):
            return value.removeprefix(_BEARER)
    return b""


class FilteredResponse:
    """Response without the given key; text that may be the beginning of the key is held until the next chunk."""

    __slots__ = ("_held", "_key", "_response", "close", "raw_headers", "status")

    def __init__(self, response: UpstreamResponse, key: bytes) -> None:
        self._response = response
        self._key = key
        self._held = b""
        self.status = response.status
        self.raw_headers = [
            (name, value.replace(key, _REPLACEMENT)) for name, value in response.raw_headers if name != _SET_COOKIE
        ]
        self.close = response.close

    @property
    def ended(self) -> bool:
        """Return whether the whole body was read."""
        return self._response.ended and not self._held

    async def read_chunk(self) -> bytes:
        """Return the next bytes without the key; empty at the end."""
        while chunk := await self._response.read_chunk():
            data = (self._held + chunk).replace(self._key, _REPLACEMENT)
            self._held = b"" if self._response.ended else self._possible_start(data)
            if len(data) > len(self._held):
                return data[: len(data) - len(self._held)]
        rest, self._held = self._held, b""
        return rest

    def _possible_start(self, data: bytes) -> bytes:
        """Return the longest end of the data with which the key begins."""
        at = max(0, len(data) - len(self._key) + 1)
        while (at := data.find(self._key[:1], at)) >= 0:
            if self._key.startswith(data[at:]):
                return data[at:]
            at += 1
        return b""
