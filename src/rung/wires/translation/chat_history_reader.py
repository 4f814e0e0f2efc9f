"""Reader of the messages of a Chat Completions request, and of the message in an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content import ChatFields, cache_of, is_usual_form, other_fields, read_content
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)
from rung.wires.wire_json import object_field, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

Json = dict[str, Any]

ABSENT: Final = "rung.absent"  # in a form: the field was not there, although the writer would write it
MESSAGE: Final = "message"  # kind of a message that has no known role
CUSTOM_CALL: Final = "custom_tool_call"
AUDIO: Final = "audio"  # kind of the reference to an earlier spoken answer
REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details")
_PLAIN: Final = frozenset({"role", "content"})
_RESULT: Final = frozenset({"role", "content", "tool_call_id"})
_RESULT_PARTS: Final = (TextPart, MediaPart)
_SPEAKERS: Final = {"system": Speaker.SYSTEM, "developer": Speaker.SYSTEM, "user": Speaker.USER}


def read_messages(messages: list[Any]) -> tuple[tuple[TextPart, ...], tuple[Turn, ...]]:
    """Return the instructions at the beginning, and the turns after them."""
    system: list[TextPart] = []
    start = 0
    for message in messages:
        parts = _read_instructions(message)
        if not parts:
            break
        system += parts
        start += 1
    calls: dict[str, str] = {}
    turns = [_read_turn(message, position, calls) for position, message in enumerate(messages[start:], start)]
    return tuple(system), tuple(turns)


def _read_instructions(message: object) -> list[TextPart]:
    """Return the texts of a system or developer message; none if it is something else, or has no text.

    The first text notes the message around it, so that the messages can be told apart.
    """
    if not isinstance(message, dict) or message.get("role") not in ("system", "developer"):
        return []
    content = message.get("content")
    texts = [part for part in read_content(content) if isinstance(part, TextPart)]
    if not texts or (isinstance(content, list) and len(texts) != len(content)):
        return []
    form = {"is_list": isinstance(content, list), "message": other_fields(message, "content")}
    texts[0] = replace(texts[0], extras=ChatFields(texts[0].extras, form), family=Family.CHAT)
    return texts


def _read_turn(message: object, position: int, calls: dict[str, str]) -> Turn:
    """Read a message. `calls` has the ids that were given to legacy function calls, by name."""
    role = message.get("role") if isinstance(message, dict) else None
    if isinstance(message, dict) and isinstance(role, str):
        if role == "assistant":
            return _read_assistant(message, position, calls)
        if role in ("tool", "function"):
            return _read_result(message, position, calls)
        if role in _SPEAKERS:
            return _read_plain(message, _SPEAKERS[role])
    block = ForeignPart(family=Family.CHAT, kind=MESSAGE, block={MESSAGE: message})
    return Turn(speaker=Speaker.USER, parts=(block,), family=Family.CHAT)


def _read_plain(message: Json, speaker: Speaker) -> Turn:
    parts = read_content(message.get("content"))
    form = _content_form(message)
    if message["role"] == "developer":
        form["role"] = "developer"
    return _turn(message, speaker, parts, form, _PLAIN)


def _read_result(message: Json, position: int, calls: dict[str, str]) -> Turn:
    found = read_content(message.get("content"))
    parts = tuple([part for part in found if isinstance(part, _RESULT_PARTS)])
    form = _content_form(message)
    if len(parts) < len(found):
        form["content"] = message["content"]
    if message["role"] == "tool" and message.keys() <= _RESULT:
        result = ToolResultPart(call_id=str(message.get("tool_call_id") or ""), parts=parts)
        return _turn(message, Speaker.USER, (result,), form, _RESULT)
    return _read_named_result(message, parts, form, calls.get(str(message.get("name"))) or _legacy_id(position))


def _read_named_result(message: Json, parts: tuple[TextPart | MediaPart, ...], form: Json, legacy_id: str) -> Turn:
    """Read a result that has more than the usual fields: a function's name, or a cache breakpoint."""
    name = message.get("name")
    name = name if isinstance(name, str) else ""
    if message["role"] == "function":
        call_id = legacy_id
        form |= {"role": "function", "tool_call_id": ABSENT}
    else:
        call_id = str(message.get("tool_call_id") or "")
    cache = cache_of(message)
    known = {*_RESULT, *(["cache_control"] if cache is not None else []), *(["name"] if name else [])}
    result = ToolResultPart(call_id=call_id, parts=parts, name=name, cache=cache)
    return _turn(message, Speaker.USER, (result,), form, known)


