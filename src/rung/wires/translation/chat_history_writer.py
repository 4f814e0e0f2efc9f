"""Writer of the messages of a Chat Completions request."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content import form_of
from rung.wires.translation.chat_content_writer import join_text
from rung.wires.translation.chat_history_reader import ABSENT, AUDIO, CUSTOM_CALL, MESSAGE
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.chat_content_writer import ChatContentWriter
    from rung.wires.translation.conversation import Conversation, Part, Turn

Json = dict[str, Any]

MAX_CALL_ID: Final = 40  # OpenAI rejects longer ids of tool calls
_IS_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}").fullmatch
_ROLES: Final = {Speaker.SYSTEM: "system", Speaker.USER: "user", Speaker.ASSISTANT: "assistant"}


def write_messages(conversation: Conversation, writer: ChatContentWriter) -> list[Any]:
    """Return the messages of a conversation."""
    if writer.is_own:
        messages = _own_instructions(conversation.system, writer)
        for turn in conversation.turns:
            messages += _own_messages(turn, writer)
        return messages
    system = writer.content(conversation.system)
    messages = [{"role": "system", "content": system}] if system else []
    waiting: list[Turn] = []
    for turn in conversation.turns:
        if turn.speaker is Speaker.ASSISTANT:
            messages += _write_waiting(waiting, writer)
            waiting = []
            messages += _write_assistant(turn, writer)
        else:
            waiting.append(turn)
    return messages + _write_waiting(waiting, writer)


def with_form(fields: Json, extras: Mapping[str, Any]) -> Json:
    """Return fields in the form that the reader noted."""
    for name, value in form_of(extras).items():
        if value == ABSENT:
            fields.pop(name, None)
        else:
            fields[name] = value
    return fields


def call_item(call: ToolCallPart) -> Json:
    """Return a tool call as messages have it."""
    item: Json = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    if call.family is Family.CHAT:
        item |= call.extras
        item["function"] |= form_of(call.extras)
    return item


def short_id(call_id: str) -> str:
    """Return an id that OpenAI accepts: the same for a call and its result."""
    if len(call_id) <= MAX_CALL_ID:
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:32]


# -- conversations of this family: each turn is one message --------------------------------------------------------------


def _own_instructions(parts: Sequence[TextPart], writer: ChatContentWriter) -> list[Any]:
    groups: list[list[TextPart]] = []
    for part in parts:
        if form_of(part.extras) or not groups:
            groups.append([])
        groups[-1].append(part)
    messages = []
    for group in groups:
        form = form_of(group[0].extras)
        is_list = form.get("is_list", False) or len(group) > 1
        content = writer.items(group) if is_list else group[0].text
        messages.append({"role": "system", **form.get("message", {}), "content": content})
    return messages


def _own_messages(turn: Turn, writer: ChatContentWriter) -> list[Any]:
    parts = turn.parts
    first = parts[0] if parts else None
    if isinstance(first, ForeignPart) and first.kind == MESSAGE:
        return [first.block[MESSAGE]]
    is_result = isinstance(first, ToolResultPart)
    if is_result and len(parts) > 1:  # not as the reader gives it
        return _write_waiting([turn], writer)
    message = dict(turn.extras)
    if isinstance(first, ToolResultPart):
        message |= {"role": "tool", "tool_call_id": first.call_id, "content": writer.content(first.parts)}
        message |= {"name": first.name} if first.name else {}
        message |= {"cache_control": first.cache} if first.cache is not None else {}
    elif turn.speaker is Speaker.ASSISTANT:
        message |= _own_assistant(parts, writer)
    else:
        message |= {"role": _ROLES[turn.speaker], "content": writer.content(parts)}
    if turn.name:
        message["name"] = turn.name
    return [with_form(message, turn.extras)]


def _own_assistant(parts: Sequence[Part], writer: ChatContentWriter) -> Json:
    fields, calls, content = split_output(parts)
    written = writer.content(content) if content else None
    return {"role": "assistant", **fields, "content": written} | ({"tool_calls": calls} if calls else {})


def split_output(parts: Sequence[Part]) -> tuple[Json, list[Any], list[Part]]:
    """Return the fields of an assistant's message beside its content, its tool calls, and the parts of its content."""
    fields: Json = {}
    calls: list[Any] = []
    content: list[Part] = []
    for part in parts:
        match part:
            case ToolCallPart():
                calls.append(call_item(part))
            case RefusalPart():
                fields["refusal"] = fields.get("refusal", "") + part.text
            case ForeignPart(family=Family.CHAT) if part.kind == CUSTOM_CALL:
                calls.append(part.block)
            case ForeignPart(family=Family.CHAT) if part.kind == AUDIO and AUDIO in part.block:
                fields |= part.block
            case ReasoningPart(family=Family.CHAT) if "type" not in part.block:
                fields |= part.block
            case _:
                content.append(part)
    return fields, calls, content


