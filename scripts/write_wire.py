"""Write the dashboard's types from the API's own OpenAPI document: `make wire`. A test compares them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = Path(__file__).parent.parent / "dashboard" / "src" / "wire.ts"
HEAD = "// Written by scripts/write_wire.py from the API's OpenAPI document: change the API, then run `make wire`.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def types(document: Mapping[str, Any]) -> str:
    """Every schema of the document as an exported TypeScript type."""
    schemas = document["components"]["schemas"]
    return HEAD + "".join(f"\n{_declared(name, schemas[name])}" for name in sorted(schemas))


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    about = f"/** {' '.join(schema['description'].split())} */\n" if "description" in schema else ""
    if "properties" not in schema:
        return f"{about}export type {name} = {_type(schema)};\n"
    return f"{about}export interface {name} {_fields(schema)}\n"


def _fields(schema: Mapping[str, Any]) -> str:
    needed = set(schema.get("required", ()))
    rows = [
        f"  {name if name.isidentifier() else json.dumps(name)}{'' if name in needed else '?'}: {_type(field)};\n"
        for name, field in schema["properties"].items()
    ]
    return "{\n" + "".join(rows) + "}"


def _type(schema: Mapping[str, Any]) -> str:
    """The TypeScript of one schema; what it does not say is `unknown`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " | ".join(dict.fromkeys(_type(one) for one in schema[choice]))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    sort = schema.get("type")
    if isinstance(sort, list):
        return " | ".join(_type({**schema, "type": one}) for one in sort)
    if sort == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if sort == "object":
        if "properties" in schema:
            return _fields(schema)
        inner = schema.get("additionalProperties")
        return f"Record<string, {_type(inner) if isinstance(inner, dict) else 'unknown'}>"
    return PLAIN.get(str(sort), "unknown")


def document() -> dict[str, Any]:
    """The API's OpenAPI document."""
    from rung.service.app import make_api

    return make_api().openapi()


if __name__ == "__main__":
    TARGET.write_text(types(document()))
    print("wrote", TARGET.name)
