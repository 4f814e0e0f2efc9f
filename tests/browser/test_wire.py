"""The generated TypeScript types of the API."""

from __future__ import annotations

import runpy
from pathlib import Path

WRITER = runpy.run_path(str(Path(__file__).parent.parent.parent / "scripts" / "write_wire.py"))


def test_the_types_are_those_of_the_api() -> None:
    """The dashboard's types match the API's OpenAPI document; `make wire` regenerates them."""
    assert WRITER["TARGET"].read_text() == WRITER["types"](WRITER["document"]())


def test_schemas_become_types() -> None:
    """References, unions, constants, arrays, maps and optional fields are translated."""
    document = {
        "components": {
            "schemas": {
                "One": {
                    "description": "A\n thing.",
                    "properties": {
                        "name": {"type": "string"},
                        "other-name": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                        "twos": {"type": "array", "items": {"$ref": "#/components/schemas/Two"}},
                        "states": {"type": "array", "items": {"enum": ["a", "b"]}},
                        "more": {"type": "object", "additionalProperties": {"type": "number"}},
                        "any": {},
                    },
                    "required": ["name"],
                },
                "Two": {"const": "x"},
            }
        }
    }
    made = WRITER["types"](document)
    assert made.removeprefix(WRITER["HEADER"]) == (
        "\n/** A thing. */\n"
        "export interface One {\n"
        "  name: string;\n"
        '  "other-name"?: number | null;\n'
        "  twos?: Two[];\n"
        '  states?: ("a" | "b")[];\n'
        "  more?: Record<string, number>;\n"
        "  any?: unknown;\n"
        "}\n"
        '\nexport type Two = "x";\n'
    )
