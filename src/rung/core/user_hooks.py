"""The `[[hooks]]` of a policy file: a user's own commands around every attempt and rung."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.errors import ConfigError, is_number

WHEN: Final = ("attempt.pre", "attempt.post", "rung.pre", "rung.post")
KEYS: Final = ("when", "run", "seconds", "closed")


def hooks_from(rows: object) -> tuple[dict[str, Any], ...]:
    """The rows, checked: every error names its key."""
    if not isinstance(rows, list):
        raise ConfigError("hooks", rows, "a list of tables: [[hooks]]")
    return tuple(_row(row, f"hooks[{number}]") for number, row in enumerate(rows))


def _row(row: object, where: str) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise ConfigError(where, row, "a table")
    for key, value in row.items():
        if key not in KEYS:
            raise ConfigError(f"{where}.{key}", value, "one of " + ", ".join(KEYS))
    if row.get("when") not in WHEN:
        raise ConfigError(f"{where}.when", row.get("when"), "one of " + ", ".join(WHEN))
    if not isinstance(row.get("run"), str) or not row["run"].strip():
        raise ConfigError(f"{where}.run", row.get("run"), "a command")
    if "seconds" in row and (not is_number(row["seconds"]) or row["seconds"] <= 0):
        raise ConfigError(f"{where}.seconds", row["seconds"], "seconds, more than 0")
    if not isinstance(row.get("closed", False), bool):
        raise ConfigError(f"{where}.closed", row["closed"], "true or false")
    return dict(row)
