"""Parts of a streamed response, labelled so that a fault can strike between them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

START, TEXT, CALL, END = "start", "text", "call", "end"


class Part(NamedTuple):
    """Bytes of a stream and what they carry."""

    kind: str
    data: bytes


def event(kind: str, body: dict[str, Any], *, named: bool = True) -> Part:
    """Return one server-sent event; a named one repeats its type in the `event` field."""
    head = f"event: {body['type']}\n" if named else ""
    return Part(kind, f"{head}data: {json.dumps(body, ensure_ascii=False)}\n\n".encode())
