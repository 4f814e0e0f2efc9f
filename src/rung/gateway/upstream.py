"""The way to the upstreams: one pool of connections, one exchange at a time, no redirects followed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from yarl import URL

from rung.core.errors import AttemptError
from rung.core.failures import Kind

if TYPE_CHECKING:
    from rung.gateway.settings import Settings, Upstream

_POOL: Final = 4_096
_IDLE: Final = 60.0
_REDIRECTS: Final = range(300, 400)
_LARGEST_LINE: Final = 64 * 1024


class Pool:
    """Connections that are kept open."""

    def __init__(self, settings: Settings) -> None:
        # It sets TCP_NODELAY itself: waiting for more before a small piece is sent would cost 40 ms.
        connector = aiohttp.TCPConnector(limit=_POOL, keepalive_timeout=_IDLE, ttl_dns_cache=60)
        self.session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.clocks.connect),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Content-Type", "Accept-Encoding"),
            raise_for_status=False,
            max_line_size=_LARGEST_LINE,
            max_field_size=_LARGEST_LINE,
            trust_env=False,
        )
        self._urls: dict[tuple[str, str], URL] = {}

    async def close(self) -> None:
        """Close them all."""
        await self.session.close()

    async def send(
        self, upstream: Upstream, method: str, target: str, headers: list[tuple[str, str]], body: Any
    ) -> aiohttp.ClientResponse:
        """The answer to one request, its headers read and its body not."""
        url = self._urls.get((upstream.url, target))
        if url is None:
            url = URL(joined(upstream.url, target), encoded=True)
            if len(self._urls) < _POOL and "?" not in target:
                self._urls[upstream.url, target] = url
        response = await self.session.request(method, url, data=body, headers=headers, allow_redirects=False)
        if response.status in _REDIRECTS:
            response.close()
            # A client that followed it would take its key along.
            text = f"{upstream.name} answered with a redirect ({response.status}), which is not followed"
            raise AttemptError(text, finding=Kind.CONFIGURATION)
        return response


def joined(url: str, target: str) -> str:
    """The URL of a path at an upstream, whether or not its own URL already ends in /v1."""
    return url + target.removeprefix("/v1") if url.endswith("/v1") and target.startswith("/v1/") else url + target


def held_key(upstream: Upstream) -> tuple[str, str] | None:
    """The header with the key that is held here for an upstream; None when the client's is passed on."""
    if not upstream.key_env:
        return None
    key = os.environ.get(upstream.key_env, "")
    if upstream.wire == "anthropic":
        return ("x-api-key", key)
    return ("authorization", f"Bearer {key}")
