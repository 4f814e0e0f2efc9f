"""Ladders and policies from plain tables (TOML, JSON, keyword arguments): every error names its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final

from rung.core.classify.user_rules import UserRules, rules_from
from rung.core.domain.error_size import Size
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import GROUPS
from rung.core.domain.ladder import Action, Ladder, Rung, RungScope
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    WHOLE,
    Type,
    check_keys,
    declared,
    one_of,
    read_kinds,
    read_settings,
    read_table,
)
from rung.core.policy.budget import Budget
from rung.core.policy.policy import TEMPLATES, Policy, preset
from rung.core.policy.presets import LADDERS

Table = dict[str, Any]


LADDER_KEYS: Final = ("name", "rungs", "entry", "default_entry", "loops", "sizes", "base_level", "about")


def ladder_from(table: object, where: str = "ladder") -> Ladder:
    """A ladder from a table: name, rungs, entry, default_entry, loops, sizes, first, about."""
    source = read_table(table, where)
    check_keys(source, LADDER_KEYS, where)
    rows = source.get("rungs")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{where}.rungs", rows, "a list of at least one rung")
    rungs = tuple(_rung(row, f"{where}.rungs[{n}]") for n, row in enumerate(rows))
    entry = read_table(source.get("entry", {}), f"{where}.entry")
    loops = read_table(source.get("loops", {}), f"{where}.loops")
    sizes = read_table(source.get("sizes", {}), f"{where}.sizes")
    try:
        return Ladder(
            name=ANY_TEXT.read(source.get("name", "custom"), f"{where}.name"),
            rungs=rungs,
            entry={
                kind: ANY_TEXT.read(name, f"{where}.entry.{key}")
                # Groups first, so that an entry of a single kind overrides its group's, whatever their order.
                for key, name in sorted(entry.items(), key=lambda item: item[0] not in tuple(GROUPS))
                for kind in read_kinds(key, f"{where}.entry")
            },
            default_entry=ANY_TEXT.read(source.get("default_entry", rungs[0].name), f"{where}.default_entry"),
            loops=tuple(
                (_REPEATS.read(key, f"{where}.loops.{key}"), ANY_TEXT.read(name, f"{where}.loops.{key}"))
                for key, name in loops.items()
            ),
            sizes={
                one_of(Size).read(key, f"{where}.sizes.{key}"): ANY_TEXT.read(name, f"{where}.sizes.{key}")
                for key, name in sizes.items()
            },
            base_level=_INTEGER.read(source.get("base_level", 1), f"{where}.base_level"),
            about=ANY_TEXT.read(source.get("about", ""), f"{where}.about"),
        )
    except ConfigError as error:
        raise error if error.key.startswith(where) else error.under(where) from None


_INTEGER: Final = Type("a whole number", lambda value: type(value) is int)
# A key is a text in TOML and JSON; in Python it may be a number.
_REPEATS: Final = Type(
    "a number of repeats, 1 or more",
    lambda key: re.fullmatch("[0-9]{1,9}", str(key)) is not None,
    lambda key, _: int(str(key)),
)


def _rung(row: object, where: str) -> Rung:
    source = read_table(row, where)
    if source.get("action") == Action.RETRY:
        source.setdefault("scope", RungScope.ACTION.value)
    return read_settings(Rung, source, where)


_BUDGET_KEYS: Final = tuple(each.name for each in fields(Budget))
POLICY_KEYS: Final = ("ladder", "template", "retries", *_BUDGET_KEYS, *(each.name for each in declared(Policy)))


def policy_from(table: object, where: str = "policy", base: Policy | None = None) -> Policy:
    """A policy from a table, starting from a preset (`ladder`, `template`) or from a base policy."""
    source = read_table(table, where)
    check_keys(source, POLICY_KEYS, where)
    try:
        policy = _start(source, base)
        for part in ("backoff", "budget"):
            if part in source:
                source[part] = _over(getattr(policy, part), source[part], part)
        caps = {key: source[key] for key in _BUDGET_KEYS if key in source}
        if caps:
            source["budget"] = _with_caps(source.get("budget", policy.budget), caps)
        if "prompts" in source:
            source["prompts"] = MappingProxyType({**policy.prompts, **_prompts(source["prompts"])})
        settings = {
            each.name: each.type.read(source[each.name], each.name) for each in declared(Policy) if each.name in source
        }
        policy = policy.replace(**settings)
        if "retries" in source:
            policy = policy.with_tries(Action.RETRY, WHOLE.read(source["retries"], "retries"))
    except ConfigError as error:
        raise error.under(where) from None
    return policy


def _over(default: Any, value: object, where: str) -> Any:
    """The default with the keys of a table changed; a value of its own class is taken as it is."""
    if isinstance(value, type(default)):
        return value
    source = read_table(value, where)
    check_keys(source, [each.name for each in fields(default)], where)
    return replace(default, **source)


def _with_caps(budget: Budget, caps: Table) -> Budget:
    try:
        return replace(budget, **caps)
    except ConfigError as error:  # name the key as it was written
        raise ConfigError(error.key.removeprefix("budget."), error.value, error.allowed) from None


def _prompts(value: object) -> dict[str, str]:
    source = read_table(value, "prompts")
    from rung.core.policy.prompts import PROMPTS

    check_keys(source, PROMPTS, "prompts")
    return {key: ANY_TEXT.read(text, f"prompts.{key}") for key, text in source.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBook:
    """The policies of one file: the default, what projects and tools override of it, and rules of one's own."""

    default: Policy
    settings: Table  # what the default was made of
    projects: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    tools: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    rules: UserRules = field(default_factory=UserRules)

    def pick(self, project: str = "", tool: str = "") -> Policy:
        """The policy in force for a project and a tool; a tool's own word weighs most."""
        overrides = [table for table in (self.projects.get(project), self.tools.get(tool)) if table]
        return policy_from(merged(self.settings, *overrides)) if overrides else self.default


FILE_KEYS: Final = (
    "policy", "ladder", "projects", "tools", "rules", "journal", "gateway", "loops", "stop", "hooks",
)  # fmt: skip


def book_from(table: object) -> PolicyBook:
    """The tables of a policy file: `policy`, `ladder`, `projects`, `tools`, `rules`. Each way in has a table of its own. All of it is checked now."""
    source = read_table(table, "file")
    check_keys(source, FILE_KEYS, "file")
    settings = read_table(source.get("policy", {}), "policy")
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
        base = base.replace(ladder=preset(ladder).ladder)
    return TEMPLATES[template](base).replace(name=template) if "template" in source else base


def _tables(value: object, where: str) -> Mapping[str, Table]:
    """Tables by name."""
    tables = read_table(value, where)
    return MappingProxyType({name: read_table(row, f"{where}.{name}") for name, row in tables.items()})


def policy(ladder: str | Ladder = "task", template: str = "default", **settings: Any) -> Policy:
    """A policy from a preset ladder, a template and any of the settings a policy file may hold.

    >>> policy("task", models=["small", "large"], attempts=8, dollars=2.0)
    """
    return policy_from({"ladder": ladder, "template": template, **settings})


__all__ = ["LADDERS", "POLICY_KEYS", "PolicyBook", "book_from", "ladder_from", "merged", "policy", "policy_from"]