def _read_assistant(message: Json, position: int, calls: dict[str, str]) -> Turn:
    parts, known = read_output(message, _legacy_id(position))
    form = {}
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(part, RefusalPart) for part in read_content(content)):
        form = {"content": content, "refusal": message.get("refusal", ABSENT)}
    elif content is not None or "content" not in message or not _has_calls(message):
        form = _content_form(message)
    if "function_call" in known:
        calls[message["function_call"]["name"]] = _legacy_id(position)
        form |= {"function_call": message["function_call"], "tool_calls": message.get("tool_calls", ABSENT)}
    return _turn(message, Speaker.ASSISTANT, tuple(parts), form, set(known))


def read_output(message: Mapping[str, Any], legacy_id: str) -> tuple[list[Part], list[str]]:
    """Return the parts of an assistant's message, and the names of the fields that they are read from."""
    known = ["role", "content"]
    parts: list[Part] = []
    if not message.keys().isdisjoint(REASONING_FIELDS):
        reasoning = {name: message[name] for name in REASONING_FIELDS if message.get(name)}
        known += reasoning
        parts += (
            [ReasoningPart(family=Family.CHAT, block=reasoning, text=reasoning_text(reasoning))] if reasoning else []
        )
    parts += read_content(message.get("content"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        known.append("refusal")
        parts.append(RefusalPart(text=refusal))
    if isinstance(message.get("audio"), dict):
        known.append("audio")
        parts.append(ForeignPart(family=Family.CHAT, kind=AUDIO, block={"audio": message["audio"]}))
    if _has_calls(message):
        known.append("tool_calls")
        parts += [_read_call(call) for call in message["tool_calls"]]
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("name"), str):
        known.append("function_call")
        arguments = _arguments(legacy.get("arguments"))
        parts.append(ToolCallPart(id=legacy_id, name=legacy["name"], arguments=arguments))
    return parts, known


def reasoning_text(fields: Mapping[str, Any]) -> str:
    """Return the reasoning in a message or a delta that is meant for people."""
    for name in REASONING_FIELDS[:2]:
        if isinstance(fields.get(name), str) and fields[name]:
            return str(fields[name])
    details = fields.get("reasoning_details")
    items = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    return "".join(str(item.get("text") or item.get("summary") or "") for item in items)


def _read_call(call: Json) -> ToolCallPart | ForeignPart:
    function, call_id = call.get("function"), call.get("id")
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or call.get("type", "function") != "function":
        return ForeignPart(family=Family.CHAT, kind=CUSTOM_CALL, block=call)
    call_id = call_id if isinstance(call_id, str) else ""
    arguments = _arguments(function.get("arguments"))
    if len(call) == 3 and len(function) == 2:  # noqa: PLR2004  # the usual fields
        return ToolCallPart(id=call_id, name=name, arguments=arguments)
    extras = ChatFields(other_fields(call, "id", "type", "function"), other_fields(function, "name", "arguments"))
    return ToolCallPart(id=call_id, name=name, arguments=arguments, extras=extras, family=Family.CHAT)


def _arguments(value: object) -> str:
    """Return arguments as JSON text. Some clients send the object itself."""
    return value if isinstance(value, str) else to_json(object_field({"": value}, ""))


def _has_calls(message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and bool(calls) and all(isinstance(call, dict) for call in calls)


def _legacy_id(position: int) -> str:
    """Return the id of a function call that its wire gives none. It stays the same while the conversation grows."""
    return f"function_call_{position}"


def _content_form(message: Json) -> Json:
    content = message.get("content", ABSENT)
    return {} if content is not ABSENT and is_usual_form(content) else {"content": content}


def _turn(message: Json, speaker: Speaker, parts: tuple[Part, ...], form: Json, known: AbstractSet[str]) -> Turn:
    if not form and message.keys() <= known:
        return Turn(speaker=speaker, parts=parts, family=Family.CHAT)
    name = message.get("name")
    is_named = isinstance(name, str) and bool(name) and "name" not in known
    extras = other_fields(message, *known, "name") if is_named else other_fields(message, *known)
    if form or None in extras.values():  # a null says nothing to other wires
        form |= {name: None for name, value in extras.items() if value is None}
        extras = ChatFields({name: value for name, value in extras.items() if value is not None}, form)
    return Turn(speaker=speaker, parts=parts, name=str(name) if is_named else "", extras=extras, family=Family.CHAT)
