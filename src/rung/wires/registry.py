"""The wires the gateway speaks, each in one place: its paths, how its JSON is changed, how its events are spliced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.wires import (
    anthropic_body,
    anthropic_stream,
    openai_chat_body,
    openai_chat_stream,
    openai_responses_body,
    openai_responses_stream,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.failures import Evidence
    from rung.wires.stream_splicer import StreamSplicer

    Body = dict[str, Any]


# The sorts of upstreams.
ANTHROPIC: Final = "anthropic"
OPENAI: Final = "openai"


class BodyFormat(Protocol):
    """What a rung and a judge need of a wire's JSON. Pure; a request is never changed in place."""

    def limit(self, body: Body) -> int | None: ...  # noqa: D102  # each says what it is in its own module
    def with_limit(self, body: Body, tokens: int) -> Body: ...  # noqa: D102
    def with_model(self, body: Body, model: str) -> Body: ...  # noqa: D102
    def repaired(self, body: Body) -> Body: ...  # noqa: D102
    def resumed(self, body: Body, words: str) -> Body: ...  # noqa: D102
    def history(self, body: Body) -> list[Body]: ...  # noqa: D102
    def with_history(self, body: Body, messages: Sequence[Mapping[str, Any]]) -> Body: ...  # noqa: D102
    def asking(self, model: str, words: str, tokens: int) -> Body: ...  # noqa: D102
    def said(self, answer: Body) -> str: ...  # noqa: D102
    def called(self, answer: Body) -> list[tuple[str, object]]: ...  # noqa: D102
    def tools(self, body: Body) -> dict[str, Any]: ...  # noqa: D102
    def found(self, answer: Body) -> Evidence | None: ...  # noqa: D102
    def joined(self, parts: Sequence[Body]) -> Body: ...  # noqa: D102
    def error(self, status: int, message: str) -> Body: ...  # noqa: D102
    def may_be_silent(self, body: Body) -> bool: ...  # noqa: D102
    def tokens(self, usage: Mapping[str, Any]) -> tuple[int, int]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """One way of speaking."""

    name: str
    upstream: str  # the sort of upstream that speaks it
    bodies: BodyFormat
    splice: Callable[..., StreamSplicer]
    ping: bytes
    ending: str  # what ends a stream of it


MESSAGES: Final = WireFormat(
    name="messages",
    upstream=ANTHROPIC,
    bodies=anthropic_body,
    splice=anthropic_stream.AnthropicStream,
    ping=anthropic_stream.AnthropicStream.ping,
    ending="message_stop",
)
CHAT: Final = WireFormat(
    name="chat",
    upstream=OPENAI,
    bodies=openai_chat_body,
    splice=openai_chat_stream.ChatStream,
    ping=openai_chat_stream.ChatStream.ping,
    ending="a finish_reason",
)
RESPONSES: Final = WireFormat(
    name="responses",
    upstream=OPENAI,
    bodies=openai_responses_body,
    splice=openai_responses_stream.ResponsesStream,
    ping=openai_responses_stream.ResponsesStream.ping,
    ending="response.completed",
)
PATHS: Final[Mapping[str, WireFormat]] = {
    "/v1/messages": MESSAGES,
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
}
