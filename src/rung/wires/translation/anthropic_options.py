"""Settings of a request to Anthropic's Messages API: fields to neutral settings, and back.

The readers take from `rest` what they understand, and leave the other fields there. The rest becomes the `extras` of the
conversation, over which the writer lays the fields again, so that a request comes back exactly as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    JsonOutput,
    ProviderTool,
    ReasoningRequest,
    Sampling,
    ToolChoice,
    ToolDefinition,
    ToolMode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.conversation import Conversation

Fields = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
_VERSION: Final = re.compile(r"_\d{8}$")  # of a provider's tool: web_search_20250305
_TOOL_FIELDS: Final = frozenset({"name", "description", "input_schema", "strict", "cache_control"})
_MODES: Final = {"auto": ToolMode.AUTO, "any": ToolMode.REQUIRED, "tool": ToolMode.REQUIRED, "none": ToolMode.NONE}
_MODE_NAMES: Final = {ToolMode.AUTO: "auto", ToolMode.REQUIRED: "any", ToolMode.NONE: "none"}
_IS_SHOWN: Final = {"summarized": True, "omitted": False}


def take(rest: Fields, name: str, *kinds: type[Any]) -> Any:
    """Take a field of one of these types. Return None if there is none. A boolean is no number."""
    value = rest.get(name)
    if type(value) in kinds and value != "":
        del rest[name]
        return value
    return None


def _leave(rest: Fields, name: str, others: Fields) -> None:
    """Leave only the other fields of an object."""
    if others:
        rest[name] = others
    else:
        del rest[name]


# -- tools ---------------------------------------------------------------------------------------------------------------


def take_tools(rest: Fields) -> tuple[ToolDefinition | ProviderTool, ...]:
    """Take the tools."""
    tools = rest.get("tools")
    if not isinstance(tools, list) or not tools or not all(isinstance(tool, dict) for tool in tools):
        return ()
    del rest["tools"]
    return tuple([_read_tool(tool) for tool in tools])


def _read_tool(tool: Fields) -> ToolDefinition | ProviderTool:
    name, schema, kind = tool.get("name"), tool.get("input_schema"), tool.get("type")
    if kind not in (None, "custom") or not isinstance(name, str) or not isinstance(schema, dict):
        return ProviderTool(family=_OWN, block=tool, kind=_VERSION.sub("", str(kind or name or "tool")))
    description, strict, cache = tool.get("description"), tool.get("strict"), tool.get("cache_control")
    extras = {key: value for key, value in tool.items() if key not in _TOOL_FIELDS}
    read = {
        "description": isinstance(description, str) and description != "",
        "strict": isinstance(strict, bool),
        "cache_control": isinstance(cache, dict),
    }
    extras |= {key: tool[key] for key, is_read in read.items() if key in tool and not is_read}
    return ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        schema=schema,
        strict=strict if isinstance(strict, bool) else None,
        cache=cache if isinstance(cache, dict) else None,
        extras=extras or NOTHING,
        family=_OWN,
    )


def write_tool(tool: ToolDefinition | ProviderTool) -> Mapping[str, Any]:
    """Write a tool."""
    if isinstance(tool, ProviderTool):
        return tool.block
    fields: Fields = {"name": tool.name}
    if tool.description:
        fields["description"] = tool.description
    fields["input_schema"] = tool.schema
    if tool.strict is not None:
        fields["strict"] = tool.strict
    if tool.cache is not None:
        fields["cache_control"] = tool.cache
    if tool.extras and tool.family is _OWN:
        fields.update(tool.extras)
    return fields


def take_tool_choice(rest: Fields) -> ToolChoice:
    """Take the choice of tools."""
    choice = rest.get("tool_choice")
    others: Fields = dict(choice) if isinstance(choice, dict) else {}
    kind = take(others, "type", str)
    name = take(others, "name", str) if kind == "tool" else None
    if kind not in _MODES or (kind == "tool" and name is None):
        return ToolChoice()
    is_single = take(others, "disable_parallel_tool_use", bool)
    _leave(rest, "tool_choice", others)
    return ToolChoice(
        mode=_MODES[kind], names=(name,) if name else (), parallel=None if is_single is None else not is_single
    )


def write_tool_choice(choice: ToolChoice) -> Fields | None:
    """Write the choice of tools. Return None if nothing was chosen."""
    if choice.mode is None and choice.parallel is None:
        return None
    fields: Fields = {"type": _MODE_NAMES[choice.mode or ToolMode.AUTO]}
    if choice.mode is ToolMode.REQUIRED and len(choice.names) == 1:
        fields = {"type": "tool", "name": choice.names[0]}
    if choice.parallel is not None:
        fields["disable_parallel_tool_use"] = not choice.parallel
    return fields


# -- output and reasoning ------------------------------------------------------------------------------------------------


def take_output(rest: Fields) -> tuple[JsonOutput | None, str]:
    """Take the format of the output and the effort. `output_format` is the older field, which leaves an empty object."""
    output, effort = None, ""
    config = rest.get("output_config")
    if isinstance(config, dict) and config:
        others = dict(config)
        effort = take(others, "effort", str) or ""
        output = _read_format(others, "format")
        _leave(rest, "output_config", others)
    if output is None:
        output = _read_format(rest, "output_format")
        if output is not None:
            rest.setdefault("output_format", {})
    return output, effort


def _read_format(rest: Fields, name: str) -> JsonOutput | None:
    written = rest.get(name)
    others: Fields = dict(written) if isinstance(written, dict) else {}
    schema = take(others, "schema", dict)
    if schema is None or others.pop("type", None) != "json_schema":
        return None
    _leave(rest, name, others)
    return JsonOutput(schema=schema)


def take_reasoning(rest: Fields, effort: str) -> ReasoningRequest | None:
    """Take the settings of thinking. A mode that no other wire has, such as `between_tools`, is left in the rest."""
    thinking = rest.get("thinking")
    others: Fields = dict(thinking) if isinstance(thinking, dict) else {}
    kind = others.get("type")
    budget = take(others, "budget_tokens", int) if kind == "enabled" else None
    if not isinstance(kind, str) or (kind == "enabled" and budget is None):
        return ReasoningRequest(effort=effort) if effort else None
    if kind in ("enabled", "adaptive", "disabled"):
        del others["type"]
    is_shown = _IS_SHOWN.get(str(others.get("display")))
    if is_shown is not None:
        del others["display"]
    _leave(rest, "thinking", others)
    return ReasoningRequest(is_enabled=kind != "disabled", budget_tokens=budget, effort=effort, is_shown=is_shown)


def write_thinking(reasoning: ReasoningRequest | None) -> Fields | None:
    """Write the settings of thinking. Return None if they were not set."""
    if reasoning is None or reasoning.is_enabled is None:
        return None
    fields: Fields = {"type": "adaptive" if reasoning.is_enabled else "disabled"}
    if reasoning.budget_tokens is not None:
        fields = {"type": "enabled", "budget_tokens": reasoning.budget_tokens}
    if reasoning.is_shown is not None:
        fields["display"] = "summarized" if reasoning.is_shown else "omitted"
    return fields


def write_output(conversation: Conversation) -> Fields:
    """Write the format of the output and the effort, each in the field that it was read from."""
    config: Fields = {}
    body: Fields = {}
    if conversation.reasoning is not None and conversation.reasoning.effort:
        config["effort"] = conversation.reasoning.effort
    if conversation.output is not None and conversation.output.schema is not None:
        written = {"type": "json_schema", "schema": conversation.output.schema}
        older = conversation.extras.get("output_format")
        if isinstance(older, dict) and "type" not in older:
            body["output_format"] = written
        else:
            config["format"] = written
    return {**body, "output_config": config} if config else body


def lay_over(written: Fields, extras: Mapping[str, Any]) -> Fields:
    """Return the written fields with the extras over them, also in nested objects."""
    merged = dict(written)
    for name, value in extras.items():
        below = merged.get(name)
        merged[name] = lay_over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


# -- sampling ------------------------------------------------------------------------------------------------------------


def take_sampling(rest: Fields) -> Sampling:
    """Take the parameters of the model."""
    stop: Sequence[str] = ()
    sequences = rest.get("stop_sequences")
    if isinstance(sequences, list) and sequences and all(isinstance(each, str) for each in sequences):
        stop = rest.pop("stop_sequences")
    return Sampling(
        max_tokens=take(rest, "max_tokens", int),
        temperature=take(rest, "temperature", int, float),
        top_p=take(rest, "top_p", int, float),
        top_k=take(rest, "top_k", int),
        stop=tuple(stop),
    )


def write_sampling(sampling: Sampling) -> Fields:
    """Write the parameters of the model that this API has."""
    fields: Fields = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": list(sampling.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
