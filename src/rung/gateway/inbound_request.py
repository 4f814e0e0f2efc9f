"""One inbound model request: who sent it, wire format, upstream, headers, and the parsed body."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.domain.errors import RungError
from rung.gateway.admission.body_fields import scan_fields
from rung.wires.anthropic_threads import continues_thread
from rung.wires.gemini_path import STREAM, for_model, for_whole_answer, parse_path
from rung.wires.registry import GEMINI, MESSAGES
from rung.wires.wire_json import dump_json, json_object, load_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.policy import Model
    from rung.gateway.upstream.settings import UpstreamSettings
    from rung.wires.registry import WireFormat

    Headers = list[tuple[bytes, bytes]]

_CREDENTIAL_HEADERS: Final = frozenset({b"x-api-key", b"authorization", b"api-key"})
# Headers that identify the account of a client which passes its own credentials on.
_ACCOUNT_HEADERS: Final = _CREDENTIAL_HEADERS | {
    b"cookie", b"x-goog-api-key", b"ocp-apim-subscription-key", b"x-auth-token", b"openai-organization",
    b"openai-project", b"x-goog-user-project",
}  # fmt: skip
_MAX_NAME_CHARACTERS: Final = 200  # of a model or a session; a longer model name is unknown to the gateway
_MIN_SCANNED_BYTES: Final = 8_192  # smaller bodies are parsed in less time
# Headers by which agents name their session: Claude Code, Codex (both spellings), opencode, pi, and tracing tools.
SESSION_HEADERS: Final = (
    b"x-rung-session", b"x-claude-code-session-id", b"session-id", b"session_id", b"x-session-id", b"x-opencode-session",
    b"x-session-affinity", b"conversation_id", b"x-conversation-id", b"thread-id", b"x-thread-id", b"helicone-session-id",
)  # fmt: skip
_AGENT_HEADERS: Final = (b"x-claude-code-agent-id",)


class NotJson(RungError):
    """The request body is not a JSON object."""


@dataclass(slots=True, kw_only=True)
class InboundRequest:
    """An inbound request and what was derived from it."""

    wire: WireFormat
    upstream: UpstreamSettings
    target: str  # path and query
    raw_headers: Headers
    headers: dict[bytes, bytes]
    upstream_headers: Headers
    body: bytes
    project: str = ""
    caller: str = ""  # hash of the key, else a digest of the client's own credentials
    session: str = ""  # session that the headers name, qualified by the key; empty if they name none
    model: str = ""  # at the top level of the body, or in the path
    upstream_model: str = ""  # the name that the upstream has for it
    listed: Model | None = None  # model of the policy that serves the request first, in the place of the named one
    is_stream: bool = False  # whether a stream is requested
    key_dollars: float | None = None  # spend limit of the key
    key_hash: str = ""
    allowed_models: tuple[str, ...] = ()  # models the key is restricted to; empty: all
    hides_usage: bool = False  # the gateway asked for usage in the stream, not the client
    _parsed: dict[str, Any] | None = field(default=None)
    _is_self_contained: bool | None = field(default=None)

    def parsed(self) -> dict[str, Any]:
        """Return the body as JSON. Cached: callers must not modify it."""
        if self._parsed is None:
            try:
                body = load_json(self.body)
            except orjson.JSONDecodeError as error:
                raise NotJson(f"request body is not valid JSON: {error}") from None
            if not isinstance(body, dict):
                raise NotJson("request body is not a JSON object")
            self._parsed = body
        return self._parsed

    def read_fields(self) -> None:
        """Read model and stream flag from the top level of the body; leave invalid JSON to the upstream to reject."""
        if self.wire is GEMINI:
            self._read_path()
            return
        scanned = scan_fields(self.body) if self._parsed is None and len(self.body) > _MIN_SCANNED_BYTES else None
        if scanned is not None:
            self.model, self.is_stream = scanned
            self.upstream_model = self.model
            return
        try:
            fields = self.parsed()
        except NotJson:
            if self.body.lstrip()[:1] != b"{":
                raise
            fields = json_object(self.body.decode("utf-8", "replace"))
        model = fields.get("model")
        self.model = model if isinstance(model, str) and len(model) <= _MAX_NAME_CHARACTERS else ""
        self.upstream_model = self.model
        self.is_stream = fields.get("stream") is True

    def _read_path(self) -> None:
        """Read model and stream flag from the path."""
        if self.body.lstrip()[:1] != b"{":
            raise NotJson("request body is not a JSON object")
        parsed = parse_path(self.target.partition("?")[0])
        if parsed is not None:
            self.model = parsed.model if len(parsed.model) <= _MAX_NAME_CHARACTERS else ""
            self.upstream_model = self.model
            self.is_stream = parsed.method == STREAM

    def target_for(self, model: str, *, is_stream: bool) -> str:
        """Return path and query of the request for a model. That of Gemini's API names the model, and whether it streams."""
        if self.wire is not GEMINI:
            return self.target
        return for_model(self.target, model) if is_stream == self.is_stream else for_whole_answer(self.target, model)

    def replace_body(self, body: dict[str, Any]) -> None:
        """Send another body than the client's to the upstream."""
        self.body, self._parsed = dump_json(body), body

    def is_self_contained(self) -> bool:
        """Return whether the request carries all that it is about, so that another provider can serve it."""
        from rung.wires.translation.registry import translator_of  # only calls that are translated load translators
        from rung.wires.translation.self_contained import is_self_contained

        if self._is_self_contained is None:
            try:
                self._is_self_contained = is_self_contained(translator_of(self.wire.name).read_request(self.parsed()))
            except NotJson:
                self._is_self_contained = False
        return self._is_self_contained

    def is_empty(self) -> bool:
        """Return whether the request has no conversation. Its own provider would reject it, in words of its own."""
        from rung.wires.translation.registry import translator_of  # only calls that are rejected get here
        from rung.wires.translation.self_contained import is_empty

        return is_empty(translator_of(self.wire.name).read_request(self.parsed()))

    def continues_thread(self) -> bool:
        """Return whether the earlier turns are in a thread at the provider, and the client can send them itself."""
        return self.wire is MESSAGES and b'"thread"' in self.body and continues_thread(self.parsed())

    def estimated_tokens(self) -> int:
        """Estimate the tokens of the body. One that is not JSON is left to the upstream to reject."""
        from rung.core.conversation.compaction import estimate_tokens  # only calls that failed need it

        try:
            return estimate_tokens([self.parsed()])
        except NotJson:
            return 0

    def may_use(self, model: str) -> bool:
        """Return whether the key of the request may use a model."""
        return not self.allowed_models or model in self.allowed_models

    @property
    def retry_count(self) -> int:
        """Return how often the client's SDK has retried this request."""
        count = self.headers.get(b"x-stainless-retry-count", b"0")
        return int(count) if count.isdigit() and len(count) < 4 else 0  # noqa: PLR2004  # at most three digits


def caller_of(headers: Headers) -> str:
    """Return a digest of the headers that identify a client's account."""
    account = b"\n".join([b"%b:%b" % header for header in headers if header[0] in _ACCOUNT_HEADERS])
    return blake2b(account, digest_size=16).hexdigest()


def session_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the session that headers name; empty if they name none."""
    for name in SESSION_HEADERS:
        value = headers.get(name)
        if value:
            agents = b"/".join(headers[agent] for agent in _AGENT_HEADERS if agent in headers)
            return (value + (b"/" + agents if agents else b"")).decode("latin-1")[:_MAX_NAME_CHARACTERS]
    return ""
