"""Tools, choice of tools, and output format of a Chat Completions request, in both directions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content import ChatFields, cache_of, form_of, other_fields
from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    JsonOutput,
    ProviderTool,
    ToolChoice,
    ToolDefinition,
    ToolMode,
)
from rung.wires.translation.object_schema import with_properties
from rung.wires.wire_json import object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.chat_content_writer import ChatContentWriter

Json = dict[str, Any]

DEFAULT_OUTPUT_NAME: Final = "answer"
_EMPTY_SCHEMA: Final = {"type": "object", "properties": {}}
_MODES: Final = {"auto": ToolMode.AUTO, "none": ToolMode.NONE, "required": ToolMode.REQUIRED}
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME: Final = 64


def read_tool(tool: Mapping[str, Any]) -> ToolDefinition | ProviderTool:
    """Read a tool. A custom tool takes text instead of JSON, which no other wire family can say."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return ProviderTool(family=Family.CHAT, kind=f"{tool.get('type')}_tool", block=tool)
    cache = cache_of(tool)
    outer = other_fields(tool, "type", "function", *(("cache_control",) if cache is not None else ()))
    return read_function(function, cache, outer)


def read_function(
    function: Json, cache: Mapping[str, Any] | None = None, outer: Mapping[str, Any] = NOTHING
) -> ToolDefinition:
    """Read the definition of a function. Fields that are not as usual are kept as they are."""
    description, schema, strict = function.get("description"), function.get("parameters"), function.get("strict")
    known = ["name"]
    known += ["description"] if isinstance(description, str) and description else []
    known += ["parameters"] if isinstance(schema, dict) else []
    known += ["strict"] if isinstance(strict, bool) else []
    inner = other_fields(function, *known)
    extras = ChatFields(outer, inner) if inner else outer
    return ToolDefinition(
        name=function["name"],
        description=description if isinstance(description, str) else "",
        schema=schema if isinstance(schema, dict) else NOTHING,
        strict=strict if isinstance(strict, bool) else None,
        cache=cache,
        extras=extras,
        family=Family.CHAT if extras or inner else None,
    )


def write_tools(tools: Sequence[ToolDefinition | ProviderTool], writer: ChatContentWriter) -> list[Any]:
    """Return the tools of a request."""
    written: list[Any] = []
    for tool in tools:
        if isinstance(tool, ToolDefinition):
            written.append(_write_function(tool, writer))
        elif tool.family is Family.CHAT and writer.is_own:
            written.append(tool.block)
        else:
            writer.dropped.add(tool.kind)
    return written


def _write_function(tool: ToolDefinition, writer: ChatContentWriter) -> Json:
    function: Json = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not NOTHING or not writer.is_own:
        function["parameters"] = tool.schema if writer.is_own else with_properties(tool.schema or _EMPTY_SCHEMA)
    if tool.strict is not None:
        function["strict"] = tool.strict
    written: Json = {"type": "function", "function": function}
    if not writer.is_own:
        writer.note_extras(tool.extras, tool.family)
        writer.dropped |= {"cache_control"} if tool.cache is not None else set()
        return written
    if tool.cache is not None:
        written["cache_control"] = tool.cache
    if tool.family is Family.CHAT:
        written |= tool.extras
        function |= form_of(tool.extras)
    return written


def read_choice(choice: object) -> tuple[ToolMode | None, tuple[str, ...]]:
    """Read a choice of tools: a mode, one tool that must be called, or a list of allowed tools."""
    if isinstance(choice, str):
        return _MODES.get(choice), ()
    name = object_field(choice, "function").get("name") if isinstance(choice, dict) else None
    if isinstance(name, str):
        return ToolMode.REQUIRED, (name,)
    allowed = object_field(choice, "allowed_tools")
    mode = _MODES.get(str(allowed.get("mode")))
    names = [object_field(tool, "function").get("name") for tool in object_list(allowed, "tools")]
    return mode, tuple(map(str, names)) if mode and all(isinstance(name, str) for name in names) else ()


def write_choice(choice: ToolChoice) -> Any:
    """Return the choice of tools; None if it is not set."""
    named = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if choice.mode is None or choice.mode is ToolMode.NONE or not named:
        return choice.mode.value if choice.mode is not None else None
    if choice.mode is ToolMode.REQUIRED and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode.value, "tools": named}}


def read_output_format(response_format: object) -> JsonOutput | None:
    """Read the format of the answer. Text is the default of all wires."""
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "json_object":
        return JsonOutput()
    if kind != "json_schema":
        return None
    output = object_field(response_format, "json_schema")
    schema, strict, description = output.get("schema"), output.get("strict"), output.get("description")
    return JsonOutput(
        schema=schema if isinstance(schema, dict) else None,
        name=str(output.get("name") or ""),
        description=description if isinstance(description, str) else "",
        strict=strict if isinstance(strict, bool) else None,
    )


def write_output_format(output: JsonOutput) -> Json:
    """Return the format of the answer. `strict` is only written if the client said it: it restricts the schema."""
    if output.schema is None:
        return {"type": "json_object"}
    written: Json = {"name": _NO_NAME.sub("_", output.name)[:_MAX_NAME] or DEFAULT_OUTPUT_NAME, "schema": output.schema}
    if output.description:
        written["description"] = output.description
    if output.strict is not None:
        written["strict"] = output.strict
    return {"type": "json_schema", "json_schema": written}
