"""The JSON object that a text is, or contains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_MAX_TRIES: Final = 200  # opening braces from where an object is read
_DECODER: Final = json.JSONDecoder()


def json_object(text: str) -> dict[str, Any] | None:
    """The object that the whole text is; None for anything else."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_in(text: str, keys: AbstractSet[str] = frozenset()) -> dict[str, Any] | None:
    """The last object in a text, with prose or a code fence around it; with `keys`, the last that has one of them."""
    start = text.find("{")
    whole = json_object(text[start : text.rfind("}") + 1])
    if whole is not None and (not keys or keys & whole.keys()):
        return whole
    last, end = None, 0
    for start in [at for at, character in enumerate(text) if character == "{"][-_MAX_TRIES:]:
        if start < end:
            continue  # inside an object that was taken
        try:
            found, after = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if not keys or keys & found.keys():
            last, end = found, after
    return last
