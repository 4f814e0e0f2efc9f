"""Lab scripts: answer length, scripted turns, model limits, and fault rules."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COUNT,
    FLAG,
    SECONDS,
    TEXTS,
    WHOLE,
    Type,
    check_keys,
    declared_settings,
    list_of,
    one_of,
    optional,
    read_settings,
    setting,
    settings,
)
from rung.testing.provider.faults import COMMON_FAULTS, Fault, check_parameters, find_fault
from rung.testing.provider.parsed_request import LabWire

if TYPE_CHECKING:
    from collections.abc import Mapping

WALL_SECONDS: Final = 600.0  # default of `lasts`


def _parse_request_numbers(value: Any, key: str) -> tuple[tuple[int, int], ...]:
    """Parse request numbers: 3, "2-4", or a list of them."""
    spans = []
    for item in value if isinstance(value, list | tuple) else (value,):
        first, dash, last = str(item).partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or isinstance(item, bool):
            raise ConfigError(key, value, 'a number from 1, a span like "2-4", or a list of them')
        spans.append((int(first), int(last) if dash else int(first)))
    return tuple(spans)


@settings
class LabRule:
    """A fault, the requests it applies to, and how often and how long it is triggered."""

    fault: Fault
    parameters: Mapping[str, Any] = field(default_factory=dict)
    request: tuple[tuple[int, int], ...] = setting(
        Type('a number from 1, a span like "2-4", or a list of them', parse=_parse_request_numbers),
        "Requests by number.",
        default=(),
    )
    model: str = setting(ANY_TEXT._replace(allowed="a model's name, * for any letters"), "Model.", default="")
    wire: str = setting(one_of(("", *LabWire)), "API.", default="")
    stream: bool | None = setting(optional(FLAG), "Whether the response is streamed.", default=None)
    tools: bool | None = setting(optional(FLAG), "Whether the request has tools.", default=None)
    contains: str = setting(ANY_TEXT, "Text in the body.", default="")
    header: Mapping[str, str] = setting(
        Type("a table of headers", lambda value: isinstance(value, dict)), "Headers.", default_factory=dict
    )
    times: int | None = setting(optional(COUNT), "How often the fault is triggered.", default=None)
    every: int = setting(COUNT, "Only every n-th matching request.", default=1)
    start: float | None = setting(optional(SECONDS), "Seconds after the start of the lab.", default=None)
    lasts: float | None = setting(optional(SECONDS), "Seconds for which it is active.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """Scripted model turn: text and tool calls."""

    text: str = ""
    tools: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@settings
class LabLimits:
    """Limits of one model, in tokens."""

    window: int | None = setting(optional(COUNT), "Context window.", default=None)
    max_output: int | None = setting(optional(COUNT), "Largest output.", default=None)


def _read_models(value: Any, key: str) -> dict[str, LabLimits]:
    if isinstance(value, list | tuple):
        return {name: LabLimits() for name in TEXTS.read(value, key)}
    if not isinstance(value, dict):
        raise ConfigError(key, value, "a list of names, or a table of tables with window and max_output")
    return {
        name: limits if isinstance(limits, LabLimits) else read_settings(LabLimits, limits, f"{key}.{name}")
        for name, limits in value.items()
    }


def _read_turn(value: Any, key: str) -> ScriptedTurn:
    if isinstance(value, ScriptedTurn):
        return value
    if isinstance(value, str):
        return ScriptedTurn(text=value)
    if not isinstance(value, dict) or not set(value) <= {"text", "tool", "input", "tools"}:
        raise ConfigError(key, value, "a text, or a table with text, tool and input, or tools")
    calls = [value] if "tool" in value else value.get("tools", [])
    tools = tuple((str(call.get("tool", "")), call.get("input") or {}) for call in calls)
    return ScriptedTurn(text=str(value.get("text", "")), tools=tools)


def _read_rule(value: Any, key: str) -> LabRule:
    """Read a rule from its table, or from the name of a fault."""
    if isinstance(value, LabRule):
        return value
    table = {"fault": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or "fault" not in table:
        raise ConfigError(key, value, "a fault's name, or a table with fault")
    try:
        fault = find_fault(table["fault"])
        known = [each.name for each in declared_settings(LabRule)]
        check_keys(table, ("fault", *known, *fault.takes))
        parameters = check_parameters(fault, {name: table[name] for name in table if name not in ("fault", *known)})
    except ConfigError as error:
        raise error.with_prefix(key) from None
    rule = {name: table[name] for name in known if name in table}
    if fault.name == "wall":
        rule.setdefault("lasts", WALL_SECONDS)
    return read_settings(LabRule, rule, key, fault=fault, parameters=parameters)


_RULES: Final = list_of(Type("a rule", parse=_read_rule))


@settings
class LabScript:
    """Settings of a lab."""

    words: int = setting(WHOLE, "Words of an answer.", default=40)
    overlap: int = setting(WHOLE, "Words repeated when an answer is resumed.", default=3)
    thinking: int = setting(WHOLE, "Words of thinking.", default=8)
    calls: int = setting(WHOLE, "Tool calls before the answer.", default=0)
    delay: float = setting(SECONDS, "Seconds before the first byte.", default=0.0)
    gap: float = setting(SECONDS, "Seconds between two chunks.", default=0.0)
    window: int | None = setting(optional(COUNT), "Context window in tokens.", default=None)
    max_output: int | None = setting(optional(COUNT), "Largest output in tokens.", default=None)
    models: Mapping[str, LabLimits] = setting(
        Type("a list of names, or a table of tables", parse=_read_models), "Models that exist.", default_factory=dict
    )
    keys: tuple[str, ...] = setting(TEXTS, "API keys that are accepted. Empty: any.", default=())
    rules: tuple[LabRule, ...] = setting(_RULES, "Faults and the requests they apply to.", default=())
    turns: tuple[ScriptedTurn, ...] = setting(
        list_of(Type("a turn", parse=_read_turn)), "Answers, turn by turn.", default=()
    )
    rate: float = setting(
        Type("from 0 to 1", lambda value: is_number(value) and value <= 1), "Share of requests that fail.", default=0.0
    )
    seed: int = setting(WHOLE, "Seed of random faults.", default=0)
    faults: tuple[LabRule, ...] = setting(_RULES, "Faults that are triggered at random.", default=())

    def limits(self, model: str) -> LabLimits | None:
        """Return the limits of a model; None if it does not exist."""
        if not self.models:
            return LabLimits(window=self.window, max_output=self.max_output)
        found = self.models.get(model)
        if found is None:
            return None
        return LabLimits(window=found.window or self.window, max_output=found.max_output or self.max_output)


def script_from(value: Any, **settings: Any) -> LabScript:
    """Build a script from a file's path, a table, a list of rules or None; keyword settings override it."""
    if isinstance(value, LabScript):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    elif isinstance(value, str | Path):
        value = read_script(value)
    elif isinstance(value, list | tuple):
        value = {"rules": list(value)}
    elif value is None:
        value = {}
    if not isinstance(value, dict):
        raise ConfigError("script", value, "a table, a list of rules, or the path of a TOML or JSON file")
    table = {"faults": COMMON_FAULTS, **value, **{key: value for key, value in settings.items() if value is not None}}
    check_keys(table, [each.name for each in declared_settings(LabScript)])
    return LabScript(
        **{
            each.name: each.type.read(table[each.name], each.name)
            for each in declared_settings(LabScript)
            if each.name in table
        }
    )


def read_script(path: str | Path) -> dict[str, Any]:
    """Read a script file as a table: JSON if its name ends in .json, else TOML."""
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
