"""Reading JSON that came over a wire, and may be anything: tables, lists, numbers and counts of usage."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: object) -> Any:
    """The value in a JSON text; None where it is no text or no JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def json_object(text: object) -> dict[str, Any]:
    """The table in a JSON text; empty where there is none."""
    found = parsed(text)
    return found if isinstance(found, dict) else {}


def are_arguments(text: object) -> bool:
    """Whether a text can be the arguments of a tool call: a JSON object, or nothing."""
    return text == "" or isinstance(parsed(text), dict)


def named_event(name: str, data: dict[str, Any]) -> bytes:
    """A server-sent event with a name."""
    return f"event: {name}\n".encode("utf-8", "surrogatepass") + data_event(data)


def data_event(data: dict[str, Any]) -> bytes:
    """A server-sent event without a name."""
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode("utf-8", "surrogatepass")


def part(data: object, name: str) -> dict[str, Any]:
    """The table of this name in another; empty where there is none. What comes over a wire may be anything."""
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def parts(data: object, name: str) -> list[dict[str, Any]]:
    """The tables in a list of this name."""
    found = data.get(name) if isinstance(data, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def whole_number(value: object) -> int:
    """A number, where it is one."""
    return value if isinstance(value, int) else 0


def summed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two counts of usage as one: numbers are added, also further in; the rest is the later one's."""
    total = dict(one)
    for key, value in other.items():
        before = total.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            total[key] = summed(before, value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and isinstance(before, int | float):
            total[key] = before + value
        else:
            total[key] = value
    return total
