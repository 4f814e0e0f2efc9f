"""Sample values for a JSON Schema, used as tool arguments and structured answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCALARS: Final[Mapping[str, Any]] = {"string": "lab", "integer": 1, "number": 1.5, "boolean": True, "null": None}
MAX_ITEMS: Final = 100  # of an array
MAX_DEPTH: Final = 8  # a schema may refer to itself


def sample(schema: Any, depth: int = 0) -> Any:
    """Return a value that fits the schema; deterministic."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return choices[0] if key == "enum" else sample(choices[0], depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        declared, required = schema.get("properties"), schema.get("required")
        properties = declared if isinstance(declared, dict) else {}
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else list(properties)
        return {name: sample(properties.get(name, {}), depth + 1) for name in names}
    if kind == "array":
        min_items = schema.get("minItems", 1)
        return [sample(schema.get("items", {}), depth + 1)] * (min_items if min_items in range(1, MAX_ITEMS) else 1)
    return _SCALARS.get(kind, "lab") if isinstance(kind, str) else "lab"
