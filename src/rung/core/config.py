"""Ladders and policies from plain tables (TOML, JSON, keyword arguments): every error names its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.backoff import Backoff
from rung.core.budget import Budget
from rung.core.errors import ConfigError
from rung.core.failures import GROUPS, Kind
from rung.core.ladder import Action, Ladder, Rung, Scope
from rung.core.own_rules import OwnRules, rules_from
from rung.core.policy import TEMPLATES, Confirm, Model, Policy, Sticky, preset
from rung.core.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

E = TypeVar("E", bound=StrEnum)

Table = dict[str, Any]


def ladder_from(table: object, where: str = "ladder") -> Ladder:
    """A ladder from a table: name, rungs, entry, otherwise, loops, first, about."""
    source = _table(table, where)
    allowed = ("name", "rungs", "entry", "otherwise", "loops", "first", "about")
    _known(source, allowed, where)
    rows = source.get("rungs")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{where}.rungs", rows, "a list of at least one rung")
    rungs = tuple(_rung(row, f"{where}.rungs[{n}]") for n, row in enumerate(rows))
    entry = _table(source.get("entry", {}), f"{where}.entry")
    loops = _table(source.get("loops", {}), f"{where}.loops")
    try:
        return Ladder(
            name=_text(source.get("name", "custom"), f"{where}.name"),
            rungs=rungs,
            entry={
                kind: _text(name, f"{where}.entry.{key}")
                # Groups first, so that a kind's own word weighs more, wherever it stands.
                for key, name in sorted(entry.items(), key=lambda item: item[0] not in tuple(GROUPS))
                for kind in _kinds(key, f"{where}.entry")
            },
            otherwise=_text(source.get("otherwise", rungs[0].name), f"{where}.otherwise"),
            loops=tuple(
                (_count(key, f"{where}.loops"), _text(name, f"{where}.loops.{key}")) for key, name in loops.items()
            ),
            first=_whole(source.get("first", 1), f"{where}.first"),
            about=_text(source.get("about", ""), f"{where}.about"),
        )
    except ConfigError as error:
        raise error if error.key.startswith(where) else error.under(where) from None


def policy_from(table: object, where: str = "policy", base: Policy | None = None) -> Policy:
    """A policy from a table, starting from a preset (`ladder`, `template`) or from a base policy."""
    source = dict(_table(table, where))
    _known(source, POLICY_KEYS, where)
    try:
        policy = _start(source, base)
        settings = {key: _SETTINGS[key](value, key, policy) for key, value in source.items() if key in _SETTINGS}
        budget = {key: source[key] for key in _BUDGET_KEYS if key in source}
        if budget:
            settings["budget"] = _budget_of(settings.get("budget", policy.budget), budget)
        policy = policy.but(**settings)
        if "retries" in source:
            policy = policy.with_tries(Action.RETRY, _tries(source["retries"]))
    except ConfigError as error:
        raise error.under(where) from None
    return policy


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBook:
    """The policies of one file: the default, what projects and tools override of it, and rules of one's own."""

    default: Policy
    settings: Table  # what the default was made of
    projects: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    tools: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    rules: OwnRules = field(default_factory=OwnRules)

    def pick(self, project: str = "", tool: str = "") -> Policy:
        """The policy in force for a project and a tool; a tool's own word weighs most."""
        overrides = [table for table in (self.projects.get(project), self.tools.get(tool)) if table]
        return policy_from(merged(self.settings, *overrides)) if overrides else self.default


FILE_KEYS: Final = (
    "policy", "ladder", "projects", "tools", "rules", "journal", "gateway", "loops", "stop", "hooks",
)  # fmt: skip


def book_from(table: object) -> PolicyBook:
    """The tables of a policy file: `policy`, `ladder`, `projects`, `tools`, `rules`. Each way in has a table of its own. All of it is checked now."""
    source = _table(table, "file")
    _known(source, FILE_KEYS, "file")
    settings = dict(_table(source.get("policy", {}), "policy"))
    if "ladder" in source:
        if "ladder" in settings:
            raise ConfigError("policy.ladder", settings["ladder"], "left out when the file has a [ladder] of its own")
        settings["ladder"] = ladder_from(source["ladder"])
    book = PolicyBook(
        default=policy_from(settings),
        settings=settings,
        projects=_tables(source.get("projects", {}), "projects"),
        tools=_tables(source.get("tools", {}), "tools"),
        rules=rules_from(source.get("rules", [])),
    )
    for sort, tables in (("projects", book.projects), ("tools", book.tools)):
        for name, overrides in tables.items():
            policy_from(overrides, f"{sort}.{name}")  # what is right by itself is right over another
    return book


