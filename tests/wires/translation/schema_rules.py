"""Rules by which providers reject the schema of a tool or of an output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIONS = {"anyOf", "oneOf", "allOf"}
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
LIMITS = {"minimum", "maximum", "minLength", "maxLength", "pattern", "oneOf", "patternProperties", "maxItems"}


def check_anthropic(tool: dict[str, Any]) -> None:
    """Fail if Anthropic's API would reject a tool."""
    schema = tool["input_schema"]
    assert schema["type"] == "object"
    assert not UNIONS & set(schema)
    assert all(KEY.fullmatch(key) for key in schema.get("properties", ())), schema
    if tool.get("strict"):
        check_compiled(schema)


def check_compiled(schema: dict[str, Any]) -> None:
    """Fail if Anthropic's API could not compile a schema to a grammar."""
    for each in nodes(schema):
        assert not LIMITS & set(each), each
        assert "properties" not in each or each.get("additionalProperties") is False
        assert each.get("$ref") != "#"


def check_openai(parameters: dict[str, Any], *, is_strict: bool, is_output: bool = False) -> None:
    """Fail if OpenAI's APIs would reject the schema of a function, or of an output."""
    assert parameters["type"] == "object"
    assert is_output or not (UNIONS | {"enum", "not"}) & set(parameters)
    assert is_output or isinstance(parameters["properties"], dict)
    for each in nodes(parameters):
        assert is_output or each.get("type") != "array" or "items" in each or "prefixItems" in each, each
        if is_strict and "properties" in each:
            assert each["additionalProperties"] is False
            assert sorted(each.get("required", ())) == sorted(each["properties"]), each


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("properties", "$defs"):
        for each in schema.get(name, {}).values():
            yield from nodes(each)
    for name in UNIONS:
        for each in schema.get(name, ()):
            yield from nodes(each)
    yield from nodes(schema.get("items"))
