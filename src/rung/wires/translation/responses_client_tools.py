"""Tools that a client of the Responses API runs itself: as functions of other wires, and their calls back as items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rung.wires.wire_json import json_object, object_field, parse_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT: Final = {"type": "string"}
_WORDS: Final = {"type": "array", "items": _TEXT}
_COUNT: Final = {"type": "integer"}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToolKind:
    """A kind of tool: the type of its calls, the field with their arguments, and how a model is told to call it."""

    call_type: str
    arguments: str  # field of the call
    id_prefix: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)  # in the arguments of every call

    def is_run_by_client(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a tool of this kind runs at the client."""
        if self.call_type == "tool_search_call":
            return entry.get("execution") == "client"
        return bool(object_field(entry, "environment").get("type", "local") == "local")


FUNCTION: Final = ClientToolKind(call_type="function_call", arguments="arguments", id_prefix="fc")
CUSTOM: Final = ClientToolKind(
    call_type="custom_tool_call",
    arguments="input",
    id_prefix="ctc",
    schema=_schema(["input"], input={"type": "string", "description": "The whole input of the tool, as plain text."}),
)
CLIENT_TOOLS: Final[Mapping[str, ClientToolKind]] = {
    "function": FUNCTION,
    "custom": CUSTOM,
    "local_shell": ClientToolKind(
        call_type="local_shell_call",
        arguments="action",
        id_prefix="lsh",
        description="Runs a command on the local machine and returns its output.",
        schema=_schema(["command"], command=_WORDS, timeout_ms=_COUNT, working_directory=_TEXT),
        constants={"type": "exec", "env": {}},
    ),
    "shell": ClientToolKind(
        call_type="shell_call",
        arguments="action",
        id_prefix="sh",
        description="Runs shell commands on the local machine and returns their outputs.",
        schema=_schema(["commands"], commands=_WORDS, timeout_ms=_COUNT, max_output_length=_COUNT),
    ),
    "apply_patch": ClientToolKind(
        call_type="apply_patch_call",
        arguments="operation",
        id_prefix="apc",
        description="Creates, updates or deletes one file. `diff` is in the V4A format; a deletion has none.",
        schema=_schema(
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
    "tool_search": ClientToolKind(call_type="tool_search_call", arguments="arguments", id_prefix="tsc"),
}
NO_ARGUMENTS: Final = "{}"  # an empty text is no JSON
KIND_OF_CALL: Final = {kind.call_type: name for name, kind in CLIENT_TOOLS.items()}


def client_schema(entry: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the description and the schema of the function that stands for a tool."""
    kind = CLIENT_TOOLS[str(entry.get("type"))]
    text = entry.get("description")
    text = text if isinstance(text, str) else kind.description
    schema = entry.get("parameters")
    if kind is CUSTOM:
        return "\n\n".join(part for part in (text, _grammar(entry)) if part), kind.schema
    return text, schema if isinstance(schema, dict) else kind.schema


def _grammar(entry: Mapping[str, Any]) -> str:
    form = object_field(entry, "format")
    if form.get("type") != "grammar":
        return "Put the whole input of this tool, as plain text, into the argument `input`."
    return (
        "Put the whole input of this tool, as plain text, into the argument `input`. "
        f"It must match this {form.get('syntax')} grammar:\n{form.get('definition')}"
    )


def arguments_of(kind: ClientToolKind, item: Mapping[str, Any]) -> str:
    """Return the arguments of a call as the JSON text of a function's arguments."""
    value = item.get(kind.arguments)
    if kind is FUNCTION:
        return value if isinstance(value, str) else ""
    if kind is CUSTOM:
        return to_json({"input": value if isinstance(value, str) else ""})
    return to_json(value) if isinstance(value, dict) else str(value or "")


def call_value(kind: ClientToolKind, arguments: str) -> Any:
    """Return the arguments field of a call, from the JSON text that a model wrote for the function."""
    if kind is FUNCTION:
        return arguments
    if kind is not CUSTOM:
        return {**kind.constants, **json_object(arguments)}
    found = parse_json(arguments)
    if isinstance(found, dict) and isinstance(found.get("input"), str):
        return found["input"]
    return found if isinstance(found, str) else arguments
