"""Conversation of another family, made consistent for the writers: tools, choice of tools, calls and their results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.wires.translation.anthropic_client_tools import as_function
from rung.wires.translation.conversation import (
    Family,
    ReasoningRequest,
    Speaker,
    TextPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    Turn,
)
from rung.wires.translation.object_schema import accepted_arguments, with_root
from rung.wires.translation.paired_turns import pair_turns
from rung.wires.translation.strict_schema import is_strict
from rung.wires.wire_json import to_json

if TYPE_CHECKING:
    from rung.wires.translation.conversation import Conversation, ProviderTool

_OPENAI: Final = (Family.CHAT, Family.RESPONSES)
_MIN_WITH_REASONING: Final = 2_048  # tokens of output below which there is no room for reasoning
_GO_ON: Final = "Continue your last message exactly where it ends. Do not repeat any of it."


def consistent(conversation: Conversation, dropped: set[str]) -> Conversation:
    """Return a conversation without what every provider rejects. `dropped` names what is lost."""
    tools = tuple(
        _accepted(tool, dropped) if isinstance(tool, ToolDefinition) else tool
        for tool in _distinct(tuple(map(as_function, conversation.tools)), dropped)
    )
    turns = _with_request(conversation, pair_turns(conversation.turns, dropped), dropped)
    choice = _possible(conversation.tool_choice, tools, dropped)
    conversation = with_little_reasoning(conversation)
    sampling = conversation.sampling
    if sampling.max_tokens is not None and sampling.max_tokens < 1:
        dropped.add("max_tokens")
        sampling = replace(sampling, max_tokens=None)
    return replace(conversation, tools=tools, turns=turns, tool_choice=choice, sampling=sampling)


def with_little_reasoning(conversation: Conversation) -> Conversation:
    """Return a request that asks for no reasoning if its output limit is small, and it did not ask for any.

    Reasoning counts toward the limit. Models that reason unless they are told not to would have no room for the answer.
    """
    limit = conversation.sampling.max_tokens
    if conversation.reasoning is not None or limit is None or limit >= _MIN_WITH_REASONING:
        return conversation
    return replace(conversation, reasoning=ReasoningRequest(is_enabled=False, is_implied=True))


def with_chosen_tools(conversation: Conversation) -> Conversation:
    """Return a request with only the tools that its choice allows, for wires that have no list of allowed tools.

    One tool that must be called is a choice of its own in every wire.
    """
    choice = conversation.tool_choice
    if not choice.names or (choice.mode is ToolMode.REQUIRED and len(choice.names) == 1):
        return conversation
    tools = tuple(
        tool for tool in conversation.tools if not isinstance(tool, ToolDefinition) or tool.name in choice.names
    )
    if not any(isinstance(tool, ToolDefinition) for tool in tools):
        return conversation
    return replace(conversation, tools=tools, tool_choice=replace(choice, names=()))


def _with_request(conversation: Conversation, turns: tuple[Turn, ...], dropped: set[str]) -> tuple[Turn, ...]:
    """Return the turns with a request to go on, if they end with the beginning of the answer, as Anthropic allows."""
    if conversation.family is not Family.ANTHROPIC or not turns or turns[-1].speaker is not Speaker.ASSISTANT:
        return turns
    if not any(isinstance(part, TextPart) and part.text for part in turns[-1].parts):
        return turns
    dropped.add("prefill")
    return (*turns, Turn(speaker=Speaker.USER, parts=(TextPart(text=_GO_ON),)))


def _distinct(
    tools: tuple[ToolDefinition | ProviderTool, ...], dropped: set[str]
) -> tuple[ToolDefinition | ProviderTool, ...]:
    names = [tool.name for tool in tools if isinstance(tool, ToolDefinition)]
    if len(names) == len(set(names)):
        return tools
    dropped.add("duplicate_tool")
    first = {tool.name: tool for tool in reversed(tools) if isinstance(tool, ToolDefinition)}
    return tuple(tool for tool in tools if not isinstance(tool, ToolDefinition) or first[tool.name] is tool)


def _accepted(tool: ToolDefinition, dropped: set[str]) -> ToolDefinition:
    """Return a tool whose arguments are one object. Some servers accept tools that do not say it.

    Strict mode of OpenAI restricts schemas more than that of other providers does.
    """
    if not tool.schema and not tool.strict:
        return tool
    schema = accepted_arguments(tool.schema, dropped)
    if schema.get("type") != "object":
        schema = {**schema, "type": "object"}
    if tool.strict and not is_strict(schema):
        dropped.add("strict")
        return replace(tool, schema=schema, strict=None)
    return tool if schema is tool.schema else replace(tool, schema=schema)


def for_openai(conversation: Conversation, dropped: set[str]) -> Conversation:
    """Return a conversation with an output format that OpenAI accepts.

    OpenAI rejects a schema whose root is not an object: the model is told of it in words. Other providers always keep to a
    schema; OpenAI does so in strict mode only.
    """
    output = conversation.output
    if output is None or output.schema is None:
        return conversation
    schema = with_root(output.schema)
    if schema.get("type") != "object" or "anyOf" in schema:
        dropped.add("json_schema")
        text = f"Answer with JSON of this schema and nothing else: no prose, no code fence.\n{to_json(schema)}"
        return replace(conversation, output=None, system=(*conversation.system, TextPart(text=text)))
    is_possible = is_strict(schema)
    if output.strict and not is_possible:
        dropped.add("strict")
        return replace(conversation, output=replace(output, schema=schema, strict=None))
    is_kept = output.strict is None and is_possible and conversation.family not in _OPENAI
    return replace(conversation, output=replace(output, schema=schema, strict=True if is_kept else output.strict))


def _possible(choice: ToolChoice, tools: tuple[ToolDefinition | ProviderTool, ...], dropped: set[str]) -> ToolChoice:
    """Return a choice between tools that exist."""
    if choice.mode is None and choice.parallel is None and not choice.names:
        return choice
    names = {tool.name for tool in tools if isinstance(tool, ToolDefinition)}
    if not names:
        dropped.update(["tool_choice"] if choice.mode is ToolMode.REQUIRED else [])
        return ToolChoice()
    kept = tuple(name for name in choice.names if name in names)
    if len(kept) == len(choice.names):
        return choice
    dropped.update([] if kept else ["tool_choice"])
    return replace(choice, names=kept)
