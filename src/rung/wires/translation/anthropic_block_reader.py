"""Reader of the content blocks of Anthropic's Messages API.

Fields that the neutral part has no place for go to its `extras`. A part of a plain string has no family, a part of a
block has the family ANTHROPIC: by that the writer knows whether the content was a string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.wire_json import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Block = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
_TEXT_FIELDS: Final = ("title", "source", "text", "content")
_MAX_DEPTH: Final = 8  # of blocks in blocks
_MEDIA_KINDS: Final = {"image": MediaKind.IMAGE, "document": MediaKind.DOCUMENT}


def read_content(content: str | list[Any]) -> tuple[Part, ...]:
    """Read the content of a message."""
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple([read_block(block) for block in content if isinstance(block, dict)])


def read_block(block: Block) -> Part:
    """Read one block. What has no neutral form stays as it is."""
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    part = reader(block) if reader is not None else None
    return part if part is not None else ForeignPart(family=_OWN, block=block, kind=str(kind))


def read_text(block: Block) -> TextPart | None:
    """Read a text block. Return None if it has no text."""
    text = block.get("text")
    if not isinstance(text, str):
        return None
    if len(block) == 2:  # noqa: PLR2004  # its type and its text, as most blocks
        return TextPart(text=text, family=_OWN)
    cache, extras = _others(block, ("type", "text"))
    return TextPart(text=text, cache=cache, extras=extras, family=_OWN)


def _read_media(block: Block) -> MediaPart | None:
    kind = _MEDIA_KINDS[block["type"]]
    source = block.get("source")
    fields = _read_source(source, kind) if isinstance(source, dict) else None
    if fields is None:
        return None
    title = block.get("title") if kind is MediaKind.DOCUMENT else None
    name = title if isinstance(title, str) else ""
    cache, extras = _others(block, ("type", "source", "title") if name else ("type", "source"))
    if fields.pop("is_kept", False):
        extras = {**extras, "source": source}
    return MediaPart(kind=kind, name=name, cache=cache, extras=extras, family=_OWN, **fields)


def _read_source(source: Block, kind: MediaKind) -> dict[str, Any] | None:
    """Return the fields of a media part. Return None for a source of another shape: its block stays as it is."""
    match source:
        case {"type": "base64", "media_type": str(mime), "data": str(data), **rest} if data and not rest:
            return {"mime_type": mime, "data": data}
        case {"type": "url", "url": str(url), **rest} if url and not rest:
            return {"mime_type": "application/pdf" if kind is MediaKind.DOCUMENT else "", "url": url}
        case {"type": "file", "file_id": str(file_id), **rest} if file_id and not rest:
            return {"file_id": file_id}
        case {"type": "text", "media_type": str(mime), "data": str(text), **rest} if text and not rest:
            return {"mime_type": mime, "text": text}
        case {"type": "content", "content": str() | list() as content}:
            # Other wires get the texts. The source is kept, because it may have images and cache breakpoints.
            return {"mime_type": "text/plain", "text": text_of(content) or "…", "is_kept": True}
    return None


def _read_call(block: Block) -> ToolCallPart | None:
    call_id, name = block.get("id"), block.get("name")
    if not (isinstance(call_id, str) and isinstance(name, str) and isinstance(block.get("input"), dict)):
        return None
    arguments, is_exact = arguments_text(block["input"])
    if len(block) == 4 and is_exact:  # noqa: PLR2004  # type, id, name and input, as most calls
        return ToolCallPart(id=call_id, name=name, arguments=arguments, family=_OWN)
    cache, extras = _others(block, ("type", "id", "name", "input") if is_exact else ("type", "id", "name"))
    return ToolCallPart(id=call_id, name=name, arguments=arguments, cache=cache, extras=extras, family=_OWN)


def arguments_text(value: Block) -> tuple[str, bool]:
    """Return the JSON text of arguments, and whether it can be parsed to an equal value in the quick way."""
    try:
        return orjson.dumps(value).decode(), True
    except TypeError:  # an integer of more than 64 bits, half of a surrogate pair, or more than 254 levels
        return _any_json(value), False


def _any_json(value: Block) -> str:
    try:
        return to_json(value)
    except RecursionError:
        return "{}"


def _read_result(block: Block) -> ToolResultPart | None:
    call_id, content, is_error = block.get("tool_use_id"), block.get("content"), block.get("is_error")
    if not isinstance(call_id, str):
        return None
    if isinstance(content, str) and len(block) == 3:  # noqa: PLR2004  # type, id and content, as most results
        return ToolResultPart(call_id=call_id, parts=(TextPart(text=content),), family=_OWN)
    known = ["type", "tool_use_id"]
    parts: tuple[TextPart | MediaPart, ...] = ()
    if isinstance(content, str):
        parts = (TextPart(text=content),)
        known.append("content")
    elif isinstance(content, list) and content:
        parts = tuple([_read_result_block(each) for each in content if isinstance(each, dict)])
        known.append("content")
    if is_error is True:
        known.append("is_error")
    cache, extras = (None, NOTHING) if len(known) == len(block) else _others(block, known)
    return ToolResultPart(
        call_id=call_id, parts=parts, is_error=is_error is True, cache=cache, extras=extras, family=_OWN
    )


def _read_result_block(block: Block) -> TextPart | MediaPart:
    """Read a block of a result. Others than text and media are text for other wires: a result must not lose content."""
    part = read_block(block)
    return part if isinstance(part, TextPart | MediaPart) else _read_as_text(block)


def _read_as_text(block: Block) -> TextPart:
    """Read a block that only this wire has, such as a search result that the client gives. Its extras keep it whole."""
    return TextPart(text=text_of([block]) or _any_json(block), extras={str(block.get("type")): block}, family=_OWN)


def _read_reasoning(block: Block) -> ReasoningPart:
    return ReasoningPart(family=_OWN, block=block, text=str(block.get("thinking") or ""))


def _others(block: Block, known: Sequence[str]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """Return the cache breakpoint of a block, and its other fields."""
    extras = {name: value for name, value in block.items() if name not in known}
    cache = extras.get("cache_control")
    if isinstance(cache, dict):
        del extras["cache_control"]
        return cache, extras or NOTHING
    return None, extras or NOTHING


def text_of(content: Any, depth: int = 0) -> str:
    """Return all text of a string or of blocks, also of nested ones such as search results."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or depth > _MAX_DEPTH:
        return ""
    fields = [block.get(name) for block in content if isinstance(block, dict) for name in _TEXT_FIELDS]
    return "\n".join([text for field in fields if (text := text_of(field, depth + 1))])


_READERS: Final[dict[str, Callable[[Block], Part | None]]] = {
    "text": read_text,
    "image": _read_media,
    "document": _read_media,
    "search_result": _read_as_text,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "thinking": _read_reasoning,
    "redacted_thinking": _read_reasoning,
}
