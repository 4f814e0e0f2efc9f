"""A script: how long answers are, what is said turn by turn, and which request meets which fault."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.errors import ConfigError, is_number, is_whole
from rung.testing.provider.asked import Wire
from rung.testing.provider.faults import COMMON, Fault, named, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Check = tuple[Callable[[Any], bool], str]

WALL: Final = 600.0  # seconds a wall lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fault, the requests it is meant for, and how often and how long it strikes."""

    fault: Fault
    given: Mapping[str, Any] = field(default_factory=dict)
    requests: tuple[tuple[int, int], ...] = ()  # from the first to the last of each
    model: str = ""
    wire: str = ""
    stream: bool | None = None
    tools: bool | None = None
    contains: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    times: int | None = None
    every: int = 1
    start: float | None = None
    lasts: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn:
    """What the model says at one point of the conversation: words, and the tools it calls."""

    text: str = ""
    tools: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one model can take and give, in tokens."""

    window: int | None = None
    max_output: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Everything that can be said about a lab."""

    words: int = 40
    overlap: int = 3
    thinking: int = 8
    calls: int = 0
    delay: float = 0.0
    gap: float = 0.0
    window: int | None = None
    max_output: int | None = None
    models: Mapping[str, Limits] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    turns: tuple[SaidTurn, ...] = ()
    rate: float = 0.0
    seed: int = 0
    faults: tuple[Rule, ...] = ()

    def limits(self, model: str) -> Limits | None:
        """What this model can take and give; None when there is no such model."""
        if not self.models:
            return Limits(window=self.window, max_output=self.max_output)
        found = self.models.get(model)
        if found is None:
            return None
        return Limits(window=found.window or self.window, max_output=found.max_output or self.max_output)


def script_from(given: Any, **settings: Any) -> Script:
    """A script from a file's path, a table, a list of rules or nothing; settings by name go before it."""
    if isinstance(given, Script):
        given = {each.name: getattr(given, each.name) for each in fields(given)}
    elif isinstance(given, str | Path):
        given = read_script(given)
    elif isinstance(given, list | tuple):
        given = {"rules": list(given)}
    elif given is None:
        given = {}
    if not isinstance(given, dict):
        raise ConfigError("script", given, "a table, a list of rules, or the path of a TOML or JSON file")
    return _script({**given, **{key: value for key, value in settings.items() if value is not None}})


def read_script(path: str | Path) -> dict[str, Any]:
    """A script's file as a table: JSON where its name says so, TOML otherwise."""
    import tomllib

    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError("script", str(path), f"a file that can be read ({error.strerror})") from None
    except ValueError as error:  # not UTF-8, not JSON, not TOML
        raise ConfigError("script", str(path), f"a TOML or JSON file ({error})") from None
    if isinstance(table, list):
        return {"rules": table}
    if not isinstance(table, dict):
        raise ConfigError("script", str(path), "a file with a table or a list of rules")
    return table


_WHOLE: Final[Check] = (is_whole, "a whole number, 0 or more")
_ONE: Final[Check] = ((lambda value: is_whole(value, 1)), "a whole number, 1 or more")
_SECONDS: Final[Check] = (is_number, "seconds, 0 or more")
_SETTINGS: Final[Mapping[str, Check]] = {
    "words": _WHOLE, "overlap": _WHOLE, "thinking": _WHOLE, "calls": _WHOLE, "seed": _WHOLE,
    "delay": _SECONDS, "gap": _SECONDS, "window": _ONE, "max_output": _ONE,
    "rate": ((lambda value: is_number(value) and value <= 1), "from 0 to 1"),
}  # fmt: skip


def _script(table: Mapping[str, Any]) -> Script:
    names = [each.name for each in fields(Script)]
    made: dict[str, Any] = {}
    for key, value in table.items():
        if key not in names:
            raise ConfigError(key, value, "one of " + ", ".join(names))
        if key in _SETTINGS:
            fits, allowed = _SETTINGS[key]
            if value is not None and not fits(value):
                raise ConfigError(key, value, allowed)
            made[key] = value
    made["rules"] = _each("rules", table.get("rules", ()), rule_from)
    made["turns"] = _each("turns", table.get("turns", ()), _turn)
    made["faults"] = _each("faults", table.get("faults", COMMON), rule_from)
    made["models"] = _models(table.get("models", {}))
    made["keys"] = _texts("keys", table.get("keys", ()))
    return Script(**made)


