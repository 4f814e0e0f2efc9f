"""Values that fit a JSON Schema: what a tool is called with, what a structured answer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final[Mapping[str, Any]] = {"string": "lab", "integer": 1, "number": 1.5, "boolean": True, "null": None}
DEEPEST: Final = 8  # a schema may refer to itself


def sample(schema: Any, depth: int = 0) -> Any:
    """A value of this schema: always the same one."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample(schema[key][0], depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties") or {}
        wanted = schema.get("required") or list(properties)
        return {name: sample(properties.get(name, {}), depth + 1) for name in wanted}
    if kind == "array":
        return [sample(schema.get("items", {}), depth + 1)] * max(schema.get("minItems", 1), 1)
    return _PLAIN.get(kind, "lab") if isinstance(kind, str) else "lab"
