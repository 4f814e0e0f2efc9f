"""Helpers for untrusted JSON from a provider: objects, lists, numbers, usage counts, and server-sent events."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

# Signature of thinking that broke off before it was signed. The gateway removes such thinking from later requests.
INCOMPLETE_MARK: Final = "rung_incomplete"
KEEP: Final = object()  # stands for an id that needs no replacement
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
_LINE_BREAKS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
# Marks the digits of a text, to find long numbers in it. This is ten times as fast as a regular expression.
_MARKED_DIGITS: Final = bytes(ord("0") if chr(code).isdecimal() and code < 128 else 0 for code in range(256))  # noqa: PLR2004  # ASCII
_LONG_NUMBER: Final = b"0" * 19  # integers of fewer digits have less than 64 bits
_BEFORE_A_VALUE: Final = (b":", b",", b"[", b"")  # what may stand before a number
_MAX_INDENT: Final = 16  # characters of white space before a number


def load_json(data: str | bytes) -> Any:
    """Parse JSON with all digits of its integers; raise orjson.JSONDecodeError. orjson rounds those of over 64 bits."""
    value = orjson.loads(data)
    raw = data.encode() if isinstance(data, str) else data
    marked = raw.translate(_MARKED_DIGITS)
    if _LONG_NUMBER not in marked or not _has_long_number(raw, marked):
        return value
    try:
        return json.loads(data)
    except RecursionError:  # of more levels than Python allows
        return value


def _has_long_number(raw: bytes, marked: bytes) -> bool:
    """Return whether many digits may be a number. Most are part of an id or of other text."""
    at = marked.find(_LONG_NUMBER)
    while at >= 0:
        before = raw[max(0, at - _MAX_INDENT) : at].rstrip().removesuffix(b"-").rstrip()
        if before[-1:] in _BEFORE_A_VALUE:
            return True
        end = marked.find(b"\0", at)
        at = marked.find(_LONG_NUMBER, end) if end >= 0 else -1
    return False


def dump_json(value: object) -> bytes:
    """Return compact JSON, also with integers of more than 64 bits and half of a surrogate pair."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return to_json(value).encode()


def parse_json(text: object) -> Any:
    """Parse a JSON text. Return None if it is not a text or not valid JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def parse_event_json(data: bytes) -> Any:
    """Parse the data of an event; raise ValueError or RecursionError if it is not valid JSON in UTF-8."""
    try:
        return load_json(data)
    except orjson.JSONDecodeError:  # it rejects half of a surrogate pair, which some services send
        return json.loads(data.decode(), parse_constant=_reject_constant)


def parse_quick_event(data: bytes) -> Any:
    """Parse the data of an event whose long numbers do not matter: arguments of calls are texts in it."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return parse_event_json(data)


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def json_object(text: object) -> dict[str, Any]:
    """Parse a JSON object. Return an empty dict if the text is not one."""
    value = parse_json(text)
    return value if isinstance(value, dict) else {}


def is_tool_arguments(text: object) -> bool:
    """Return whether a text can be the arguments of a tool call: a JSON object, or empty."""
    return text == "" or isinstance(parse_json(text), dict)


def named_event(name: str, data: dict[str, Any]) -> bytes:
    """Build a named server-sent event."""
    return f"event: {name}\n".encode("utf-8", "replace") + data_event(data)


def data_event(data: dict[str, Any]) -> bytes:
    """Build a server-sent event without a name. Unicode's line breaks are escaped: Google's SDK ends a line at each."""
    text = to_json(data)
    if not text.isascii():
        text = text.translate(_LINE_BREAKS)
    return f"data: {text}\n\n".encode()


def to_json(data: object) -> str:
    """Return compact JSON that can be encoded: half of a surrogate pair, as some services send it, is escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() or not _SURROGATE(text) else json.dumps(data, separators=(",", ":"))


def object_field(data: object, name: str) -> dict[str, Any]:
    """Return the object in a field, or an empty dict if the field is missing or not an object."""
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def object_list(data: object, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list field. Other items are left out."""
    items = data.get(name) if isinstance(data, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def int_or_zero(value: object) -> int:
    """Return an integer, or 0 if the value is not one."""
    return value if isinstance(value, int) else 0


def add_usage(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Add two usage objects: numbers are summed, also in nested objects; other values come from the second."""
    total = dict(one)
    for key, value in other.items():
        before = total.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            total[key] = add_usage(before, value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and isinstance(before, int | float):
            total[key] = before + value
        else:
            total[key] = value
    return total


# Settings of all wires that a model may reject. Another model gets them changed, or not at all.
_SETTINGS: Final = frozenset(
    {"thinking", "temperature", "top_p", "top_k", "tool_choice", "output_config", "reasoning_effort", "reasoning", "stop",
     "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias", "parallel_tool_calls", "include"}
)  # fmt: skip


def changed_settings(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the client's settings that a request for another model does not have as they were."""
    return tuple(sorted(name for name in _SETTINGS & before.keys() if after.get(name) != before[name]))
