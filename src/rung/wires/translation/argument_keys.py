"""Names of arguments that Anthropic accepts, in place of those that only other providers do.

Anthropic rejects a request if a tool has an argument such as `$filter` or `filter[id]`. The model gets another name, and
the arguments of its calls come back under the client's.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.answer import CallDelta, CallEnded, CallStarted, Ended
from rung.wires.translation.conversation import Family, ToolCallPart, ToolDefinition
from rung.wires.translation.object_schema import as_one_object
from rung.wires.wire_json import parse_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.answer import Answer, AnswerEvent
    from rung.wires.translation.conversation import Conversation, Turn

_IS_ACCEPTED: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
_NOT_ACCEPTED: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MAX_READABLE: Final = 55  # characters of the client's name that the other one begins with


class ArgumentKeys:
    """Names of the arguments of one conversation's tools: those of the client, and those that the upstream gets."""

    def __init__(self, conversation: Conversation, upstream: Family) -> None:
        tools = conversation.tools if upstream is Family.ANTHROPIC else ()
        found = {tool.name: _renamed(as_one_object(tool.schema)) for tool in tools if isinstance(tool, ToolDefinition)}
        self._sent = {name: keys for name, keys in found.items() if keys}  # by tool, then by the client's name
        self._received = {name: {sent: key for key, sent in keys.items()} for name, keys in self._sent.items()}
        self._pieces: dict[int, list[str]] = {}  # arguments of open calls whose names change
        self._tools: dict[int, str] = {}

    def sent(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the names for the upstream, in tools and in earlier calls."""
        if not self._sent:
            return conversation
        tools = tuple(
            replace(tool, schema=_with_keys(as_one_object(tool.schema), self._sent[tool.name]))
            if isinstance(tool, ToolDefinition) and tool.name in self._sent
            else tool
            for tool in conversation.tools
        )
        return replace(conversation, tools=tools, turns=tuple(map(self._sent_turn, conversation.turns)))

    def answer(self, answer: Answer) -> Answer:
        """Return an answer with the client's names."""
        if not self._received:
            return answer
        parts = tuple(
            replace(part, arguments=_with_names(part.arguments, self._received[part.name]))
            if isinstance(part, ToolCallPart) and part.name in self._received
            else part
            for part in answer.parts
        )
        return replace(answer, parts=parts)

    def events(self, events: list[AnswerEvent]) -> list[AnswerEvent]:
        """Return events with the client's names. Arguments whose names change come when they are complete."""
        return [each for event in events for each in self._received_events(event)] if self._received else events

    def _sent_turn(self, turn: Turn) -> Turn:
        parts = tuple(
            replace(part, arguments=_with_names(part.arguments, self._sent[part.name]))
            if isinstance(part, ToolCallPart) and part.name in self._sent
            else part
            for part in turn.parts
        )
        return replace(turn, parts=parts)

    def _received_events(self, event: AnswerEvent) -> list[AnswerEvent]:
        if isinstance(event, CallStarted) and event.name in self._received:
            self._pieces[event.index], self._tools[event.index] = [], event.name
        elif isinstance(event, CallDelta) and event.index in self._pieces:
            self._pieces[event.index].append(event.json)
            return []
        elif isinstance(event, CallEnded) and event.index in self._pieces:
            return [*self._finished(event.index), event]
        elif isinstance(event, Ended):  # a call that the output limit cut off has no end of its own
            return [*(each for index in list(self._pieces) for each in self._finished(index)), event]
        return [event]

    def _finished(self, index: int) -> list[AnswerEvent]:
        text = _with_names("".join(self._pieces.pop(index)), self._received[self._tools[index]])
        return [CallDelta(index=index, json=text)] if text else []


def _renamed(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that are not accepted, and a readable name for each."""
    properties = schema.get("properties")
    names = properties if isinstance(properties, dict) else {}
    return {name: _accepted_name(name) for name in names if not _IS_ACCEPTED(name)}


def _accepted_name(name: str) -> str:
    readable = _NOT_ACCEPTED.sub("_", name)[:_MAX_READABLE]
    return f"{readable}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _with_keys(schema: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    properties = {keys.get(name, name): value for name, value in schema["properties"].items()}
    required = schema.get("required")
    if not isinstance(required, list):
        return {**schema, "properties": properties}
    return {**schema, "properties": properties, "required": [keys.get(name, name) for name in required]}


def _with_names(arguments: str, names: Mapping[str, str]) -> str:
    """Return arguments under other names; as they are, if they are not a JSON object."""
    found = parse_json(arguments)
    return (
        to_json({names.get(key, key): value for key, value in found.items()}) if isinstance(found, dict) else arguments
    )
