"""Plain tables as TOML: the standard library reads it, but does not write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any]) -> str:
    """The table as TOML text; what is None is left out."""
    lines: list[str] = []
    _write(table, (), lines)
    return "\n".join(lines).strip() + "\n" if lines else ""


def _write(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """Plain values first, as they belong to the table whose name stands above them; then the tables in it."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in table.items() if key not in inner and value is not None}
    if path and (plain or not inner):
        lines += ["", f"[{'.'.join(_key(part) for part in path)}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in inner.items():
        _write(value, (*path, key), lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(pairs) + "}"
    return _text(str(value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)  # the same escapes, but for the one character JSON does not need
    return quoted.replace("\x7f", "\\u007f")
