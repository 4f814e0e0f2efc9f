"""JSON schemas that Anthropic's structured outputs accept: the API rejects a schema with anything else in it.

Every object must forbid additional properties. Limits such as `minimum` are not supported: they go to the description,
where the model can read them. Anthropic's SDKs do the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT: Final = frozenset({"type", "description", "title", "enum", "const", "$ref", "required", "default"})
_MAPS: Final = frozenset({"properties", "$defs", "definitions"})
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_LISTS: Final = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_MAX_DEPTH: Final = 64  # a deeper schema is left as it is, and the API decides


def supported_schema(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return the schema with only what the API accepts. It is equal to the given one if nothing had to change."""
    kept: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _MAPS and isinstance(value, dict):
            kept[name] = {key: _nested(each, depth) for key, each in value.items()}
        elif name in _LISTS and isinstance(value, list):
            kept[_LISTS[name]] = [_nested(each, depth) for each in value]
        elif name == "items":
            kept[name] = _nested(value, depth)
        elif _is_supported(name, value):
            kept[name] = value
        elif name != "additionalProperties":
            limits[name] = value
    if _is_object(kept):
        kept["additionalProperties"] = False
    if limits:
        words = ", ".join(f"{name}: {value}" for name, value in limits.items())
        kept["description"] = f"{kept.get('description', '')}\n\n{{{words}}}".lstrip()
    return kept


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Return whether a definition refers to itself, also by way of others."""
    return bool(_references(schema)) and _has_cycle(schema)


def _has_cycle(schema: Mapping[str, Any]) -> bool:
    places = {
        f"#/{name}/{key}": _references(each)
        for name in ("$defs", "definitions")
        for key, each in _definitions(schema, name).items()
    }
    places["#"] = _references({name: value for name, value in schema.items() if name not in ("$defs", "definitions")})
    for place in places:
        reached: set[str] = set()
        open_places = [place]
        while open_places:
            for target in places.get(open_places.pop(), ()):
                if target == place:
                    return True
                if target not in reached:
                    reached.add(target)
                    open_places.append(target)
    return False


def _definitions(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = schema.get(name)
    return found if isinstance(found, dict) else {}


def _references(schema: object, depth: int = 0) -> set[str]:
    """Return the targets of all references in a schema."""
    if isinstance(schema, list) and depth < _MAX_DEPTH:
        return {target for each in schema for target in _references(each, depth + 1)}
    if not isinstance(schema, dict) or depth >= _MAX_DEPTH:
        return set()
    found = {target for each in schema.values() for target in _references(each, depth + 1)}
    target = schema.get("$ref")
    return found | {target} if isinstance(target, str) else found


def without_identity(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the fields that only say which schema it is."""
    return {name: value for name, value in schema.items() if name not in ("$schema", "$id")}


def _is_supported(name: str, value: Any) -> bool:
    if name == "format":
        return isinstance(value, str) and value in _FORMATS
    return name in _KEPT or (name == "minItems" and value in (0, 1))


def _nested(schema: Any, depth: int) -> Any:
    return supported_schema(schema, depth + 1) if isinstance(schema, dict) and depth < _MAX_DEPTH else schema


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema
