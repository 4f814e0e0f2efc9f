"""Tools of other wires, written as Anthropic's Messages API takes them, and the choice between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.claude_models import claude_rules
from rung.wires.translation.anthropic_messages import name_extras
from rung.wires.translation.anthropic_options import write_tool
from rung.wires.translation.anthropic_options import write_tool_choice as write_choice
from rung.wires.translation.anthropic_schema import is_recursive, supported_schema, without_identity
from rung.wires.translation.conversation import Family, ProviderTool, ToolDefinition, ToolMode
from rung.wires.translation.object_schema import accepted_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.conversation import Conversation

Fields = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
_MAX_STRICT: Final = 20  # strict tools of a request; the API rejects more
_MAX_OPTIONAL: Final = 24  # optional properties of all strict tools
_MAX_UNIONS: Final = 16  # properties of several types, of all strict tools


def write_tools(conversation: Conversation, messages: Sequence[Fields], dropped: set[str]) -> list[Mapping[str, Any]]:
    """Write the tools; those of earlier calls if the request has none."""
    tools: list[Mapping[str, Any]] = []
    names: set[str] = set()  # the API rejects two tools of one name
    for tool in conversation.tools:
        if isinstance(tool, ProviderTool):
            if tool.family is _OWN:
                tools.append(write_tool(tool))
            else:
                dropped.add(tool.kind)
        elif tool.name in names:
            dropped.add("duplicate_tool")
        else:
            names.add(tool.name)
            tools.append(_write_definition(tool, dropped))
    return _with_few_strict(tools, dropped) or _called_tools(messages)


def _write_definition(tool: ToolDefinition, dropped: set[str]) -> Mapping[str, Any]:
    name_extras(tool.extras, tool.family, dropped)
    schema = {**accepted_arguments(without_identity(tool.schema), dropped), "type": "object"}
    fields: Fields = {"name": tool.name, "input_schema": schema}
    if tool.description:
        fields["description"] = tool.description
    if tool.strict:
        # The API rejects a strict tool whose schema has limits. The model follows them in a tool that is not strict.
        if supported_schema(schema) == schema and not is_recursive(schema):
            fields["strict"] = True
        else:
            dropped.add("strict")
    return fields


def _with_few_strict(tools: list[Mapping[str, Any]], dropped: set[str]) -> list[Mapping[str, Any]]:
    """Return tools that the API can compile to one grammar: none is strict if they exceed its limits."""
    strict = [tool["input_schema"] for tool in tools if tool.get("strict") and "input_schema" in tool]
    optional = sum(len(_properties(schema)) - len(schema.get("required", ())) for schema in strict)
    unions = sum("anyOf" in each or isinstance(each.get("type"), list) for schema in strict for each in _values(schema))
    if len(strict) <= _MAX_STRICT and optional <= _MAX_OPTIONAL and unions <= _MAX_UNIONS:
        return tools
    dropped.add("strict")
    return [{name: value for name, value in tool.items() if name != "strict"} for tool in tools]


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _values(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in _properties(schema).values() if isinstance(each, dict)]


def _called_tools(messages: Sequence[Fields]) -> list[Mapping[str, Any]]:
    """Define the tools of earlier calls: the API rejects a history with calls in a request without tools."""
    blocks = (block for message in messages for block in message["content"])
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def write_tool_choice(conversation: Conversation, dropped: set[str]) -> Fields:
    """Write the choice of tools for a request that has some."""
    if not any(isinstance(tool, ToolDefinition) or tool.family is _OWN for tool in conversation.tools):
        return {"tool_choice": {"type": "none"}}  # the tools are only those of earlier calls
    choice = write_choice(conversation.tool_choice)
    if choice is None:
        return {}
    if choice["type"] == "none":
        choice.pop("disable_parallel_tool_use", None)
    if choice["type"] == "tool" and choice["name"] not in _names(conversation):
        dropped.add("tool_choice")
        choice = {"type": "any"}
    if is_forced(conversation) and not claude_rules(conversation.model).has_forced_calls:
        choice.pop("name", None)
        choice["type"] = "auto"
    return {"tool_choice": choice}


def is_forced(conversation: Conversation) -> bool:
    """Return whether the model must call one of the client's tools."""
    return conversation.tool_choice.mode is ToolMode.REQUIRED and bool(_names(conversation))


def demanded_call(conversation: Conversation, dropped: set[str]) -> list[Fields]:
    """Return a text that demands a call, for models that reject a forced one. It follows the last cache breakpoint."""
    if not is_forced(conversation) or claude_rules(conversation.model).has_forced_calls:
        return []
    dropped.add("tool_choice")
    names = [name for name in conversation.tool_choice.names if name in _names(conversation)]
    which = f"the tool {names[0]}" if len(names) == 1 else "one of the tools"
    return [{"type": "text", "text": f"<system>\nCall {which} now. Do not answer in words.\n</system>"}]


def _names(conversation: Conversation) -> set[str]:
    return {tool.name for tool in conversation.tools if isinstance(tool, ToolDefinition)}
