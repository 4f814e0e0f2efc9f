"""Names of tools that every provider accepts, in place of those that only the client's own provider does.

Gemini's API allows dots and colons, and names that are longer. The model of another provider gets other names, and its
calls come back under the client's.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.wires.translation.answer import CallStarted
from rung.wires.translation.conversation import ToolCallPart, ToolDefinition, ToolResultPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rung.wires.translation.answer import Answer, AnswerEvent
    from rung.wires.translation.conversation import Conversation, Part

_IS_ACCEPTED: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}").fullmatch
_NOT_ACCEPTED: Final = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_READABLE: Final = 50  # characters of the client's name that the other one begins with


class ToolNames:
    """Names of the tools of one conversation: those of the client, and those that the upstream gets."""

    def __init__(self, conversation: Conversation) -> None:
        names = dict.fromkeys(_names(conversation))
        self._sent = {name: accepted_name(name) for name in names if not _IS_ACCEPTED(name)}
        self._received = {sent: name for name, sent in self._sent.items()}

    def sent(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the names for the upstream."""
        if not self._sent:
            return conversation
        choice = conversation.tool_choice
        return replace(
            conversation,
            tools=tuple(
                replace(tool, name=self._sent.get(tool.name, tool.name)) if isinstance(tool, ToolDefinition) else tool
                for tool in conversation.tools
            ),
            tool_choice=replace(choice, names=tuple(self._sent.get(name, name) for name in choice.names)),
            turns=tuple(replace(turn, parts=tuple(map(self._sent_part, turn.parts))) for turn in conversation.turns),
        )

    def _sent_part(self, part: Part) -> Part:
        if isinstance(part, ToolCallPart | ToolResultPart) and part.name in self._sent:
            return replace(part, name=self._sent[part.name])
        return part

    def answer(self, answer: Answer) -> Answer:
        """Return an answer with the client's names."""
        if not self._received:
            return answer
        parts = tuple(
            replace(part, name=self._received.get(part.name, part.name)) if isinstance(part, ToolCallPart) else part
            for part in answer.parts
        )
        return replace(answer, parts=parts)

    def events(self, events: list[AnswerEvent]) -> list[AnswerEvent]:
        """Return events with the client's names."""
        if not self._received:
            return events
        return [
            replace(event, name=self._received.get(event.name, event.name)) if isinstance(event, CallStarted) else event
            for event in events
        ]


def accepted_name(name: str) -> str:
    """Return a readable name that all providers accept: the same one each time, and another one for each name."""
    readable = _NOT_ACCEPTED.sub("_", name)[:_MAX_READABLE]
    readable = readable if readable[:1].isalpha() or readable.startswith("_") else f"_{readable}"
    return f"{readable}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _names(conversation: Conversation) -> Iterator[str]:
    yield from (tool.name for tool in conversation.tools if isinstance(tool, ToolDefinition))
    yield from conversation.tool_choice.names
    yield from _called(part for turn in conversation.turns for part in turn.parts)


def _called(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if type(part) is ToolCallPart or (type(part) is ToolResultPart and part.name):
            yield part.name