# -- conversations of other families -------------------------------------------------------------------------------------


def _write_waiting(turns: Sequence[Turn], writer: ChatContentWriter) -> list[Any]:
    """Return the messages between two answers. The results of tools come first: they must follow their calls."""
    messages: list[Any] = []
    media: list[Any] = []  # of the results: a tool message takes text only
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ToolResultPart):
                messages.append(_write_result(part, writer))
                media += _media_of(part, writer)
    for turn in turns:
        writer.note_extras(turn.extras, turn.family)
        parts = [part for part in turn.parts if not isinstance(part, ToolResultPart)]
        content = writer.content(parts) if parts else ""
        if media and (content or turn is turns[-1]) and turn.speaker is Speaker.USER:
            text = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
            content, media = media + (text if isinstance(content, str) else content), []
        if content:
            role = _ROLES[turn.speaker] if isinstance(content, str) else "user"  # no other role can have media
            messages.append(_named({"role": role, "content": content}, turn))
    return [*messages, {"role": "user", "content": media}] if media else messages


def _write_result(result: ToolResultPart, writer: ChatContentWriter) -> Json:
    writer.note_extras(result.extras, result.family)
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    if result.cache is not None or any(part.cache is not None for part in result.parts):
        writer.dropped.add("cache_control")
    text = "\n\n".join(text for text in texts if text)
    if not text and len(result.parts) > len(texts):
        text = "The result follows in the next user message."
    text = f"Error: {text}" if result.is_error else text
    return {"role": "tool", "tool_call_id": short_id(result.call_id), "content": text}


def _media_of(result: ToolResultPart, writer: ChatContentWriter) -> list[Any]:
    items = []
    for part in result.parts:
        if isinstance(part, MediaPart):
            label = f"{part.kind.capitalize()} from the result of tool call {short_id(result.call_id)}:"
            items += [{"type": "text", "text": label}, writer.item(part)]
    return items


def _write_assistant(turn: Turn, writer: ChatContentWriter) -> list[Any]:
    """Return the message of an answer; none if nothing of it can be said."""
    writer.note_extras(turn.extras, turn.family)
    calls = [part for part in turn.parts if isinstance(part, ToolCallPart)]
    refusal = "\n\n".join(part.text for part in turn.parts if isinstance(part, RefusalPart))
    parts = [part for part in turn.parts if not isinstance(part, ToolCallPart | RefusalPart)]
    text = join_text([_as_text(part, writer) for part in parts])
    if not (text or refusal or calls):
        return []
    message: Json = {"role": "assistant", "content": text or (None if calls else "")}
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = [_write_call(call, writer) for call in calls]
    return [_named(message, turn)]


def _as_text(part: Part, writer: ChatContentWriter) -> Part:
    """Return a part of an answer as text, if it has one. Media can only be said by a user."""
    if isinstance(part, MediaPart):
        writer.dropped.add(part.kind)
        return TextPart(text=f"[{part.kind} not included]")
    item = writer.item(part)
    return TextPart(text=item["text"]) if item is not None and isinstance(part, TextPart) else part


def _write_call(call: ToolCallPart, writer: ChatContentWriter) -> Json:
    writer.note_extras(call.extras, call.family)
    if call.cache is not None:
        writer.dropped.add("cache_control")
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": short_id(call.id), "type": "function", "function": function}


def _named(message: Json, turn: Turn) -> Json:
    return message | {"name": turn.name} if turn.name and _IS_NAME(turn.name) else message
