"""Writer of the content blocks of Anthropic's Messages API: a part that was read from a block gives the same block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.wire_json import load_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Block = dict[str, Any]
_OWN: Final = Family.ANTHROPIC


def write_content(parts: Sequence[Part]) -> str | list[Mapping[str, Any]]:
    """Write the content of a message: a string if it was read from one."""
    if len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].family is None:
        return parts[0].text
    return [write_block(part) for part in parts]


def write_block(part: Part) -> Mapping[str, Any]:
    """Write a part. What belongs to another family is left out; parts of only one family are written as they are."""
    if isinstance(part, ReasoningPart | ForeignPart):
        return part.block
    if isinstance(part, RefusalPart):
        return {"type": "text", "text": part.text}
    extras = part.extras if part.family is _OWN else None
    if extras and isinstance(part, TextPart) and (kept := _kept_block(extras)) is not None:
        return kept
    block = _WRITERS[type(part)](part)
    if part.cache is not None:
        block["cache_control"] = part.cache
    if extras:
        block.update(extras)
    return block


def _kept_block(extras: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the block of a tool result that is text for other wires, such as a search result."""
    name, block = next(iter(extras.items()))
    return block if isinstance(block, dict) and block.get("type") == name else None


def _write_text(part: TextPart) -> Block:
    return {"type": "text", "text": part.text}


def _write_media(part: MediaPart) -> Block:
    block: Block = {"type": part.kind.value, "source": _write_source(part)}
    if part.name and part.kind is MediaKind.DOCUMENT:
        block["title"] = part.name
    return block


def _write_source(part: MediaPart) -> Block:
    if part.data:
        return {"type": "base64", "media_type": part.mime_type, "data": part.data}
    if part.url:
        return {"type": "url", "url": part.url}
    if part.file_id:
        return {"type": "file", "file_id": part.file_id}
    return {"type": "text", "media_type": part.mime_type or "text/plain", "data": part.text}


def _write_call(part: ToolCallPart) -> Block:
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": read_arguments(part.arguments) or {}}


def read_arguments(text: str) -> Block | None:
    """Parse the arguments of a call. Return None if they are not a JSON object. No text is an empty object."""
    try:
        value = load_json(text)
    except orjson.JSONDecodeError:  # it rejects half of a surrogate pair, which some services send
        value = parse_json(text) if text.strip() else {}
    return value if isinstance(value, dict) else None


def _write_result(part: ToolResultPart) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": part.call_id}
    if part.parts:
        block["content"] = write_content(part.parts)
    if part.is_error:
        block["is_error"] = True
    return block


_WRITERS: Final[dict[type[Any], Callable[[Any], Block]]] = {
    TextPart: _write_text,
    MediaPart: _write_media,
    ToolCallPart: _write_call,
    ToolResultPart: _write_result,
}
