"""Whether a tool was called with what it needs: its required arguments, by name, and nothing finer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lacking(name: str, arguments: object, schemas: Mapping[str, Any]) -> str:
    """What is wrong with a call, in words; empty when it can be made, or when nobody knows what it takes."""
    schema = schemas.get(name)
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(required, list):
        return ""
    given = arguments if isinstance(arguments, Mapping) else {}
    missing = [field for field in required if isinstance(field, str) and field not in given]
    if not missing:
        return ""
    return f"the call of {name} lacks {', '.join(missing)}, without which it cannot be made"
