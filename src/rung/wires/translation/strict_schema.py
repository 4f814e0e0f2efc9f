"""JSON schemas that OpenAI's strict mode accepts: every object is closed, and every property is required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DEPTH: Final = 24  # schemas in schemas; OpenAI allows ten levels of objects
_MAPS: Final = ("properties", "$defs", "definitions")
_REJECTED: Final = frozenset(
    {"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
     "prefixItems", "contains", "uniqueItems", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "default",
     "minContains", "maxContains", "minProperties", "maxProperties"}
)  # fmt: skip


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether strict mode accepts a schema."""
    return schema.get("type") == "object" and "anyOf" not in schema and _is_accepted(schema, 0)


def _is_accepted(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or not _REJECTED.isdisjoint(schema):
        return False
    if "$ref" in schema:
        return len(schema) == 1
    if not _says_its_type(schema) or not _is_closed(schema):
        return False
    nested = [each for name in _MAPS for each in _values(schema.get(name))]
    nested += schema["anyOf"] if isinstance(schema.get("anyOf"), list) else []
    nested += [schema["items"]] if "items" in schema else []
    return all(_is_accepted(each, depth + 1) for each in nested)


def _says_its_type(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    if is_array and "items" not in schema:
        return False
    return kind is not None or "anyOf" in schema or "enum" in schema or "const" in schema


def _is_closed(schema: Mapping[str, Any]) -> bool:
    kind, properties = schema.get("type"), schema.get("properties")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind) and properties is None:
        return True
    required = schema.get("required", [])
    is_whole = (
        isinstance(properties, dict) and isinstance(required, list) and set(properties) == set(map(str, required))
    )
    return is_whole and schema.get("additionalProperties") is False


def _values(schemas: object) -> list[Any]:
    return list(schemas.values()) if isinstance(schemas, dict) else []
