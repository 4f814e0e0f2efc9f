"""Requests of Anthropic's Messages API, read into a neutral conversation and written from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.anthropic_adapter import adapt_request
from rung.wires.translation.anthropic_block_reader import read_content, read_text
from rung.wires.translation.anthropic_block_writer import write_content
from rung.wires.translation.anthropic_options import (
    lay_over,
    take,
    take_output,
    take_reasoning,
    take_sampling,
    take_tool_choice,
    take_tools,
    write_output,
    write_sampling,
    write_thinking,
    write_tool,
    write_tool_choice,
)
from rung.wires.translation.conversation import NOTHING, Conversation, Family, Speaker, TextPart, Turn, WrittenRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

Fields = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
_SPEAKERS: Final = {speaker.value: speaker for speaker in Speaker}
_TURN_FIELDS: Final = frozenset({"role", "content"})


def read_request(body: Mapping[str, Any]) -> Conversation:
    """Read a request. Fields without a neutral form, or with a value of another type, go to `extras`."""
    rest = dict(body)
    output, effort = take_output(rest)
    return Conversation(
        family=_OWN,
        model=take(rest, "model", str) or "",
        system=_take_system(rest),
        turns=tuple(
            [_read_turn(message) for message in take(rest, "messages", list) or () if isinstance(message, dict)]
        ),
        tools=take_tools(rest),
        tool_choice=take_tool_choice(rest),
        output=output,
        reasoning=take_reasoning(rest, effort),
        sampling=take_sampling(rest),
        is_stream=rest.get("stream") is True and rest.pop("stream"),
        user=_take_user(rest),
        extras=rest or NOTHING,
    )


def _take_system(rest: Fields) -> tuple[TextPart, ...]:
    system = rest.get("system")
    if isinstance(system, str):
        del rest["system"]
        return (TextPart(text=system),)
    if not isinstance(system, list) or not system:
        return ()
    parts = [read_text(block) for block in system if isinstance(block, dict) and block.get("type") == "text"]
    texts = tuple([part for part in parts if part is not None])
    if len(texts) == len(system):
        del rest["system"]
    return texts


def _take_user(rest: Fields) -> str:
    metadata = rest.get("metadata")
    others = dict(metadata) if isinstance(metadata, dict) else {}
    user = take(others, "user_id", str)
    if user is None:
        return ""
    del rest["metadata"]
    if others:
        rest["metadata"] = others
    return str(user)


def _read_turn(message: Fields) -> Turn:
    role, content = message.get("role"), message.get("content")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None or not isinstance(content, str | list):
        return Turn(speaker=speaker or Speaker.USER, parts=(), extras=message, family=_OWN)
    parts = read_content(content)
    if len(message) == len(_TURN_FIELDS):
        return Turn(speaker=speaker, parts=parts)
    extras = {name: value for name, value in message.items() if name not in _TURN_FIELDS}
    return Turn(speaker=speaker, parts=parts, extras=extras, family=_OWN)


def write_request(conversation: Conversation) -> WrittenRequest:
    """Write a request. One that was read from this wire comes back exactly as it was."""
    if conversation.family is not _OWN:
        return adapt_request(conversation)
    body: Fields = {"messages": [_write_turn(turn) for turn in conversation.turns]}
    fields: Fields = {
        "model": conversation.model or None,
        "system": write_content(conversation.system) if conversation.system else None,
        "tools": [write_tool(tool) for tool in conversation.tools] or None,
        "tool_choice": write_tool_choice(conversation.tool_choice),
        "thinking": write_thinking(conversation.reasoning),
        "metadata": {"user_id": conversation.user} if conversation.user else None,
        "stream": conversation.is_stream or None,
    }
    body |= {name: value for name, value in fields.items() if value is not None}
    body |= write_sampling(conversation.sampling)
    body |= write_output(conversation)
    return WrittenRequest(body=lay_over(body, conversation.extras))


def _write_turn(turn: Turn) -> Mapping[str, Any]:
    if "role" in turn.extras and turn.family is _OWN:  # a message that was kept whole
        return turn.extras
    message: Fields = {"role": turn.speaker.value, "content": write_content(turn.parts)}
    if turn.extras and turn.family is _OWN:
        message.update(turn.extras)
    return message
