"""A script: how long answers are, what is said turn by turn, and which request meets which fault."""

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
from rung.testing.provider.faults import COMMON, Fault, named, told
from rung.testing.provider.parsed_request import LabWire

if TYPE_CHECKING:
    from collections.abc import Mapping

WALL: Final = 600.0  # seconds a wall lasts


def _spans(given: Any, key: str) -> tuple[tuple[int, int], ...]:
    """Requests by number: 3, "2-4", or a list of such."""
    spans = []
    for one in given if isinstance(given, list | tuple) else (given,):
        first, dash, last = str(one).partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or isinstance(one, bool):
            raise ConfigError(key, given, 'a number from 1, a span like "2-4", or a list of them')
        spans.append((int(first), int(last) if dash else int(first)))
    return tuple(spans)


@settings
class LabRule:
    """A fault, the requests it is meant for, and how often and how long it strikes."""

    fault: Fault
    given: Mapping[str, Any] = field(default_factory=dict)
    request: tuple[tuple[int, int], ...] = setting(
        Type('a number from 1, a span like "2-4", or a list of them', parse=_spans), "Requests by number.", default=()
    )
    model: str = setting(ANY_TEXT._replace(allowed="a model's name, * for any letters"), "Model.", default="")
    wire: str = setting(one_of(("", *LabWire)), "API.", default="")
    stream: bool | None = setting(optional(FLAG), "Whether the response is streamed.", default=None)
    tools: bool | None = setting(optional(FLAG), "Whether the request has tools.", default=None)
    contains: str = setting(ANY_TEXT, "Text in the body.", default="")
    header: Mapping[str, str] = setting(
        Type("a table of headers", lambda value: isinstance(value, dict)), "Headers.", default_factory=dict
    )
    times: int | None = setting(optional(COUNT), "How often the fault strikes.", default=None)
    every: int = setting(COUNT, "Only every so many requests.", default=1)
    start: float | None = setting(optional(SECONDS), "Seconds after the start of the lab.", default=None)
    lasts: float | None = setting(optional(SECONDS), "Seconds for which it strikes.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """What the model says at one point of the conversation: words, and the tools it calls."""

    text: str = ""
    tools: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@settings
class LabLimits:
    """Limits of one model, in tokens."""

    window: int | None = setting(optional(COUNT), "Context window.", default=None)
    max_output: int | None = setting(optional(COUNT), "Largest output.", default=None)


def _read_models(given: Any, key: str) -> dict[str, LabLimits]:
    if isinstance(given, list | tuple):
        return {name: LabLimits() for name in TEXTS.read(given, key)}
    if not isinstance(given, dict):
        raise ConfigError(key, given, "a list of names, or a table of tables with window and max_output")
    return {
        name: limits if isinstance(limits, LabLimits) else read_settings(LabLimits, limits, f"{key}.{name}")
        for name, limits in given.items()
    }


def _read_turn(given: Any, key: str) -> ScriptedTurn:
    if isinstance(given, ScriptedTurn):
        return given
    if isinstance(given, str):
        return ScriptedTurn(text=given)
    if not isinstance(given, dict) or not set(given) <= {"text", "tool", "input", "tools"}:
        raise ConfigError(key, given, "a text, or a table with text, tool and input, or tools")
    calls = [given] if "tool" in given else given.get("tools", [])
    tools = tuple((str(call.get("tool", "")), call.get("input") or {}) for call in calls)
    return ScriptedTurn(text=str(given.get("text", "")), tools=tools)


def _read_rule(given: Any, key: str) -> LabRule:
    """A rule from its table, or from the name of a fault alone."""
    if isinstance(given, LabRule):
        return given
    table = {"fault": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or "fault" not in table:
        raise ConfigError(key, given, "a fault's name, or a table with fault")
    try:
        fault = named(table["fault"])
        known = [each.name for each in declared_settings(LabRule)]
        check_keys(table, ("fault", *known, *fault.takes))
        parameters = told(fault, {name: table[name] for name in table if name not in ("fault", *known)})
    except ConfigError as error:
        raise error.with_prefix(key) from None
    rule = {name: table[name] for name in known if name in table}
    if fault.name == "wall":
        rule.setdefault("lasts", WALL)
    return read_settings(LabRule, rule, key, fault=fault, given=parameters)


_RULES: Final = list_of(Type("a rule", parse=_read_rule))


@settings
class LabScript:
    """Everything that can be said about a lab."""

    words: int = setting(WHOLE, "Words of an answer.", default=40)
    overlap: int = setting(WHOLE, "Words repeated when an answer is resumed.", default=3)
    thinking: int = setting(WHOLE, "Words of thinking.", default=8)
    calls: int = setting(WHOLE, "Tool calls before the answer.", default=0)
    delay: float = setting(SECONDS, "Seconds before the first byte.", default=0.0)
    gap: float = setting(SECONDS, "Seconds between two pieces.", default=0.0)
    window: int | None = setting(optional(COUNT), "Context window in tokens.", default=None)
    max_output: int | None = setting(optional(COUNT), "Largest output in tokens.", default=None)
    models: Mapping[str, LabLimits] = setting(
        Type("a list of names, or a table of tables", parse=_read_models), "Models that exist.", default_factory=dict
    )
    keys: tuple[str, ...] = setting(TEXTS, "API keys that are accepted. Empty: any.", default=())
    rules: tuple[LabRule, ...] = setting(_RULES, "Faults and the requests they strike.", default=())
    turns: tuple[ScriptedTurn, ...] = setting(
        list_of(Type("a turn", parse=_read_turn)), "Answers, turn by turn.", default=()
    )
    rate: float = setting(
        Type("from 0 to 1", lambda value: is_number(value) and value <= 1), "Share of requests that fail.", default=0.0
    )
    seed: int = setting(WHOLE, "Seed of random faults.", default=0)
    faults: tuple[LabRule, ...] = setting(_RULES, "Faults that strike at random.", default=())

    def limits(self, model: str) -> LabLimits | None:
        """What this model can take and give; None when there is no such model."""
        if not self.models:
            return LabLimits(window=self.window, max_output=self.max_output)
        found = self.models.get(model)
        if found is None:
            return None
        return LabLimits(window=found.window or self.window, max_output=found.max_output or self.max_output)


def script_from(given: Any, **settings: Any) -> LabScript:
    """A script from a file's path, a table, a list of rules or nothing; settings by name go before it."""
    if isinstance(given, LabScript):
        given = {each.name: getattr(given, each.name) for each in fields(given)}
    elif isinstance(given, str | Path):
        given = read_script(given)
    elif isinstance(given, list | tuple):
        given = {"rules": list(given)}
    elif given is None:
        given = {}
    if not isinstance(given, dict):
        raise ConfigError("script", given, "a table, a list of rules, or the path of a TOML or JSON file")
    table = {"faults": COMMON, **given, **{key: value for key, value in settings.items() if value is not None}}
    check_keys(table, [each.name for each in declared_settings(LabScript)])
    return LabScript(
        **{
            each.name: each.type.read(table[each.name], each.name)
            for each in declared_settings(LabScript)
            if each.name in table
        }
    )


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
