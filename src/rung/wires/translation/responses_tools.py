"""Tools of the Responses API, and the functions that stand for them at other providers.

Besides functions, a client of this wire runs custom tools (one text instead of JSON), shells and patches itself. Another
wire only knows functions, so each of these tools becomes a function. The answer writers turn a call of it back.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
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
from rung.wires.translation.object_schema import with_properties
from rung.wires.translation.responses_client_tools import CLIENT_TOOLS, client_schema
from rung.wires.wire_json import object_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_NAME: Final = 64  # characters of a tool's name, in all wires
NAMESPACE: Final = "namespace"
_READ_FIELDS: Final = frozenset({"type", "name", "description", "parameters", "strict", "format"})
_MODES: Final[Mapping[object, ToolMode]] = {mode.value: mode for mode in ToolMode}
_EMPTY_SCHEMA: Final = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ToolAddress:
    """How the client of this wire calls one of its tools. `kind` is the type of the tool: `function`, `custom`, …"""

    kind: str
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTools:
    """Tools of a request: those of the field `tools` first, then those that items of the input added."""

    definitions: tuple[ToolDefinition | ProviderTool, ...] = ()
    addresses: Mapping[str, ToolAddress] = NOTHING  # by the names of the definitions
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)  # of the definitions, by namespace and own name

    def name_of(self, name: str, namespace: str = "") -> str:
        """Return the name by which all wires know a tool, even if its definition is gone."""
        return self.names.get((namespace, name)) or _joined(namespace, name)


def read_tools(body: Mapping[str, Any], items: list[dict[str, Any]]) -> ReadTools:
    """Read the tools of a request and of the items that add tools."""
    entries = [*object_list(body, "tools")]
    for item in items:
        if adds_tools(item):
            entries += object_list(item, "tools")
    if not entries:
        return ReadTools()
    found: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
    provider: list[ProviderTool] = []
    for entry, namespace, text in _flat(entries):
        address = _address(entry, namespace)
        if address is None:
            kind = str(entry.get("type") or "tool")
            provider.append(ProviderTool(family=Family.RESPONSES, block=entry, kind=kind))
        else:
            found[namespace, address.name] = (entry, text)  # a later definition replaces an earlier one
    counts = Counter(name for _, name in found)
    names = {key: key[1] if counts[key[1]] == 1 else _joined(*key) for key in found}
    return ReadTools(
        definitions=(*(_definition(names[key], *found[key]) for key in found), *provider),
        addresses={names[key]: ToolAddress(str(entry["type"]), key[1], key[0]) for key, (entry, _) in found.items()},
        names=names,
    )


def adds_tools(item: Mapping[str, Any]) -> bool:
    """Return whether an item of the input defines tools: given by the client, or found by a search of the client."""
    return item.get("type") in ("additional_tools", "tool_search_output") and isinstance(item.get("tools"), list)


def _flat(entries: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield each tool with the name and the description of its namespace."""
    for entry in entries:
        if entry.get("type") == NAMESPACE:
            name, text = str(entry.get("name") or ""), str(entry.get("description") or "")
            for tool in object_list(entry, "tools"):
                yield tool, name, text
        else:
            yield entry, "", ""


def _address(entry: Mapping[str, Any], namespace: str) -> ToolAddress | None:
    """Return how the client calls a tool, or None if the provider runs it."""
    kind, name = entry.get("type"), entry.get("name")
    if kind in ("function", "custom"):
        return ToolAddress(kind, name, namespace) if isinstance(name, str) and name else None
    if not isinstance(kind, str) or kind not in CLIENT_TOOLS or not CLIENT_TOOLS[kind].is_run_by_client(entry):
        return None
    return ToolAddress(kind, kind)


def _definition(name: str, entry: Mapping[str, Any], namespace_text: str) -> ToolDefinition:
    own, schema = client_schema(entry)
    about = "\n\n".join(text for text in (own, namespace_text) if text)
    is_named = entry.get("type") in ("function", "custom")
    extras = {key: value for key, value in entry.items() if key not in _READ_FIELDS and value is not None and is_named}
    strict = entry.get("strict")
    return ToolDefinition(
        name=name,
        description=about,
        schema=schema,
        strict=strict if isinstance(strict, bool) else None,
        extras=extras or NOTHING,
        family=Family.RESPONSES if extras else None,
    )


