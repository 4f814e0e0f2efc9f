"""Gemini's own schemas, a dialect of OpenAPI with types in upper case, as JSON schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.gemini_fields import camel_case

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DEPTH: Final = 64  # a deeper schema is not changed
_NUMBERS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLES: Final = frozenset({"items", "additionalProperties", "not"})
_NAMES: Final = {"defs": "$defs", "ref": "$ref"}


class OpenApiSchema(dict[str, Any]):
    """JSON schema of a Gemini schema. The original is written back to Gemini."""

    __slots__ = ("original",)

    def __init__(self, original: Mapping[str, Any]) -> None:
        super().__init__(_converted(original, 0))
        self.original = original


def _converted(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        name = camel_case(key)
        if name not in ("nullable", "propertyOrdering", "example"):
            result[_NAMES.get(name, name)] = _value(name, value, depth + 1)
    if isinstance(result.get("type"), str):
        _convert_type(result)
    if schema.get("nullable") is True:
        _allow_null(result)
    if "example" in schema:
        result["examples"] = [schema["example"]]
    return result


def _value(name: str, value: Any, depth: int) -> Any:
    if name in _SINGLES:
        return _converted(value, depth)
    if name in _LISTS and isinstance(value, list):
        return [_converted(item, depth) for item in value]
    if name in ("properties", "defs") and isinstance(value, dict):
        return {key: _converted(item, depth) for key, item in value.items()}
    if name in _NUMBERS and isinstance(value, str) and value.isdecimal():
        return int(value)  # 64-bit integers are strings in the JSON of protobuf
    if name == "ref" and isinstance(value, str):
        return value.replace("#/defs/", "#/$defs/")
    return value


def _convert_type(result: dict[str, Any]) -> None:
    name = result["type"].lower()
    if name == "type_unspecified":
        del result["type"]
    else:
        result["type"] = name
    if result.get("format") == "enum":
        del result["format"]
    values = result.get("enum")
    if name == "integer" and isinstance(values, list):
        result["enum"] = [int(item) if isinstance(item, str) and item.isdecimal() else item for item in values]


def _allow_null(result: dict[str, Any]) -> None:
    if isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    elif isinstance(result.get("anyOf"), list):
        result["anyOf"] = [*result["anyOf"], {"type": "null"}]
    if isinstance(result.get("enum"), list) and None not in result["enum"]:
        result["enum"] = [*result["enum"], None]
