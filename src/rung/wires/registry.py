"""Registry of wire formats: the path, body functions and stream class of each provider API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.domain.usage_formats import anthropic_usage, chat_usage, gemini_usage, responses_usage
from rung.wires import (
    anthropic_body,
    anthropic_stream,
    gemini_body,
    gemini_stream,
    openai_chat_body,
    openai_chat_stream,
    openai_responses_body,
    openai_responses_stream,
    replay,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.failures import Evidence
    from rung.core.domain.usage import Usage
    from rung.wires.stream_splicer import StreamSplicer

    Body = dict[str, Any]


# Upstream types.
ANTHROPIC: Final = "anthropic"
OPENAI: Final = "openai"
GOOGLE: Final = "gemini"


class BodyFormat(Protocol):
    """Functions on the JSON bodies of a wire format. All are pure: a body is never changed in place."""

    def limit(self, body: Body) -> int | None: ...  # noqa: D102  # documented in each module
    def with_limit(self, body: Body, tokens: int) -> Body: ...  # noqa: D102
    def with_model(self, body: Body, model: str) -> Body: ...  # noqa: D102
    def with_repaired_history(self, body: Body) -> Body: ...  # noqa: D102
    def with_user_message(self, body: Body, text: str) -> Body: ...  # noqa: D102
    def history(self, body: Body) -> list[Body]: ...  # noqa: D102
    def with_history(self, body: Body, messages: Sequence[Mapping[str, Any]]) -> Body: ...  # noqa: D102
    def build_request(self, model: str, text: str, tokens: int) -> Body: ...  # noqa: D102
    def text_of(self, response: Body) -> str: ...  # noqa: D102
    def tool_calls(self, response: Body) -> list[tuple[str, object]]: ...  # noqa: D102
    def tool_schemas(self, body: Body) -> dict[str, Any]: ...  # noqa: D102
    def validate(self, response: Body) -> Evidence | None: ...  # noqa: D102
    def merge(self, parts: Sequence[Body]) -> Body: ...  # noqa: D102
    def choices(self, body: Body) -> int: ...  # noqa: D102
    def is_constrained(self, body: Body) -> bool: ...  # noqa: D102
    def references(self, items: Sequence[Body], final: Body) -> dict[str, Any]: ...  # noqa: D102
    def unstored_references(self, request: Body, response: Body) -> dict[str, Any]: ...  # noqa: D102
    def with_references(self, body: Body, find: Callable[[str], Any]) -> Body: ...  # noqa: D102
    def error_body(self, status: int, message: str, code: str = "") -> Body: ...  # noqa: D102
    def allows_empty(self, body: Body) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """Wire format of one provider API."""

    name: str
    upstream: str  # upstream type that uses it
    bodies: BodyFormat
    read_usage: Callable[[Mapping[str, Any]], Usage]
    splice: Callable[..., StreamSplicer]
    replay: Callable[[Body], bytes]  # events of a response that came whole
    ping: bytes
    end_marker: str  # what ends a stream, for messages
    usage_key: str = "usage"  # of a response
    has_comments: bool = True  # clients ignore comments in a stream


MESSAGES: Final = WireFormat(
    name="messages",
    upstream=ANTHROPIC,
    bodies=anthropic_body,
    read_usage=anthropic_usage,
    splice=anthropic_stream.AnthropicStream,
    replay=replay.message_events,
    ping=anthropic_stream.AnthropicStream.ping,
    end_marker="message_stop",
)
CHAT: Final = WireFormat(
    name="chat",
    upstream=OPENAI,
    bodies=openai_chat_body,
    read_usage=chat_usage,
    splice=openai_chat_stream.ChatStream,
    replay=replay.chat_events,
    ping=openai_chat_stream.ChatStream.ping,
    end_marker="a finish_reason",
)
RESPONSES: Final = WireFormat(
    name="responses",
    upstream=OPENAI,
    bodies=openai_responses_body,
    read_usage=responses_usage,
    splice=openai_responses_stream.ResponsesStream,
    replay=replay.response_events,
    ping=openai_responses_stream.ResponsesStream.ping,
    end_marker="response.completed",
)
GEMINI: Final = WireFormat(
    name="gemini",
    upstream=GOOGLE,
    bodies=gemini_body,
    read_usage=gemini_usage,
    splice=gemini_stream.GeminiStream,
    replay=replay.content_events,
    ping=gemini_stream.GeminiStream.ping,
    end_marker="a finishReason",
    usage_key="usageMetadata",
    has_comments=gemini_stream.GeminiStream.has_comments,
)
BY_NAME: Final[Mapping[str, WireFormat]] = {wire.name: wire for wire in (MESSAGES, CHAT, RESPONSES, GEMINI)}
PATHS: Final[Mapping[str, WireFormat]] = {
    "/v1/messages": MESSAGES,
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
}
