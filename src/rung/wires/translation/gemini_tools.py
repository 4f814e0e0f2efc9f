"""Tools of Gemini's API: function declarations, Google's own tools, and the choice between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ProviderTool,
    ToolChoice,
    ToolDefinition,
    ToolMode,
)
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.gemini_fields import listed, snake_case, spelled, texts_of
from rung.wires.translation.gemini_schema import OpenApiSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FUNCTIONS: Final = "functionDeclarations"
_MODES: Final = {"AUTO": ToolMode.AUTO, "ANY": ToolMode.REQUIRED, "NONE": ToolMode.NONE}
_MODE_NAMES: Final = {mode: name for name, mode in _MODES.items()}

Tools = tuple[ToolDefinition | ProviderTool, ...]


def read_tools(tools: Sequence[Mapping[str, Any]]) -> Tools:
    """Read the tools of a request."""
    found: list[ToolDefinition | ProviderTool] = []
    for tool in tools:
        for key, value in spelled(tool).items():
            functions = listed(value) if key == _FUNCTIONS else None
            if isinstance(functions, list):
                found.extend(_read_function(item) for item in functions)
            else:
                found.append(ProviderTool(family=Family.GEMINI, block={key: value}, kind=snake_case(key)))
    return tuple(found)


def _read_function(declaration: Any) -> ToolDefinition | ProviderTool:
    fields = dict(spelled(declaration)) if isinstance(declaration, dict) else {}
    name, description = fields.pop("name", None), fields.pop("description", "")
    if not isinstance(name, str) or not isinstance(description, str):
        return ProviderTool(family=Family.GEMINI, block={_FUNCTIONS: [declaration]}, kind=snake_case(_FUNCTIONS))
    schema: Mapping[str, Any] = NOTHING
    if isinstance(fields.get("parametersJsonSchema"), dict):
        schema = fields.pop("parametersJsonSchema")
    elif isinstance(fields.get("parameters"), dict):
        schema = OpenApiSchema(fields.pop("parameters"))
    return ToolDefinition(
        name=name, description=description, schema=schema, extras=fields or NOTHING, family=Family.GEMINI
    )


def written_tools(tools: Iterable[ToolDefinition | ProviderTool], dropped: set[str]) -> list[dict[str, Any]]:
    """Write tools: all functions in one tool, in place of the first, and each of Google's own tools in one."""
    functions: list[Any] = []
    written: list[dict[str, Any]] = []
    names: set[str] = set()
    for tool in tools:
        if isinstance(tool, ProviderTool) and tool.family is not Family.GEMINI:
            dropped.add(tool.kind)
            continue
        if isinstance(tool, ToolDefinition) and tool.family is not Family.GEMINI and tool.name in names:
            dropped.add("duplicate_tool")  # Gemini rejects two functions of one name
            continue
        if isinstance(tool, ToolDefinition):
            names.add(tool.name)
            found = [_written_function(tool, dropped)]
        elif isinstance(tool.block.get(_FUNCTIONS), list):
            found = tool.block[_FUNCTIONS]
        else:
            written.append(dict(tool.block))
            continue
        if not functions:
            written.append({_FUNCTIONS: functions})
        functions.extend(found)
    return written


def _written_function(tool: ToolDefinition, dropped: set[str]) -> dict[str, Any]:
    written: dict[str, Any] = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    if isinstance(tool.schema, OpenApiSchema):
        written["parameters"] = tool.schema.original
    elif tool.schema:
        written["parametersJsonSchema"] = dict(tool.schema)
    if tool.family is Family.GEMINI:
        return {**written, **tool.extras}
    if tool.strict:
        dropped.add("strict")
    if tool.cache is not None:
        dropped.add("cache_control")
    name_extras(tool.extras, dropped)
    return written


def read_choice(config: Mapping[str, Any]) -> tuple[ToolChoice, dict[str, Any]]:
    """Read a toolConfig. Return the choice, and the fields that have no neutral form."""
    rest = {key: value for key, value in spelled(config).items() if value is not None}
    calling = rest.get("functionCallingConfig")
    if isinstance(calling, dict):
        rest["functionCallingConfig"] = spelled(calling)
    fields = dict(spelled(calling)) if isinstance(calling, dict) else {}
    mode, names = fields.pop("mode", None), texts_of(fields.pop("allowedFunctionNames", []))
    if not isinstance(mode, str) or names is None:
        return ToolChoice(), rest
    choice = ToolChoice(mode=_MODES.get(mode.upper(), ToolMode.AUTO), names=names)
    if not fields and mode.upper() in _MODES:
        del rest["functionCallingConfig"]
    return choice, rest


def written_choice(choice: ToolChoice, tools: Sequence[Mapping[str, Any]], dropped: set[str]) -> dict[str, Any]:
    """Write the toolConfig of a conversation of another wire. Gemini rejects one that no function declaration fits."""
    declared = {item["name"] for tool in tools for item in tool.get(_FUNCTIONS, ())}
    if choice.parallel is False:
        dropped.add("parallel_tool_calls")
    if choice.mode is None:
        return {}
    names = tuple(name for name in choice.names if name in declared)
    if not declared or (choice.names and not names):
        if choice.mode is ToolMode.REQUIRED:
            dropped.add("tool_choice")
        return {}
    # Only a required call can be limited to some functions.
    return own_choice(ToolChoice(mode=choice.mode, names=names if choice.mode is ToolMode.REQUIRED else ()))


def own_choice(choice: ToolChoice) -> dict[str, Any]:
    """Write the toolConfig of a conversation that was read from Gemini's wire."""
    if choice.mode is None:
        return {}
    calling: dict[str, Any] = {"mode": _MODE_NAMES[choice.mode]}
    if choice.names:
        calling["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": calling}
