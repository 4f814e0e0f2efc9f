"""One step of an agent: the input of the detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError

FIELDS: Final = ("tool", "args", "result", "error", "at", "progress")


class Step(NamedTuple):
    """A call and its outcome.

    `args` is a mapping or a text; `error` is true, or the error's text, if the tool reported a failure. `at` is the
    time in seconds on any monotonic clock. `progress` is the result of an external probe (the hash of a tree, passing
    tests, changed files): any text that changes when the work progresses.
    """

    tool: str
    args: Any = None
    result: Any = ""
    error: bool | str = False
    at: float | None = None
    progress: str | None = None


def step_from(table: object) -> Step:
    """Parse a step from a JSON object; unknown fields are ignored."""
    if not isinstance(table, Mapping):
        raise ConfigError("step", table, "an object with " + ", ".join(FIELDS))
    tool = table.get("tool")
    tool = "" if tool is None else tool  # a turn without a call
    if not isinstance(tool, str):
        raise ConfigError("step.tool", tool, "a tool's name, or left out")
    error = table.get("error")
    return Step(
        tool,
        table.get("args"),
        table.get("result"),
        error if isinstance(error, bool | str) else error is not None,
        _number(table, "at"),
        _text(table, "progress"),
    )


def _number(table: Mapping[Any, Any], key: str) -> float | None:
    value = table.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ConfigError(f"step.{key}", value, "seconds, or left out")
    return value


def _text(table: Mapping[Any, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"step.{key}", value, "a text, or left out")
    return value
