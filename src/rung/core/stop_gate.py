"""The `[stop]` table of a policy file: when an agent may finish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.errors import ConfigError, is_number, is_whole

KEYS: Final = ("gate", "blocks", "check", "seconds")
MOST_BLOCKS: Final = 5


def stop_from(stop: object) -> dict[str, Any]:
    """The table, checked: every error names its key."""
    if not isinstance(stop, Mapping):
        raise ConfigError("stop", stop, "a table")
    for key, value in stop.items():
        if key not in KEYS:
            raise ConfigError(f"stop.{key}", value, "one of " + ", ".join(KEYS))
    if not isinstance(stop.get("gate", True), bool):
        raise ConfigError("stop.gate", stop["gate"], "true or false")
    if not is_whole(stop.get("blocks", 2)) or stop.get("blocks", 2) > MOST_BLOCKS:
        raise ConfigError("stop.blocks", stop["blocks"], f"a whole number, 0 to {MOST_BLOCKS}")
    if not isinstance(stop.get("check", ""), str):
        raise ConfigError("stop.check", stop["check"], "a command")
    if not is_number(stop.get("seconds", 60)):
        raise ConfigError("stop.seconds", stop["seconds"], "seconds, 0 or more")
    return dict(stop)