def merged(*tables: Table) -> Table:
    """One table of several: a later one's word over an earlier one's, and what it does not name is kept."""
    merged: Table = {}
    for table in tables:
        caps = {key: table[key] for key in _BUDGET_KEYS if key in table}
        named = {key: value for key, value in table.items() if key not in caps}
        if caps:
            named["budget"] = {**_parts(named.get("budget", {})), **caps}
        for key, value in named.items():
            inside = key in ("backoff", "budget", "prompts") and key in merged
            merged[key] = {**_parts(merged[key]), **_parts(value)} if inside else value
    return merged


def _parts(value: Any) -> Table:
    return dict(value) if isinstance(value, Mapping) else asdict(value)


def _start(source: Table, base: Policy | None) -> Policy:
    """What the settings are set upon: a preset, or the base with another ladder or template over it."""
    ladder, template = source.get("ladder"), source.get("template", "default")
    if ladder is not None and not isinstance(ladder, str | Ladder):
        ladder = ladder_from(ladder)
    if template not in tuple(TEMPLATES):
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES))
    if base is None:
        return preset("task" if ladder is None else ladder, template)
    if ladder is not None:
        base = base.but(ladder=preset(ladder).ladder)
    return TEMPLATES[template](base).but(name=template) if "template" in source else base


def _budget_of(budget: Budget, keys: Table) -> Budget:
    try:
        return replace(budget, **keys)
    except ConfigError as error:  # say the key that was written
        raise ConfigError(error.key.removeprefix("budget."), error.value, error.allowed) from None


