"""One step of an agent: the input of the detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError

FIELDS: Final = ("tool", "args", "result", "error", "at", "progress")


class Step(NamedTuple):
    """A call of a tool, and its outcome.

    Attributes:
        tool: Name of the tool; empty for a turn without a call.
        args: Arguments: a mapping or a text. Default: none.
        result: What the tool returned. Default: empty.
        error: True, or the error's text, if the tool reported a failure. Default: False.
        at: Time in seconds on any monotonic clock. Default: unknown.
        progress: Result of a probe, such as the hash of a tree or the number of passing tests: any text that changes when the
            work progresses. Default: unknown.
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
