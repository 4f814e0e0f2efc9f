"""Model and stream flag of a large body without parsing all of it: from the scalars at both ends of its top level.

A JSON object ends with the brace of its top level. Members between that brace and the last nested value are therefore
at the top level, as are those between the first brace and the first nested value. Nothing else is trusted.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TAIL_BYTES: Final = 256
_MEMBER: Final = rb'"([^"\\]{0,200})"\s*:\s*("[^"\\]{0,200}"|true|false|null|-?[0-9][0-9.eE+-]{0,30})\s*'
_START: Final = re.compile(rb"\s*\{\s*")
_NEXT: Final = re.compile(_MEMBER + rb"(?:,\s*|(?=\}))")
_MEMBERS: Final = re.compile(_MEMBER)
_TAIL: Final = re.compile(rb"\s*(?:,\s*" + _MEMBER + rb")*\}")


class BodyFields(NamedTuple):
    """Fields at the top level of a body."""

    model: str
    is_stream: bool


def scan_fields(body: bytes) -> BodyFields | None:
    """Return the fields if both ends of a body show them; None if it must be parsed to know."""
    start = _START.match(body)
    if start is None:
        return None
    found: dict[bytes, bytes] = {}
    position = start.end()
    while member := _NEXT.match(body, position):
        found[member[1]] = member[2]
        position = member.end()
    tail = body[-_TAIL_BYTES:].rstrip()
    last_nested = max(tail.rfind(b"]"), tail.rfind(b"}", 0, -1)) + 1
    if _TAIL.fullmatch(tail, last_nested):
        found.update(_MEMBERS.findall(tail, last_nested))
    model, stream = found.get(b"model", b""), found.get(b"stream")
    if model[:1] != b'"' or (stream is None and b'"stream"' in body):
        return None
    try:
        return BodyFields(model[1:-1].decode(), stream == b"true")
    except UnicodeDecodeError:
        return None