def _tries(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ConfigError("retries", value, "a whole number, 0 or more")
    return value


def _rung(row: object, where: str) -> Rung:
    source = _table(row, where)
    _known(source, [f.name for f in fields(Rung) if f.init], where)
    if "action" not in source:
        raise ConfigError(f"{where}.action", None, "one of " + ", ".join(Action))
    values = dict(source)
    values["action"] = _choice(Action, source["action"], f"{where}.action")
    if "scope" in source:
        values["scope"] = _choice(Scope, source["scope"], f"{where}.scope")
    elif values["action"] is Action.RETRY:
        values["scope"] = Scope.ACTION
    if "helps" in source:
        values["helps"] = _kind_set(source["helps"], f"{where}.helps")
    try:
        return Rung(**values)
    except ConfigError as error:
        raise error.under(where) from None


def _model(value: object, where: str) -> Model:
    if isinstance(value, Model):
        return value
    if isinstance(value, str):
        return Model(name=value)
    source = _table(value, where)
    _known(source, [f.name for f in fields(Model)], where)
    if not isinstance(source.get("name"), str):
        raise ConfigError(f"{where}.name", source.get("name"), "a model's name")
    for key, kinds, words in _MODEL_TYPES:
        if key in source and type(source[key]) not in kinds:
            raise ConfigError(f"{where}.{key}", source[key], words)
    return Model(**source)


_MODEL_TYPES = (
    ("cost", (int, float), "US dollars, 0 or more"),
    ("max_tokens", (int,), "a whole number, 1 or more"),
    ("window", (int,), "a whole number, 0 or more"),
    ("provider", (str,), "a text"),
)


def _models(value: object, where: str, _: Policy) -> tuple[Model, ...]:
    return tuple(_model(row, f"{where}[{n}]") for n, row in enumerate(_list(value, where)))


def _backoff(value: object, where: str, policy: Policy) -> Backoff:
    return value if isinstance(value, Backoff) else _part(policy.backoff, value, where)


def _budget(value: object, where: str, policy: Policy) -> Budget:
    return value if isinstance(value, Budget) else _part(policy.budget, value, where)


def _part(default: Any, value: object, where: str) -> Any:
    source = _table(value, where)
    _known(source, [f.name for f in fields(default)], where)
    return replace(default, **source)


def _prompts(value: object, where: str, policy: Policy) -> Mapping[str, str]:
    source = _table(value, where)
    from rung.core.prompts import PROMPTS

    _known(source, tuple(PROMPTS), where)
    return MappingProxyType({**policy.prompts, **{key: _text(text, f"{where}.{key}") for key, text in source.items()}})


def _strings(value: object, where: str, _: Policy) -> tuple[str, ...]:
    return tuple(_text(item, f"{where}[{n}]") for n, item in enumerate(_list(value, where)))


def _number(value: object, where: str, _: Policy | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(where, value, "a number")
    return value


def _maybe_number(value: object, where: str, policy: Policy) -> float | None:
    return None if value is None else _number(value, where, policy)


def _flag(value: object, where: str, _: Policy) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(where, value, "true or false")
    return value


_BUDGET_KEYS = ("attempts", "seconds", "dollars")
_SETTINGS: Mapping[str, Callable[[Any, str, Policy], Any]] = {
    "name": lambda value, where, _: _text(value, where),
    "backoff": _backoff,
    "budget": _budget,
    "models": _models,
    "agents": _strings,
    "retry": lambda value, where, _: _kind_set(value, where),
    "retry_after_cap": _number,
    "attempt_seconds": _maybe_number,
    "auto_escalate": _flag,
    "escalate_after": lambda value, where, _: _whole(value, where),
    "confirm": lambda value, where, _: _choice(Confirm, value, where),
    "sticky": lambda value, where, _: _choice(Sticky, value, where),
    "unattended": _flag,
    "checkpoints": _flag,
    "report": lambda value, where, _: _text(value, where),
    "prompts": _prompts,
    "learn": _flag,
}
POLICY_KEYS = ("ladder", "template", "retries", *_BUDGET_KEYS, *_SETTINGS)


def _table(value: object, where: str) -> Table:
    if isinstance(value, Mapping):
        return dict(value)
    raise ConfigError(where, value, "a table")


def _tables(value: object, where: str) -> Mapping[str, Table]:
    return MappingProxyType({name: _table(row, f"{where}.{name}") for name, row in _table(value, where).items()})


def _list(value: object, where: str) -> Sequence[object]:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise ConfigError(where, value, "a list")
    return list(value)


def _known(source: Table, allowed: Sequence[str], where: str) -> None:
    for key in source:
        if key not in allowed:
            raise ConfigError(f"{where}.{key}", source[key], "one of the keys " + ", ".join(allowed))


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(where, value, "a text")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(where, value, "a whole number")
    return value


def _count(key: object, where: str) -> int:
    """A number of repeats: a key in TOML and JSON is a text, in Python it may be a number."""
    if not re.fullmatch("[0-9]{1,9}", str(key)):
        raise ConfigError(f"{where}.{key}", key, "a number of repeats, 1 or more")
    return int(str(key))


def _choice(enum: type[E], value: object, where: str) -> E:
    for member in enum:
        if value == member:
            return member
    raise ConfigError(where, value, "one of " + ", ".join(enum))


def _kinds(key: object, where: str) -> tuple[Kind, ...]:
    """One kind, or a whole group of them by its name."""
    if isinstance(key, str) and key in GROUPS:
        return GROUPS[key]
    if isinstance(key, str) and key in tuple(Kind):
        return (Kind(key),)
    raise ConfigError(f"{where}.{key}", key, f"a kind ({', '.join(Kind)}) or a group ({', '.join(GROUPS)})")


def _kind_set(value: object, where: str) -> frozenset[Kind]:
    return frozenset(kind for key in _list(value, where) for kind in _kinds(key, where))


def policy(ladder: str | Ladder = "task", template: str = "default", **settings: Any) -> Policy:
    """A policy from a preset ladder, a template and any of the settings a policy file may hold.

    >>> policy("task", models=["small", "large"], attempts=8, dollars=2.0)
    """
    return policy_from({"ladder": ladder, "template": template, **settings})


__all__ = ["LADDERS", "POLICY_KEYS", "PolicyBook", "book_from", "ladder_from", "merged", "policy", "policy_from"]