def _joined(namespace: str, name: str) -> str:
    whole = f"{namespace}__{name}" if namespace else name
    if len(whole) <= MAX_NAME or not namespace:
        return whole
    return f"{whole[: MAX_NAME - 9]}_{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def read_tool_choice(body: Mapping[str, Any], tools: ReadTools) -> tuple[ToolChoice, Any]:
    """Return the choice of tools, and the field `tool_choice` if only this wire can say it."""
    parallel = body.get("parallel_tool_calls")
    parallel = parallel if isinstance(parallel, bool) else None
    choice = body.get("tool_choice")
    if choice is None:
        return ToolChoice(parallel=parallel), None
    if isinstance(choice, str):
        mode = _MODES.get(choice)
        return ToolChoice(mode=mode, parallel=parallel), None if mode else choice
    mode, names = _chosen(choice, tools) if isinstance(choice, dict) else (None, ())
    if not names:
        return ToolChoice(parallel=parallel), choice
    return ToolChoice(mode=mode, names=names, parallel=parallel), None


def _chosen(choice: Mapping[str, Any], tools: ReadTools) -> tuple[ToolMode | None, tuple[str, ...]]:
    """Return the mode and the names of the client's tools that a choice allows."""
    if choice.get("type") != "allowed_tools":
        return ToolMode.REQUIRED, _chosen_names([choice], tools)
    mode = ToolMode.REQUIRED if choice.get("mode") == "required" else ToolMode.AUTO
    return mode, _chosen_names(object_list(choice, "tools"), tools)


def _chosen_names(entries: list[Any], tools: ReadTools) -> tuple[str, ...]:
    names = []
    for entry in entries:
        kind = str(entry.get("type"))
        if kind in ("function", "custom") and isinstance(entry.get("name"), str):
            names.append(tools.name_of(entry["name"], str(entry.get(NAMESPACE) or "")))
        elif kind in tools.addresses and tools.addresses[kind].kind == kind:
            names.append(kind)
    return tuple(names)


def write_tools(
    tools: tuple[ToolDefinition | ProviderTool, ...], dropped: set[str], *, is_own: bool
) -> list[dict[str, Any]]:
    """Write the tools of a request."""
    written: list[dict[str, Any]] = []
    for tool in tools:
        if isinstance(tool, ToolDefinition):
            written.append(_write_tool(tool, dropped, is_own=is_own))
        elif tool.family is Family.RESPONSES:
            written.append(dict(tool.block))
        else:
            dropped.add(tool.kind)
    return written


def _write_tool(tool: ToolDefinition, dropped: set[str], *, is_own: bool) -> dict[str, Any]:
    schema = (dict(tool.schema) or None) if is_own else dict(with_properties(tool.schema or _EMPTY_SCHEMA))
    written: dict[str, Any] = {"type": "function", "name": tool.name, "parameters": schema}
    if tool.description:
        written["description"] = tool.description
    if tool.strict is not None or not is_own:  # without it, this provider tries to be strict
        written["strict"] = bool(tool.strict)
    if tool.cache is not None:
        dropped.add("cache_control")
    if tool.family is Family.RESPONSES:
        written.update(tool.extras)
    else:
        name_extras(tool.extras, dropped)
    return written


def write_tool_choice(choice: ToolChoice) -> dict[str, Any]:
    """Write the choice of tools."""
    found: dict[str, Any] = {} if choice.parallel is None else {"parallel_tool_calls": choice.parallel}
    if not choice.names:
        return found | ({"tool_choice": choice.mode.value} if choice.mode else {})
    tools = [{"type": "function", "name": name} for name in choice.names]
    if choice.mode is not ToolMode.AUTO and len(tools) == 1:
        return {**found, "tool_choice": tools[0]}
    mode = "auto" if choice.mode is ToolMode.AUTO else "required"
    return {**found, "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": tools}}
