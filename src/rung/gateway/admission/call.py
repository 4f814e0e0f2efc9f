"""An inbound call between its headers and its body, and the model request that is read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.gateway.admission.google_paths import is_google_path
from rung.gateway.admission.routes import MAX_NAME_CHARACTERS
from rung.gateway.inbound_request import InboundRequest, caller_of, session_of
from rung.gateway.keys import check_models
from rung.gateway.sessions import qualified
from rung.gateway.upstream.headers import headers_for_upstream, is_anthropic_client
from rung.wires.gemini_path import asks_for_array, with_events
from rung.wires.registry import CHAT, GEMINI, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.gateway.admission.routes import Route
    from rung.gateway.settings import GatewayKey, GatewaySettings
    from rung.wires.registry import WireFormat

    Headers = list[tuple[bytes, bytes]]

_MAX_DISCARDED_BYTES: Final = 65_536  # of a rejected body; a connection with a larger one is closed


class Call(NamedTuple):
    """An HTTP request whose body has not been read."""

    scope: dict[str, Any]
    route: Route
    headers: dict[bytes, bytes]

    @property
    def method(self) -> str:
        """Return the HTTP method."""
        return str(self.scope["method"])

    @property
    def raw_headers(self) -> Headers:
        """Return all headers in order; names are in lower case."""
        raw: Headers = self.scope["headers"]
        return raw

    @property
    def target(self) -> str:
        """Return path and query for the upstream; the path is in normal form."""
        query = self.scope["query_string"]
        return f"{self.route.path}?{query.decode('latin-1')}" if query else self.route.path

    @property
    def project(self) -> str:
        """Return the project that the client names, in the path or in a header."""
        return self.route.project or self.headers.get(b"x-rung-project", b"").decode("latin-1")[:MAX_NAME_CHARACTERS]

    @property
    def wire(self) -> WireFormat:
        """Return the wire format of the path, else that of the API which the client probably speaks."""
        return self.route.wire or wire_of(self.route.path, self.headers)

    @property
    def wants_array(self) -> bool:
        """Return whether the client asks for a stream as a JSON array, not as server-sent events."""
        return self.route.wire is GEMINI and asks_for_array(self.target)

    @property
    def has_large_body(self) -> bool:
        """Return whether the unread body is so large, or of unknown size, that the connection is not worth keeping."""
        length = self.headers.get(b"content-length", b"0")
        return b"transfer-encoding" in self.headers or not length.isdigit() or int(length) > _MAX_DISCARDED_BYTES


def wire_of(path: str, headers: Mapping[bytes, bytes]) -> WireFormat:
    """Return the wire format for a path that is no model call."""
    if path.startswith("/v1/messages") or is_anthropic_client(headers):
        return MESSAGES
    return GEMINI if is_google_path(path) or b"x-goog-api-key" in headers else CHAT


def read_request(settings: GatewaySettings, call: Call, body: bytes, key: GatewayKey | None) -> InboundRequest:
    """Return the model request of a call with a decoded body, within the limits of its key."""
    wire, raw_headers, headers = call.wire, call.raw_headers, call.headers
    if b"content-encoding" in headers:  # the body is decoded
        raw_headers = [header for header in raw_headers if header[0] != b"content-encoding"]
        headers = dict(raw_headers)
    upstream = settings.own_or_any_upstream(wire.upstream)
    inbound = InboundRequest(
        wire=wire,
        upstream=upstream,
        target=with_events(call.target) if wire is GEMINI else call.target,
        raw_headers=raw_headers,
        headers=headers,
        upstream_headers=headers_for_upstream(raw_headers, upstream),
        body=body,
        project=call.project,
        caller=caller_of(raw_headers) if key is None else key.hash,
        session=session_of(headers),
    )
    if key is None:
        inbound.read_fields()
        return inbound
    parsed = inbound.parsed()
    inbound.read_fields()
    if wire is GEMINI:  # the path names the model
        parsed = {name: value for name, value in parsed.items() if name != "model"}
        check_models(key, {"model": inbound.model})
    else:
        check_models(key, parsed)
    inbound.replace_body(parsed)  # a field that the client named twice is sent once, as it was checked
    inbound.key_hash, inbound.allowed_models = key.hash, key.models
    inbound.project = key.project or inbound.project
    inbound.session = qualified(key.hash, inbound.session)
    inbound.key_dollars = key.dollars
    return inbound
