"""One request as it came: its wire, where it belongs, its headers and bytes. Parsed only when something has to change."""

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

# Of the connection, not of the request; and what the client library or we write anew.
_NOT_PASSED: Final = frozenset(
    {
        b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"te", b"trailer", b"trailers", b"upgrade", b"accept-encoding", b"expect",
    }
)  # fmt: skip
_OURS: Final = b"x-rung-"
_KEYS: Final = frozenset({b"x-api-key", b"authorization", b"api-key"})
_IDENTITY: Final = (b"accept-encoding", b"identity")
_MODEL: Final = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_STREAMS: Final = re.compile(rb'"stream"\s*:\s*true')
_EDGE: Final = 1_024  # bytes at both ends of a body in which its fields are looked for first
SESSION_HEADERS: Final = (b"x-rung-session", b"x-claude-code-session-id", b"session_id", b"x-session-id")
_AGENTS: Final = (b"x-claude-code-agent-id",)


class NotJson(RungError):
    """A body that is not a JSON object."""


@dataclass(slots=True, kw_only=True)
class InboundRequest:
    """What came in, and what was read off it."""

    wire: WireFormat
    upstream: UpstreamSettings
    target: str  # path and query
    headers: dict[bytes, bytes]
    passed: Headers
    body: bytes
    project: str = ""
    model: str = ""
    credential: int = 0
    dollars: float | None = None  # what is left on the key it came with
    key: str = ""
    models: tuple[str, ...] = ()  # those its key is for; none: all
    _parsed: dict[str, Any] | None = field(default=None)

    def parsed(self) -> dict[str, Any]:
        """The body as JSON; the same one each time, never to be changed."""
        if self._parsed is None:
            try:
                found = orjson.loads(self.body)
            except orjson.JSONDecodeError as error:
                raise NotJson(f"the body is not JSON: {error}") from None
            if not isinstance(found, dict):
                raise NotJson("the body is not a JSON object")
            self._parsed = found
        return self._parsed

    @property
    def streams(self) -> bool:
        """Does it ask for a stream? As far as can be seen without reading all of it."""
        body = self.body
        if len(body) <= 2 * _EDGE:
            return _STREAMS.search(body) is not None
        return _STREAMS.search(body[:_EDGE]) is not None or _STREAMS.search(body[-_EDGE:]) is not None

    @property
    def session(self) -> str:
        """The session it says it belongs to; empty when it does not say."""
        for name in SESSION_HEADERS:
            value = self.headers.get(name)
            if value:
                agents = b"/".join(self.headers[agent] for agent in _AGENTS if agent in self.headers)
                return (value + (b"/" + agents if agents else b"")).decode("latin-1")[:200]
        return ""

    @property
    def resent(self) -> int:
        """How many times the client has sent this already, as its SDK counts."""
        count = self.headers.get(b"x-stainless-retry-count", b"0")
        return int(count) if count.isdigit() and len(count) < 4 else 0  # noqa: PLR2004  # nobody tries a thousand times


def model_in(body: bytes) -> str:
    """The model a body names, as far as can be seen at its two ends; parsed where it stands further in."""
    found = _MODEL.search(body, 0, _EDGE) or _MODEL.search(body, max(0, len(body) - _EDGE))
    if found is None and len(body) > 2 * _EDGE:
        found = _MODEL.search(body)
    return found[1].decode("utf-8", "replace") if found is not None else ""


def passed_headers(headers: Headers, key: tuple[bytes, bytes] | None) -> Headers:
    """The headers that go on to the upstream; with a key of ours, not the client's."""
    left = [header for header in headers if header[0] not in _NOT_PASSED and not header[0].startswith(_OURS)]
    if key is not None:
        left = [header for header in left if header[0] not in _KEYS]
        left.append(key)
    left.append(_IDENTITY)
    return left