def _each(key: str, given: Any, read: Any) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple):
        raise ConfigError(key, given, "a list")
    read_ones = []
    for place, one in enumerate(given):
        try:
            read_ones.append(read(one))
        except ConfigError as error:
            raise error.under(f"{key}[{place}]") from None
    return tuple(read_ones)


def _texts(key: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ConfigError(key, given, "a list of texts")
    return tuple(given)


def _models(given: Any) -> dict[str, Limits]:
    if isinstance(given, list | tuple):
        return {name: Limits() for name in _texts("models", given)}
    if not isinstance(given, dict):
        raise ConfigError("models", given, "a list of names, or a table of tables with window and max_output")
    made = {}
    for name, limits in given.items():
        if isinstance(limits, Limits):
            made[name] = limits
            continue
        if not isinstance(limits, dict) or not set(limits) <= {"window", "max_output"}:
            raise ConfigError(f"models.{name}", limits, "a table with window and max_output")
        for key, value in limits.items():
            if not is_whole(value, 1):
                raise ConfigError(f"models.{name}.{key}", value, _ONE[1])
        made[name] = Limits(**limits)
    return made


def _turn(given: Any) -> SaidTurn:
    if isinstance(given, SaidTurn):
        return given
    if isinstance(given, str):
        return SaidTurn(text=given)
    if not isinstance(given, dict) or not set(given) <= {"text", "tool", "input", "tools"}:
        raise ConfigError("turn", given, "a text, or a table with text, tool and input, or tools")
    calls = [given] if "tool" in given else given.get("tools", [])
    tools = tuple((str(call.get("tool", "")), call.get("input") or {}) for call in calls)
    return SaidTurn(text=str(given.get("text", "")), tools=tools)


_RULE: Final[Mapping[str, Check]] = {
    "model": ((lambda value: isinstance(value, str)), "a model's name, * for any letters"),
    "wire": ((lambda value: value in tuple(Wire)), "one of " + ", ".join(Wire)),
    "stream": ((lambda value: isinstance(value, bool)), "true or false"),
    "tools": ((lambda value: isinstance(value, bool)), "true or false"),
    "contains": ((lambda value: isinstance(value, str)), "a text"),
    "header": ((lambda value: isinstance(value, dict)), "a table of headers"),
    "times": _ONE,
    "every": _ONE,
    "start": _SECONDS,
    "lasts": _SECONDS,
}


def rule_from(given: Any) -> Rule:
    """A rule from its table; a fault's name alone is one too."""
    if isinstance(given, Rule):
        return given
    table = {"fault": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or "fault" not in table:
        raise ConfigError("rule", given, "a fault's name, or a table with fault")
    fault = named(table["fault"])
    made: dict[str, Any] = {}
    rest = {}
    for key, value in table.items():
        if key in _RULE:
            fits, allowed = _RULE[key]
            if not fits(value):
                raise ConfigError(key, value, allowed)
            made[key] = value
        elif key == "request":
            made["requests"] = _spans(value)
        elif key != "fault":
            rest[key] = value
    unknown = next((key for key in rest if key not in fault.takes), None)
    if unknown is not None:
        allowed = ", ".join(["request", *_RULE, *fault.takes])
        raise ConfigError(unknown, rest[unknown], f"one of {allowed} (for {fault.name})")
    if fault.name == "wall":
        made.setdefault("lasts", WALL)
    return Rule(fault=fault, given=told(fault, rest), **made)


def _spans(given: Any) -> tuple[tuple[int, int], ...]:
    """Requests by number: 3, "2-4", or a list of such."""
    spans = []
    for one in given if isinstance(given, list | tuple) else (given,):
        first, dash, last = str(one).partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or isinstance(one, bool):
            raise ConfigError("request", given, 'a number from 1, a span like "2-4", or a list of them')
        spans.append((int(first), int(last) if dash else int(first)))
    return tuple(spans)


def rules_of(faults: Sequence[Any]) -> tuple[Rule, ...]:
    """Rules from names and tables."""
    return _each("faults", list(faults), rule_from)
