"""The `[stop]` table of a policy file: when an agent may finish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.errors import ConfigError, is_number, is_whole

KEYS: Final = ("gate", "blocks", "check", "seconds", "judge", "judge_seconds", "sections", "json")
MOST_BLOCKS: Final = 5
SECONDS: Final = 60.0
JUDGE_SECONDS: Final = 45.0  # with the check's time less than an agent waits for a hook
_COMMANDS: Final = ("check", "judge")
_TIMES: Final = ("seconds", "judge_seconds")
_SWITCHES: Final = ("gate", "json")


def stop_from(stop: object) -> dict[str, Any]:
    """The table, checked: every error names its key."""
    if not isinstance(stop, Mapping):
        raise ConfigError("stop", stop, "a table")
    for key, value in stop.items():
        if key not in KEYS:
            raise ConfigError(f"stop.{key}", value, "one of " + ", ".join(KEYS))
        if key in _SWITCHES and not isinstance(value, bool):
            raise ConfigError(f"stop.{key}", value, "true or false")
        if key in _COMMANDS and not isinstance(value, str):
            raise ConfigError(f"stop.{key}", value, "a command")
        if key in _TIMES and not is_number(value):
            raise ConfigError(f"stop.{key}", value, "seconds, 0 or more")
    if not is_whole(stop.get("blocks", 2)) or stop.get("blocks", 2) > MOST_BLOCKS:
        raise ConfigError("stop.blocks", stop["blocks"], f"a whole number, 0 to {MOST_BLOCKS}")
    sections = stop.get("sections", [])
    if not isinstance(sections, list) or not all(isinstance(name, str) and name.strip() for name in sections):
        raise ConfigError("stop.sections", sections, "a list of headings or keys")
    return dict(stop)
