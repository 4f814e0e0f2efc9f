"""JSON schemas of arguments that all providers accept: one object, whose properties are known.

Anthropic and OpenAI reject a union at the top of a schema. OpenAI also rejects an object without `properties`, and an
array without `items`. Servers of one wire accept what those of others reject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_REJECTED: Final = (*_UNIONS, "enum", "const", "not", "if", "then", "else")
_DEFINITIONS: Final = ("$defs", "definitions")
_MAPS: Final = ("properties", *_DEFINITIONS, "patternProperties")
_MAX_DEPTH: Final = 64  # a deeper schema is left as it is


def accepted_arguments(schema: Mapping[str, Any], dropped: set[str]) -> Mapping[str, Any]:
    """Return the schema of arguments as one object, with items for each array; the same object if nothing changes."""
    one = as_one_object(schema)
    if any(name in schema for name in _REJECTED):
        dropped.add("schema_keywords")
    return with_items(one)  # type: ignore[no-any-return]  # an object stays one


def with_root(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that is only a reference to one of its definitions as this definition."""
    found = _resolved(schema, schema) if "$ref" in schema else schema
    if found is schema:
        return schema
    return {**found, **{name: schema[name] for name in _DEFINITIONS if name in schema}}


def as_one_object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without a union at its top: properties of all branches, of which those of all are required."""
    whole = with_root(schema)
    if not any(name in whole for name in _REJECTED):
        return whole
    branches = {name: _branches(whole, name) for name in _UNIONS}
    every = [whole, *branches["allOf"]]
    some = [branches[name] for name in ("anyOf", "oneOf") if branches[name]]
    merged = {name: value for name, value in whole.items() if name not in _REJECTED}
    merged["properties"] = _merged_properties([*every, *(each for group in some for each in group)])
    required = {name for each in every for name in _required(each)}
    required |= {name for group in some for name in set.intersection(*(set(_required(each)) for each in group))}
    if required:
        merged["required"] = sorted(required)
    else:
        merged.pop("required", None)
    if any("additionalProperties" in each for group in some for each in group):
        merged.pop("additionalProperties", None)
    return merged


def with_properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of an object with `properties`, which OpenAI demands."""
    return schema if isinstance(schema.get("properties"), dict) else {**schema, "properties": {}}


def with_items(schema: Any, depth: int = 0) -> Any:
    """Return a schema in which every array says what its items are: anything, if it did not say."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    changed = {name: new for name, value in schema.items() if (new := _nested(name, value, depth + 1)) is not value}
    if "items" not in schema and "prefixItems" not in schema and _is_array(schema.get("type")):
        changed["items"] = {}
    return {**schema, **changed} if changed else schema


def _nested(name: str, value: Any, depth: int) -> Any:
    if name in _MAPS and isinstance(value, dict):
        new = {key: with_items(each, depth) for key, each in value.items()}
        return new if any(new[key] is not value[key] for key in new) else value
    if isinstance(value, list) and (name in _UNIONS or name == "prefixItems"):
        items = [with_items(each, depth) for each in value]
        return items if any(one is not other for one, other in zip(items, value, strict=True)) else value
    return with_items(value, depth) if name in ("items", "additionalProperties", "not") else value


def _is_array(kind: object) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _branches(schema: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = schema.get(name)
    return [_resolved(schema, each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _resolved(whole: Mapping[str, Any], branch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a branch, or the definition that it refers to."""
    parts = str(branch.get("$ref") or "").split("/")
    if len(parts) != 3 or parts[0] != "#" or parts[1] not in _DEFINITIONS:  # noqa: PLR2004  # "#/$defs/name"
        return branch
    found = whole.get(parts[1], {}).get(parts[2]) if isinstance(whole.get(parts[1]), dict) else None
    return found if isinstance(found, dict) else branch


def _merged_properties(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the properties of all schemas; one that they define differently may be any of its schemas."""
    found: dict[str, list[Any]] = {}
    for name, value in _properties(schemas):
        if value not in found.setdefault(name, []):
            found[name].append(value)
    return {name: values[0] if len(values) == 1 else {"anyOf": values} for name, values in found.items()}


def _properties(schemas: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for schema in schemas:
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties.items()


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
