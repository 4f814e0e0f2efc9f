"""Conversation of another family, made consistent for the writers: tools, choice of tools, calls and their results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rung.wires.translation.conversation import ToolChoice, ToolDefinition, ToolMode
from rung.wires.translation.paired_turns import pair_turns

if TYPE_CHECKING:
    from rung.wires.translation.conversation import Conversation, ProviderTool


def consistent(conversation: Conversation, dropped: set[str]) -> Conversation:
    """Return a conversation without what every provider rejects. `dropped` names what is lost."""
    tools = tuple(map(_with_object, _distinct(conversation.tools, dropped)))
    turns = pair_turns(conversation.turns, dropped)
    choice = _possible(conversation.tool_choice, tools, dropped)
    sampling = conversation.sampling
    if sampling.max_tokens is not None and sampling.max_tokens < 1:
        dropped.add("max_tokens")
        sampling = replace(sampling, max_tokens=None)
    return replace(conversation, tools=tools, turns=turns, tool_choice=choice, sampling=sampling)


def _distinct(
    tools: tuple[ToolDefinition | ProviderTool, ...], dropped: set[str]
) -> tuple[ToolDefinition | ProviderTool, ...]:
    names = [tool.name for tool in tools if isinstance(tool, ToolDefinition)]
    if len(names) == len(set(names)):
        return tools
    dropped.add("duplicate_tool")
    first = {tool.name: tool for tool in reversed(tools) if isinstance(tool, ToolDefinition)}
    return tuple(tool for tool in tools if not isinstance(tool, ToolDefinition) or first[tool.name] is tool)


def _with_object(tool: ToolDefinition | ProviderTool) -> ToolDefinition | ProviderTool:
    """Return a tool whose arguments are an object. Some servers accept tools that do not say it."""
    if not isinstance(tool, ToolDefinition) or not tool.schema or tool.schema.get("type") == "object":
        return tool
    return replace(tool, schema={**tool.schema, "type": "object"})


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
