"""Check that a tool call has the required arguments of its schema. Types and values are not checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rung.core.domain.failures import Evidence, Kind, Phase


def missing_arguments(name: str, arguments: object, schemas: Mapping[str, Any]) -> str:
    """Return a message about missing required arguments, or an empty string if there are none or no schema is known."""
    schema = schemas.get(name)
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(required, list):
        return ""
    provided = arguments if isinstance(arguments, Mapping) else {}
    missing = [field for field in required if isinstance(field, str) and field not in provided]
    if not missing:
        return ""
    return f"the call of {name} lacks required arguments: {', '.join(missing)}"


def invalid_call(name: str, problem: str) -> Evidence:
    """Return the evidence of an invalid call of a tool."""
    return Evidence(text=problem, tool=name, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
