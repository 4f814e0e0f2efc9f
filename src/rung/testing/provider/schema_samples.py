"""Values that fit a JSON Schema: what a tool is called with, what a structured answer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final[Mapping[str, Any]] = {"string": "lab", "integer": 1, "number": 1.5, "boolean": True, "null": None}
MOST: Final = 100  # items
DEEPEST: Final = 8  # a schema may refer to itself


def sample(schema: Any, depth: int = 0) -> Any:
    """A value of this schema: always the same one."""
    if not isinstance(schema, dict) or depth > DEEPEST:
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
        given, wanted = schema.get("properties"), schema.get("required")
        properties = given if isinstance(given, dict) else {}
        names = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else list(properties)
        return {name: sample(properties.get(name, {}), depth + 1) for name in names}
    if kind == "array":
        least = schema.get("minItems", 1)
        return [sample(schema.get("items", {}), depth + 1)] * (least if least in range(1, MOST) else 1)
    return _PLAIN.get(kind, "lab") if isinstance(kind, str) else "lab"
