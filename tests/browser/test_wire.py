"""The dashboard's types are those of the API."""

from __future__ import annotations

import runpy
from pathlib import Path

WRITER = runpy.run_path(str(Path(__file__).parent.parent.parent / "scripts" / "write_wire.py"))


def test_the_types_are_those_of_the_api() -> None:
    """What the dashboard believes about the API is what its OpenAPI document says; `make wire` writes it anew."""
    assert WRITER["TARGET"].read_text() == WRITER["types"](WRITER["document"]())


def test_schemas_become_types() -> None:
    """References, choices, constants, lists, maps and optional fields keep their meaning."""
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
