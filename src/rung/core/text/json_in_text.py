"""Parse a JSON object, or find one in prose."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_MAX_TRIES: Final = 200  # opening braces at which parsing is tried
_DECODER: Final = json.JSONDecoder()


def parse_json_object(text: str) -> dict[str, Any] | None:
    """Return the object if the whole text is one; otherwise None."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def find_json_object(text: str, keys: AbstractSet[str] = frozenset()) -> dict[str, Any] | None:
    """Return the last object in a text with prose or a code fence around it; with `keys`, one that has any of them."""
    start = text.find("{")
    whole = parse_json_object(text[start : text.rfind("}") + 1])
    if whole is not None and (not keys or keys & whole.keys()):
        return whole
    last, end = None, 0
    for start in [at for at, character in enumerate(text) if character == "{"][-_MAX_TRIES:]:
        if start < end:
            continue  # inside an object that was already parsed
        try:
            value, after = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if not keys or keys & value.keys():
            last, end = value, after
    return last
