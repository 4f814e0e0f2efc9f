"""Requests of OpenAI's Responses API.

A request that was read from this wire is written back as it was, field by field, wherever the conversation has not
changed. Other fields, and the conversations of other wires, are written from the neutral values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import NOTHING, Conversation, Family, WrittenRequest
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.foreign_request import consistent, for_openai
from rung.wires.translation.responses_history import write_history, write_instructions
from rung.wires.translation.responses_items import input_items, read_history
from rung.wires.translation.responses_parameters import (
    NESTED_PREFIXES,
    PARAMETER_FIELDS,
    read_output,
    read_reasoning,
    read_sampling,
    read_user,
    write_output,
    write_reasoning,
    write_sampling,
    write_user,
)
from rung.wires.translation.responses_tools import (
    ReadTools,
    read_tool_choice,
    read_tools,
    write_tool_choice,
    write_tools,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Body = dict[str, Any]

_NO_TEXT: Final = "…"
_JSON_INSTRUCTION: Final = "Answer with JSON."

_READ_FIELDS: Final = PARAMETER_FIELDS | {
    "model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "stream",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResponsesOriginal:
    """Fields that the reader of a request keeps for the writers of this wire."""

    body: Mapping[str, Any]
    conversation: Conversation  # as it was read
    tools: ReadTools


def original_of(conversation: Conversation) -> ResponsesOriginal | None:
    """Return what the reader of this wire kept, or None."""
    return conversation.original if isinstance(conversation.original, ResponsesOriginal) else None


def read_request(body: Mapping[str, Any]) -> Conversation:
    """Read a request. Fields that only this wire has are kept as extras; `text.verbosity` is one in an object."""
    items = input_items(body)
    tools = read_tools(body, items)
    system, turns = read_history(body, items, tools)
    extras = {name: value for name, value in body.items() if name not in _READ_FIELDS}
    choice, other_choice = read_tool_choice(body, tools)
    if other_choice is not None:
        extras["tool_choice"] = other_choice
    model = body.get("model")
    read = Conversation(
        family=Family.RESPONSES,
        model=model if isinstance(model, str) else "",
        system=system,
        turns=turns,
        tools=tools.definitions,
        tool_choice=choice,
        output=read_output(body, extras),
        reasoning=read_reasoning(body, extras),
        sampling=read_sampling(body),
        is_stream=body.get("stream") is True,
        user=read_user(body, extras),
        extras=extras or NOTHING,
    )
    return replace(read, original=ResponsesOriginal(body, read, tools))


def write_request(conversation: Conversation) -> WrittenRequest:
    """Write a request. A provider must not store the conversation of another wire."""
    dropped: set[str] = set()
    body: Body = {}
    if conversation.family is not Family.RESPONSES:
        conversation = for_openai(consistent(conversation, dropped), dropped)
    original = original_of(conversation)
    for attributes, fields, write in _GROUPS:
        if original is not None and all(
            getattr(conversation, name) == getattr(original.conversation, name) for name in attributes
        ):
            body |= {name: original.body[name] for name in fields if name in original.body}
        else:
            body |= write(conversation, dropped)
    if conversation.family is Family.RESPONSES:
        body |= {name: value for name, value in conversation.extras.items() if not name.startswith(NESTED_PREFIXES)}
    else:
        body["store"] = False
        name_extras(conversation.extras, dropped)
    return WrittenRequest(body=body, dropped=tuple(sorted(dropped)))


def _write_model(conversation: Conversation, _: set[str]) -> Body:
    return {"model": conversation.model}


def _write_input(conversation: Conversation, dropped: set[str]) -> Body:
    text, items = write_instructions(conversation.system, dropped), write_history(conversation, dropped)
    if not text and not items and conversation.family is not Family.RESPONSES:
        text = _NO_TEXT
    if text and not items:  # the provider demands an input
        text, items = "", [_instruction(text)]
    output = conversation.output
    is_foreign = conversation.family is not Family.RESPONSES
    if is_foreign and output is not None and output.schema is None and not _says_json(items):
        items = [_instruction(_JSON_INSTRUCTION), *items]
    return ({"instructions": text} if text else {}) | {"input": items}


def _instruction(text: str) -> Body:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


def _says_json(items: list[Body]) -> bool:
    """Return whether a message has the word JSON. The provider rejects the format json_object without it."""
    messages = (item["content"] for item in items if item.get("type") == "message")
    return any("json" in str(part.get("text", "")).lower() for content in messages for part in content)


def _write_tools(conversation: Conversation, dropped: set[str]) -> Body:
    tools = write_tools(conversation.tools, dropped, is_own=conversation.family is Family.RESPONSES)
    return {"tools": tools} if tools else {}


def _write_choice(conversation: Conversation, _: set[str]) -> Body:
    return write_tool_choice(conversation.tool_choice)


def _write_stream(conversation: Conversation, _: set[str]) -> Body:
    return {"stream": True} if conversation.is_stream else {}


# Attributes of a conversation, the fields of the request that say them, and their writer.
_GROUPS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], Callable[[Conversation, set[str]], Body]], ...]] = (
    (("model",), ("model",), _write_model),
    (("system", "turns"), ("instructions", "input"), _write_input),
    (("tools",), ("tools",), _write_tools),
    (("tool_choice", "extras"), ("tool_choice", "parallel_tool_calls"), _write_choice),
    (("output", "extras"), ("text",), write_output),
    (("reasoning", "extras"), ("reasoning",), write_reasoning),
    (("sampling",), ("max_output_tokens", "temperature", "top_p"), write_sampling),
    (("user", "extras"), ("user", "safety_identifier"), write_user),
    (("is_stream",), ("stream",), _write_stream),
)
