"""Serialize ladders and policies as tables and as TOML that `parser` reads back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.worst_case import worst_case

if TYPE_CHECKING:
    from rung.core.domain.ladder import Ladder, Rung
    from rung.core.policy.policy import Policy


def ladder_table(ladder: Ladder) -> dict[str, Any]:
    """Return the table that `parse_ladder` reads as this ladder."""
    return {
        "name": ladder.name,
        "about": ladder.about,
        "base_level": ladder.base_level,
        "rungs": [_rung_table(rung) for rung in ladder.rungs],
        "entry": {kind.value: name for kind, name in ladder.entry.items()},
        "default_entry": ladder.default_entry,
        "loops": {str(repeats): name for repeats, name in ladder.loops},
        "sizes": {size.value: name for size, name in ladder.sizes.items()},
    }


def _rung_table(rung: Rung) -> dict[str, Any]:
    table = {field.name: _plain(getattr(rung, field.name)) for field in fields(rung) if field.init}
    return {key: value for key, value in table.items() if value is not None}


def policy_table(policy: Policy) -> dict[str, Any]:
    """Return the table that `parse_policy` reads as this policy."""
    table = {
        field.name: getattr(policy, field.name) for field in fields(policy) if field.init and field.name != "tools"
    }
    table["ladder"] = ladder_table(policy.ladder)
    table["models"] = [asdict(model) for model in policy.models]
    table["backoff"] = asdict(policy.backoff)
    table["budget"] = asdict(policy.budget)
    table["stalls"] = asdict(policy.stalls)
    table["learn"] = asdict(policy.learn)
    return {key: _plain(value) for key, value in table.items()}


def worst_case_table(policy: Policy) -> dict[str, Any]:
    """Return the upper bounds of an incident: attempts, seconds, dollars; null: unbounded."""
    return asdict(worst_case(policy))


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if hasattr(value, "items") else value


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any]) -> str:
    """Return the table as TOML; keys with the value None are omitted."""
    lines: list[str] = []
    _write(table, (), lines)
    return "\n".join(lines).strip() + "\n" if lines else ""


def _write(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """Append the lines of a table: plain values first, as TOML requires, then the tables in it."""
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
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)  # TOML has JSON's escapes, and also requires one for DEL
    return quoted.replace("\x7f", "\\u007f")
