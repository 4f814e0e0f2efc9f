"""One inbound model request: wire format, upstream, headers and body. The body is parsed only when needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from rung.gateway.settings import UpstreamSettings
    from rung.wires.registry import WireFormat

    Headers = list[tuple[bytes, bytes]]

# Hop-by-hop headers, and headers that the gateway writes itself.
_DROPPED_HEADERS: Final = frozenset(
    {
        b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"te", b"trailer", b"trailers", b"upgrade", b"accept-encoding", b"expect",
    }
)  # fmt: skip
_OWN_PREFIX: Final = b"x-rung-"
_CREDENTIAL_HEADERS: Final = frozenset({b"x-api-key", b"authorization", b"api-key"})
_NO_COMPRESSION: Final = (b"accept-encoding", b"identity")
_MODEL: Final = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_STREAM_TRUE: Final = re.compile(rb'"stream"\s*:\s*true')
_EDGE_BYTES: Final = 1_024  # fields are first searched in this many bytes at both ends of a body
SESSION_HEADERS: Final = (b"x-rung-session", b"x-claude-code-session-id", b"session_id", b"x-session-id")
_AGENT_HEADERS: Final = (b"x-claude-code-agent-id",)


class NotJson(RungError):
    """The request body is not a JSON object."""


@dataclass(slots=True, kw_only=True)
class InboundRequest:
    """An inbound request and what was derived from it."""

    wire: WireFormat
    upstream: UpstreamSettings
    target: str  # path and query
    headers: dict[bytes, bytes]
    upstream_headers: Headers
    body: bytes
    project: str = ""
    model: str = ""
    credential: int = 0
    key_dollars: float | None = None  # spend limit of the key
    key_hash: str = ""
    allowed_models: tuple[str, ...] = ()  # models the key is restricted to; empty: all
    hides_usage: bool = False  # the gateway asked for usage in the stream, not the client
    _parsed: dict[str, Any] | None = field(default=None)

    def parsed(self) -> dict[str, Any]:
        """Return the body as JSON. Cached: callers must not modify it."""
        if self._parsed is None:
            try:
                body = orjson.loads(self.body)
            except orjson.JSONDecodeError as error:
                raise NotJson(f"request body is not valid JSON: {error}") from None
            if not isinstance(body, dict):
                raise NotJson("request body is not a JSON object")
            self._parsed = body
        return self._parsed

    def replace_body(self, body: dict[str, Any]) -> None:
        """Send another body than the client's to the upstream."""
        self.body, self._parsed = orjson.dumps(body), body

    @property
    def is_stream(self) -> bool:
        """Return whether a stream is requested, from both ends of the body without parsing it."""
        body = self.body
        if len(body) <= 2 * _EDGE_BYTES:
            return _STREAM_TRUE.search(body) is not None
        return (
            _STREAM_TRUE.search(body[:_EDGE_BYTES]) is not None or _STREAM_TRUE.search(body[-_EDGE_BYTES:]) is not None
        )

    @property
    def session(self) -> str:
        """Return the session id from the headers; empty if there is none."""
        for name in SESSION_HEADERS:
            value = self.headers.get(name)
            if value:
                agents = b"/".join(self.headers[agent] for agent in _AGENT_HEADERS if agent in self.headers)
                return (value + (b"/" + agents if agents else b"")).decode("latin-1")[:200]
        return ""

    @property
    def retry_count(self) -> int:
        """Return how often the client's SDK has retried this request."""
        count = self.headers.get(b"x-stainless-retry-count", b"0")
        return int(count) if count.isdigit() and len(count) < 4 else 0  # noqa: PLR2004  # at most three digits


def find_model(body: bytes) -> str:
    """Return the model named in a body: search both ends first, then the whole body."""
    match = _MODEL.search(body, 0, _EDGE_BYTES) or _MODEL.search(body, max(0, len(body) - _EDGE_BYTES))
    if match is None and len(body) > 2 * _EDGE_BYTES:
        match = _MODEL.search(body)
    return match[1].decode("utf-8", "replace") if match is not None else ""


def headers_for_upstream(headers: Headers, key: tuple[bytes, bytes] | None) -> Headers:
    """Return the headers for the upstream; `key` replaces the client's credentials."""
    forwarded = [
        header for header in headers if header[0] not in _DROPPED_HEADERS and not header[0].startswith(_OWN_PREFIX)
    ]
    if key is not None:
        forwarded = [header for header in forwarded if header[0] not in _CREDENTIAL_HEADERS]
        forwarded.append(key)
    forwarded.append(_NO_COMPRESSION)
    return forwarded
