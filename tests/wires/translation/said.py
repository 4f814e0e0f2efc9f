"""What a conversation says, without how its wire divides it into messages: for comparisons between wires."""

from __future__ import annotations

from typing import Any, NamedTuple

from rung.wires.translation.conversation import (
    Conversation,
    MediaPart,
    Part,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
)
from rung.wires.wire_json import load_json

# Texts that writers add around content: a result's media that stand in the next message, and the error of a result.
_ADDED = ("Image from the result of tool call", "Document from the result of tool call", "The result follows in")


class Saying(NamedTuple):
    """Content of a conversation. The names are those by which `dropped` would name a loss."""

    system: str
    users_texts: list[str]
    models_texts: list[str]
    calls: list[tuple[str, str]]
    results: list[str]
    media: list[str]
    tools: dict[str, Any]
    schema: Any
    max_tokens: int | None
    stop: tuple[str, ...]


def said_in(conversation: Conversation) -> Saying:
    """Return what a conversation says."""
    parts = [(turn.speaker, part) for turn in conversation.turns for part in turn.parts]
    every = [part for _, part in parts]
    results = [part for part in every if isinstance(part, ToolResultPart)]
    media = [*every, *(inner for part in results for inner in part.parts)]
    output = conversation.output
    return Saying(
        system=_words(part.text for part in conversation.system),
        users_texts=_texts(parts, Speaker.USER),
        models_texts=_texts(parts, Speaker.ASSISTANT),
        calls=[(part.name, repr(load_json(part.arguments))) for part in every if isinstance(part, ToolCallPart)],
        results=[_words(each.text for each in part.parts if isinstance(each, TextPart)) for part in results],
        media=sorted(part.data or part.url for part in media if isinstance(part, MediaPart)),
        tools={tool.name: dict(tool.schema) for tool in conversation.tools if isinstance(tool, ToolDefinition)},
        schema=None if output is None or output.schema is None else dict(output.schema),
        max_tokens=conversation.sampling.max_tokens,
        stop=conversation.sampling.stop,
    )


def _texts(parts: list[tuple[Speaker, Part]], speaker: Speaker) -> list[str]:
    found = [part.text for who, part in parts if who is speaker and isinstance(part, TextPart)]
    return [word for text in found if not text.startswith(_ADDED) for word in text.split()]


def _words(texts: Any) -> str:
    return " ".join(" ".join(texts).split())
