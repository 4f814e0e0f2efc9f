"""Requests of Gemini's generateContent, as neutral conversations and back.

A request that was read here is written back as it was, where the conversation has not changed. A changed field has this
normal form: known names are in camelCase, all functions are in one tool, enums are in upper case, consecutive contents of
the model are one, and fields with their default value (null, an empty list, one candidate, plain text, the role of the
instruction) are left out or written as Google's SDK writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import Conversation, Family, TextPart, ToolDefinition, ToolMode, WrittenRequest
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.foreign_request import consistent, with_chosen_tools
from rung.wires.translation.gemini_config import (
    MAX_STOPS,
    ReadConfig,
    output_fields,
    own_config,
    sampling_fields,
)
from rung.wires.translation.gemini_contents import ForeignHistory
from rung.wires.translation.gemini_fields import camel_case, listed, merged, spelled, with_prefix
from rung.wires.translation.gemini_history import own_contents, read_turns
from rung.wires.translation.gemini_thinking import is_current, thinking_config
from rung.wires.translation.gemini_tools import own_choice, read_choice, read_tools, written_choice, written_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    Body = dict[str, Any]

_SYSTEM: Final = "systemInstruction"
_CONFIG: Final = "generationConfig"
_TOOL_CONFIG: Final = "toolConfig"
# Fields of a conversation that a field of the request says. Any other field of the request is in the extras.
_SOURCES: Final[Mapping[str, frozenset[str]]] = {
    _SYSTEM: frozenset({"system", "extras"}),
    "contents": frozenset({"turns"}),
    "tools": frozenset({"tools", "extras"}),
    _TOOL_CONFIG: frozenset({"tool_choice", "extras"}),
    _CONFIG: frozenset({"sampling", "output", "reasoning", "extras"}),
}
_EXTRAS: Final = frozenset({"extras"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiOriginal:
    """A request as it was, and what was read from it."""

    body: Mapping[str, Any]
    read: Conversation

    def changes(self, conversation: Conversation) -> frozenset[str]:
        """Return the fields of a conversation that were changed after it was read."""
        names = frozenset().union(*_SOURCES.values())
        return frozenset(name for name in names if getattr(conversation, name) is not getattr(self.read, name))


def read_request(body: Mapping[str, Any]) -> Conversation:
    """Read a request. Its path says the model, and whether the answer is streamed."""
    extras = {key: value for key, value in spelled(body).items() if value is not None}
    model = extras.get("model", "")
    config = ReadConfig(extras.pop(_CONFIG) if isinstance(extras.get(_CONFIG), dict) else {})
    choice, rest = read_choice(extras.pop(_TOOL_CONFIG) if isinstance(extras.get(_TOOL_CONFIG), dict) else {})
    contents, tools = listed(extras.get("contents")), listed(extras.get("tools"))
    if isinstance(contents, list):
        del extras["contents"]
    if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
        del extras["tools"]
    else:
        tools = []
    system = _read_system(extras)
    read = Conversation(
        family=Family.GEMINI,
        model=model.removeprefix("models/") if isinstance(model, str) else "",
        system=system,
        turns=read_turns(contents) if isinstance(contents, list) else (),
        tools=read_tools(tools),
        tool_choice=choice,
        output=config.output,
        reasoning=config.reasoning,
        sampling=config.sampling,
        extras={**extras, **with_prefix(_CONFIG, config.rest, ()), **with_prefix(_TOOL_CONFIG, rest, ())},
    )
    return replace(read, original=GeminiOriginal(body=body, read=read))


def _read_system(extras: Body) -> tuple[TextPart, ...]:
    """Return the texts of the instruction. It stays in the extras if it has something other than texts."""
    given = extras.get(_SYSTEM)
    if isinstance(given, str):
        del extras[_SYSTEM]
        return (TextPart(text=given),)
    content = spelled(given) if isinstance(given, dict) else {}
    parts = content.get("parts")
    items = parts if isinstance(parts, list) else [parts]
    texts = [item for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]
    if len(texts) == len(items) and all(len(item) == 1 for item in texts) and content.keys() <= {"parts", "role"}:
        del extras[_SYSTEM]
    return tuple(TextPart(text=item["text"]) for item in texts)


def write_request(conversation: Conversation) -> WrittenRequest:
    """Write a request. Its model and whether it streams belong to the path."""
    if conversation.family is Family.GEMINI:
        return WrittenRequest(body=_own_request(conversation))
    dropped: set[str] = set()
    conversation = consistent(conversation, dropped)
    if (
        conversation.tool_choice.mode is not ToolMode.REQUIRED
    ):  # Gemini has a list of allowed tools for required calls only
        conversation = with_chosen_tools(conversation)
    history = ForeignHistory(conversation.turns, dropped, nests_media=is_current(conversation.model))
    body: Body = {"contents": history.contents()}
    system = [part for part in conversation.system if part.text]
    if system:
        body[_SYSTEM] = _instruction(system)
    if any(part.cache is not None for part in system):
        dropped.add("cache_control")
    tools = written_tools(conversation.tools, dropped)
    choice = written_choice(conversation.tool_choice, tools, dropped)
    config = _foreign_config(conversation, dropped)
    body |= {key: value for key, value in (("tools", tools), (_TOOL_CONFIG, choice), (_CONFIG, config)) if value}
    if conversation.user:
        dropped.add("user")
    name_extras(conversation.extras, dropped)
    return WrittenRequest(body=body, dropped=tuple(sorted(dropped)))


def _own_request(conversation: Conversation) -> Body:
    original = conversation.original
    if not isinstance(original, GeminiOriginal):
        return _normal_request(conversation)
    changes = original.changes(conversation)
    same = {key: value for key, value in original.body.items() if not _SOURCES.get(camel_case(key), _EXTRAS) & changes}
    if not changes:
        return same
    names = {camel_case(key) for key in same}
    return {key: value for key, value in _normal_request(conversation).items() if key not in names} | same


def _normal_request(conversation: Conversation) -> Body:
    fields = (
        ("contents", own_contents(conversation.turns)),
        (_SYSTEM, _instruction(conversation.system) if conversation.system else None),
        ("tools", written_tools(conversation.tools, set())),
        (_TOOL_CONFIG, own_choice(conversation.tool_choice)),
        (_CONFIG, own_config(conversation)),
    )
    body = {key: value for key, value in fields if value}
    whole = {key: value for key, value in conversation.extras.items() if key == _SYSTEM}
    return merged(body, conversation.extras) | whole


def _instruction(system: tuple[TextPart, ...] | list[TextPart]) -> Body:
    return {"parts": [{"text": part.text} for part in system], "role": "user"}


def _foreign_config(conversation: Conversation, dropped: set[str]) -> Body:
    sampling, model = conversation.sampling, conversation.model
    config = sampling_fields(sampling)
    if sampling.stop:
        config["stopSequences"] = list(sampling.stop[:MAX_STOPS])
    if len(sampling.stop) > MAX_STOPS:
        dropped.add("stop")
    if sampling.choices > 1:
        dropped.add("n")
    has_functions = any(isinstance(tool, ToolDefinition) for tool in conversation.tools)
    if conversation.output is not None and has_functions and not is_current(model):
        dropped.add("response_format")  # Gemini 2 rejects functions together with JSON output
    elif conversation.output is not None:
        config |= output_fields(conversation.output)
    if conversation.reasoning is not None:
        thinking = thinking_config(conversation.reasoning, model, dropped)
        config |= {"thinkingConfig": thinking} if thinking else {}
    return config
