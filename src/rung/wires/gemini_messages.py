"""Contents of Gemini's API as messages with content blocks, which repair and compaction of conversations work on."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from rung.wires.wire_json import json_object, object_field, object_list, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Body = dict[str, Any]

_POSITION: Final = "at:"  # begins the ids of calls that have none; they are not sent
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_MEDIA: Final = ("inlineData", "fileData")
_PART_FIELDS: Final = frozenset({"text", "functionCall", "function_call", "functionResponse", "function_response"})
_CALL_FIELDS: Final = frozenset({"id", "name", "args"})
_RESULT_FIELDS: Final = frozenset({"id", "name", "response"})


@lru_cache(maxsize=256)
def _snake_case(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()


def spelling(data: Mapping[str, Any], name: str) -> str:
    """Return the name under which an object has a field: the API accepts camelCase and snake_case."""
    return name if name in data or _snake_case(name) not in data else _snake_case(name)


def field_of(data: Mapping[str, Any], name: str) -> Any:
    """Return a field of an object in either spelling; None if it has none."""
    value = data.get(name)
    return value if value is not None else data.get(_snake_case(name))


def contents_of(body: Mapping[str, Any]) -> list[Body]:
    """Return the contents of a request."""
    contents = body.get("contents")
    return [contents] if isinstance(contents, dict) else object_list(body, "contents")


def parts_of(content: object) -> list[Body]:
    """Return the parts of a content."""
    parts = content.get("parts") if isinstance(content, dict) else None
    return [parts] if isinstance(parts, dict) else object_list(content, "parts")


def is_thought(part: Mapping[str, Any]) -> bool:
    """Return whether a part shows the reasoning of a model."""
    return part.get("thought") is True


def call_in(part: Mapping[str, Any]) -> Body:
    """Return the function call of a part; empty if it has none."""
    return object_field(part, spelling(part, "functionCall"))


def result_in(part: Mapping[str, Any]) -> Body:
    """Return the function response of a part; empty if it has none."""
    return object_field(part, spelling(part, "functionResponse"))


# -- contents to messages --------------------------------------------------------------------------------------


def to_messages(contents: Iterable[Mapping[str, Any]]) -> list[Body]:
    """Return contents as messages. A call without an id gets one by its position, and its response the same."""
    messages: list[Body] = []
    open_calls: dict[str, str] = {}  # names of the calls of the last turn, by id
    for at, content in enumerate(contents):
        is_model = content.get("role") == "model"
        if is_model:
            open_calls = {}
        blocks = [_to_block(part, f"{_POSITION}{at}.{n}", open_calls) for n, part in enumerate(parts_of(content))]
        messages.append({"role": "assistant" if is_model else "user", "content": blocks})
    return messages


def _to_block(part: Body, place: str, open_calls: dict[str, str]) -> Body:
    if call := call_in(part):
        name, block_id = str(call.get("name")), str(call.get("id") or place)
        open_calls[block_id] = name
        block = {"type": "tool_use", "id": block_id, "name": name, "input": object_field(call, "args")}
        return block | _others(part, call, _CALL_FIELDS)
    if result := result_in(part):
        name = str(result.get("name"))
        block_id = str(result.get("id") or "")
        if block_id not in open_calls:
            block_id = next((known for known, called in open_calls.items() if called == name), place)
        open_calls.pop(block_id, None)
        block = {"type": "tool_result", "tool_use_id": block_id, "name": name}
        return block | _result_text(object_field(result, "response")) | _others(part, result, _RESULT_FIELDS)
    if is_thought(part):
        return {"type": "thought", "part": part}
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]} | _others(part, {}, frozenset())
    return {"type": "file" if any(field_of(part, name) for name in _MEDIA) else "other", "part": part}


def _others(part: Body, data: Body, known: frozenset[str]) -> Body:
    """Return the other fields of a part, and of the call or response in it, if there are any."""
    found = {
        "part": {name: value for name, value in part.items() if name not in _PART_FIELDS},
        "data": {name: value for name, value in data.items() if name not in known},
    }
    return {name: fields for name, fields in found.items() if fields}


def _result_text(response: Body) -> Body:
    """Return a response as text that can be shortened: that of its only field, or its JSON."""
    if len(response) == 1:
        ((name, value),) = response.items()
        if isinstance(value, str):
            return {"content": value, "field": name} | ({"is_error": True} if name == "error" else {})
    return {"content": to_json(response)}


# -- messages to contents --------------------------------------------------------------------------------------


def to_contents(messages: Iterable[Mapping[str, Any]]) -> list[Body]:
    """Return messages as contents. Text that took the place of a response is its `output`, or its `error`."""
    contents: list[Body] = []
    names: dict[str, str] = {}  # of the functions called, by id of the call
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
        names |= {str(block.get("id")): str(block.get("name")) for block in blocks if block.get("type") == "tool_use"}
        role = "model" if message.get("role") == "assistant" else "user"
        contents.append({"role": role, "parts": [_to_part(block, names) for block in blocks]})
    return contents


def _to_part(block: Mapping[str, Any], names: Mapping[str, str]) -> Body:
    kind, rest, data = block.get("type"), object_field(block, "part"), object_field(block, "data")
    if kind == "text":
        return {"text": block.get("text", ""), **rest}
    if kind == "tool_use":
        call = {**_id(block.get("id")), "name": block.get("name"), "args": block.get("input"), **data}
        return {"functionCall": call, **rest}
    if kind == "tool_result":
        call_id = str(block.get("tool_use_id"))
        name = names.get(call_id, str(block.get("name", "")))
        return {"functionResponse": {**_id(call_id), "name": name, "response": _response(block), **data}, **rest}
    return dict(rest)


def _id(call_id: object) -> Body:
    return {} if str(call_id).startswith(_POSITION) else {"id": call_id}


def _response(block: Mapping[str, Any]) -> Body:
    content, name = block.get("content"), block.get("field")
    if name is not None:  # an empty name is a name
        return {str(name): content}
    whole = json_object(content)
    return whole or ({} if content == "{}" else {"error" if block.get("is_error") else "output": content})
