"""Wording of a full context window in each API: agents look for these words, and compact their conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.token_counts import TokenCounts

CONTEXT_LIMIT_CODE: Final = "context_length_exceeded"  # of both APIs of OpenAI


class _Wording(NamedTuple):
    """What the provider says, and how it says the numbers of tokens."""

    phrase: str
    counted: str


_WORDINGS: Final[Mapping[str, _Wording]] = {
    "messages": _Wording("prompt is too long", "prompt is too long: {asked} tokens > {limit} maximum"),
    "chat": _Wording(
        "maximum context length",
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {asked} tokens."
        " Please reduce the length of the messages.",
    ),
    "responses": _Wording(
        "exceeds the context window",
        "Your input exceeds the context window of this model: {asked} tokens > {limit} maximum."
        " Please adjust your input and try again.",
    ),
    "gemini": _Wording(
        "exceeds the maximum number of tokens allowed",
        "The input token count ({asked}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
}
_UNCOUNTED: Final[Mapping[str, str]] = {
    "messages": "prompt is too long",
    "chat": "Your messages exceed the maximum context length of this model",
    "responses": "Your input exceeds the context window of this model",
    "gemini": "The input token count exceeds the maximum number of tokens allowed",
}


def context_limit_message(wire: str, message: str, tokens: TokenCounts | None) -> str:
    """Return the message of a context limit as the provider of a wire words it, before that of another provider."""
    wording = _WORDINGS[wire]
    if wording.phrase in message:
        return message
    if tokens is None:
        return f"{_UNCOUNTED[wire]}: {message}" if message else _UNCOUNTED[wire]
    return f"{wording.counted.format(asked=tokens.asked, limit=tokens.limit)} ({message})"
