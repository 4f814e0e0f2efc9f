"""Writer of a history in items of the Responses API."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    ReasoningPart,
    Speaker,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.responses_client_tools import NO_ARGUMENTS
from rung.wires.translation.responses_content import CONTENT_PREFIX, left_out, write_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.wires.translation.conversation import Conversation, TextPart, Turn

Item = dict[str, Any]

MAX_CALL_ID: Final = 64  # characters
ERROR_PREFIX: Final = "Error: "
_ROLES: Final = {Speaker.SYSTEM: "developer", Speaker.USER: "user", Speaker.ASSISTANT: "assistant"}


def write_instructions(system: tuple[TextPart, ...], dropped: set[str]) -> str:
    """Return the instructions of a request: the system texts as paragraphs."""
    for part in system:
        if part.cache is not None:
            dropped.add("cache_control")
        if part.family is not Family.RESPONSES:
            name_extras(part.extras, dropped)
    return "\n\n".join(part.text for part in system)


def write_history(conversation: Conversation, dropped: set[str]) -> list[Item]:
    """Write the turns as items. In the history of another wire, results follow directly after their calls."""
    is_own = conversation.family is Family.RESPONSES
    items = [item for turn in conversation.turns for item in _turn_items(turn, dropped, is_own=is_own)]
    return items if is_own else _paired(items)


def _turn_items(turn: Turn, dropped: set[str], *, is_own: bool) -> list[Item]:
    if turn.name:
        dropped.add("name")
    if turn.family is not Family.RESPONSES:
        name_extras(turn.extras, dropped)
    items: list[Item] = []
    content: list[Item] = []  # of the message that is open
    for part in turn.parts:
        item = _whole_item(part, dropped, is_own=is_own)
        if item is None:
            is_output = turn.speaker is Speaker.ASSISTANT
            written = write_part(part, dropped, is_own=is_own, is_output=is_output)  # type: ignore[arg-type]  # content
            content += [written] if written is not None else []
        elif item:
            items += [*_message(turn.speaker, content), item]
            content = []
    return [*items, *_message(turn.speaker, content)]


def _message(speaker: Speaker, content: list[Item]) -> list[Item]:
    return [{"type": "message", "role": _ROLES[speaker], "content": content}] if content else []


def _whole_item(part: object, dropped: set[str], *, is_own: bool) -> Item | None:
    """Return the item of a part that is one; an empty item if the part is dropped, or None if it is content."""
    if isinstance(part, ToolCallPart):
        _drop_marks(part, dropped)
        arguments = part.arguments or NO_ARGUMENTS
        return {"type": "function_call", "call_id": call_id(part.id), "name": part.name, "arguments": arguments}
    if isinstance(part, ToolResultPart):
        return _result(part, dropped, is_own=is_own)
    if isinstance(part, ReasoningPart):
        return _own_block(part, "reasoning", dropped, is_own=is_own)
    if isinstance(part, ForeignPart) and not (is_own and part.kind.startswith(CONTENT_PREFIX)):
        return _own_block(part, part.kind, dropped, is_own=is_own)
    return None


def _own_block(part: ReasoningPart | ForeignPart, name: str, dropped: set[str], *, is_own: bool) -> Item:
    if is_own and part.family is Family.RESPONSES:
        return dict(part.block)
    dropped.add(name)
    return {}


def _drop_marks(part: ToolCallPart | ToolResultPart, dropped: set[str]) -> None:
    if part.cache is not None:
        dropped.add("cache_control")
    name_extras(part.extras, dropped)


def _result(part: ToolResultPart, dropped: set[str], *, is_own: bool) -> Item:
    _drop_marks(part, dropped)
    content = [
        written for inner in part.parts if (written := _result_content(inner, dropped, is_own=is_own)) is not None
    ]
    texts = [one["text"] for one in content if one["type"] == "input_text" and len(one) == 2]  # noqa: PLR2004
    is_text = len(texts) == len(content) <= 1
    if part.is_error:
        content = [{"type": "input_text", "text": ERROR_PREFIX.rstrip()}, *content] if not is_text else content
        texts = [ERROR_PREFIX + "".join(texts)]
    output = "".join(texts) if is_text else content
    return {"type": "function_call_output", "call_id": call_id(part.call_id), "output": output}


def _result_content(part: TextPart | MediaPart, dropped: set[str], *, is_own: bool) -> Item | None:
    """Return a part of a result, which cannot have audio or video."""
    if not isinstance(part, MediaPart) or part.text or part.kind in (MediaKind.IMAGE, MediaKind.DOCUMENT):
        return write_part(part, dropped, is_own=is_own)
    return left_out(part, dropped)


def call_id(name: str) -> str:
    """Return an id that the wire allows: a long one is replaced by its hash."""
    if len(name) <= MAX_CALL_ID:
        return name
    return "call_" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:40]


def _paired(items: Iterable[Item]) -> list[Item]:
    """Return the items with the results of each run of calls directly after it."""
    results = {item["call_id"]: item for item in items if item["type"] == "function_call_output"}
    paired: list[Item] = []
    calls: list[str] = []
    for item in [*items, {"type": ""}]:
        if item["type"] == "function_call":
            calls.append(item["call_id"])
        elif calls:
            paired += [results[name] for name in calls]
            calls = []
        if item["type"] != "function_call_output":
            paired.append(item)
    return paired[:-1]
