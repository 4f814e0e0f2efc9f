"""Parse ladders and policies from plain tables (TOML, JSON, keyword arguments); every error names its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.error_size import Size
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.frozen_dict import FrozenDict
from rung.core.domain.ladder import Action, Ladder, Rung, RungScope
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    WHOLE,
    Type,
    check_keys,
    declared_settings,
    one_of,
    read_kinds,
    read_settings,
    read_table,
    suggest_names,
)
from rung.core.policy.bounds import bounded
from rung.core.policy.budget import Budget
from rung.core.policy.policy import Policy
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import TEMPLATES, preset
from rung.core.policy.tool_settings import ToolSettings

if TYPE_CHECKING:
    from typing import Unpack

    from rung.core.classify.user_rules import UserRules
    from rung.core.policy.policy_settings import PolicySettings

Table = dict[str, Any]


LADDER_KEYS: Final = ("name", "rungs", "entry", "default_entry", "loops", "sizes", "base_level", "about")


def parse_ladder(table: object, where: str = "ladder") -> Ladder:
    """Return the ladder of a table with the keys `LADDER_KEYS`."""
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
            entry=_entries(entry, f"{where}.entry"),
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
        raise error if error.key.startswith(where) else error.with_prefix(where) from None


def _entries(table: Table, where: str) -> dict[Kind, str]:
    """Return the entry rung of each kind. The entry of a kind overrides that of its group, in any order."""
    return {
        kind: ANY_TEXT.read(name, f"{where}.{key}")
        for key, name in sorted(table.items(), key=lambda item: item[0] not in tuple(GROUPS))
        for kind in read_kinds(key, where)
    }


_INTEGER: Final = Type("a whole number", lambda value: type(value) is int)
# Keys are texts in TOML and JSON; in Python they may be integers.
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
POLICY_KEYS: Final = (
    "ladder",
    "template",
    "retries",
    "entry",
    "tries",
    *_BUDGET_KEYS,
    *(each.name for each in declared_settings(Policy)),
)


def parse_policy(table: object, where: str = "policy", base: Policy | None = None) -> Policy:
    """Return the policy of a table, based on a preset (`ladder`, `template`) or on a base policy."""
    source = read_table(table, where)
    check_keys(source, POLICY_KEYS, where)
    try:
        policy = _base_policy(source, base)
        if isinstance(source.get("learn"), bool):
            source["learn"] = {"enabled": source["learn"]}
        for part in ("backoff", "budget", "stalls", "learn"):
            if part in source:
                source[part] = _override(getattr(policy, part), source[part], part)
        caps = {key: source[key] for key in _BUDGET_KEYS if key in source}
        if caps:
            source["budget"] = _with_caps(source.get("budget", policy.budget), caps)
        if "prompts" in source:
            source["prompts"] = FrozenDict({**policy.prompts, **_prompts(source["prompts"])})
        settings = {
            each.name: each.type.read(source[each.name], each.name)
            for each in declared_settings(Policy)
            if each.name in source
        }
        policy = policy.replace(**settings)
        if "tries" in source:
            policy = _with_tries(policy, source)
        if "retries" in source:
            policy = _with_retries(policy, WHOLE.read(source["retries"], "retries"))
    except ConfigError as error:
        raise error.with_prefix(where) from None
    return policy


def _with_entry(ladder: Ladder, source: Table) -> Ladder:
    """Return the ladder with the entry rungs of `entry` and with the names of `tries` checked."""
    check_keys(read_table(source.get("tries", {}), "tries"), [rung.name for rung in ladder.rungs], "tries")
    if "entry" not in source:
        return ladder
    return replace(ladder, entry={**ladder.entry, **_entries(read_table(source["entry"], "entry"), "entry")})


def _with_tries(policy: Policy, source: Table) -> Policy:
    """Return the policy with the number of tries of single rungs. Rungs that the template removed stay removed."""
    tries = {name: WHOLE.read(value, f"tries.{name}") for name, value in source["tries"].items()}
    rungs = tuple(replace(rung, tries=tries.get(rung.name, rung.tries)) for rung in policy.ladder.rungs)
    return policy.replace(ladder=replace(policy.ladder, rungs=rungs))


def _with_retries(policy: Policy, retries: int) -> Policy:
    """Return the policy with so many retries; 0 disables retrying, also on a ladder without a retry rung."""
    has_rung = any(rung.is_retry for rung in policy.ladder.rungs)
    return policy.with_tries(Action.RETRY, retries) if retries or has_rung else policy.replace(retry=frozenset())


def _override(default: Any, value: object, where: str) -> Any:
    """Return the default with the keys of a table changed; an object of the default's class replaces it."""
    if isinstance(value, type(default)):
        return value
    source = read_table(value, where)
    check_keys(source, [each.name for each in fields(default)], where)
    return replace(default, **source)


def _with_caps(budget: Budget, caps: Table) -> Budget:
    try:
        return replace(budget, **caps)
    except ConfigError as error:  # name the key as the user wrote it
        raise ConfigError(error.key.removeprefix("budget."), error.value, error.allowed) from None


def _prompts(value: object) -> dict[str, str]:
    source = read_table(value, "prompts")
    from rung.core.policy.prompts import PROMPTS

    check_keys(source, PROMPTS, "prompts")
    return {key: ANY_TEXT.read(text, f"prompts.{key}") for key, text in source.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBook:
    """Policies of one file: the default, overrides of projects and tools, and user rules."""

    default: Policy
    settings: Table  # the table of the default policy
    projects: Mapping[str, Table] = field(default_factory=FrozenDict)
    tools: Mapping[str, Table] = field(default_factory=FrozenDict)
    rules: UserRules = field(default_factory=lambda: _user_rules([]))
    limits: Table | None = None  # settings that bound the file's, which nobody has trusted; None: it is trusted

    def policy_for(self, project: str = "", tool: str = "") -> Policy:
        """Return the policy for a project and a tool; the tool's settings override the project's."""
        overrides = [table for table in (self.projects.get(project), self.tools.get(tool)) if table]
        return self.limit(parse_policy(merge_tables(self.settings, *overrides))) if overrides else self.default

    def limit(self, policy: Policy, *trusted: Table) -> Policy:
        """Return a policy with the settings of this file's tools, bounded by the limits and these tables unless it is trusted."""
        if self.tools:
            policy = policy.replace(tools=ToolSettings(tables=self.tools, is_bounded=self.limits is not None))
        return policy if self.limits is None else bounded(policy, parse_policy(merge_tables(self.limits, *trusted)))

    def with_base(self, base: Mapping[str, Any]) -> PolicyBook:
        """Return the book with these settings wherever the file leaves a setting open."""
        settings = {**base, **self.settings}
        book = replace(self, settings=settings, limits=None if self.limits is None else {**base, **self.limits})
        return replace(book, default=book.limit(parse_policy(settings)))


def _user_rules(rows: object) -> UserRules:
    from rung.core.classify.user_rules import rules_from  # imported here: a decorator's policy has no rules

    return rules_from(rows)


FILE_KEYS: Final = (
    "policy", "ladder", "projects", "tools", "rules", "journal", "notes", "gateway", "loops", "stop", "hooks",
    "agents", "recording", "alerts", "fleet",
)  # fmt: skip


def parse_policy_file(table: object, limits: Table | None = None) -> PolicyBook:
    """Parse and check the tables `policy`, `ladder`, `projects`, `tools` and `rules` of a policy file.

    The other tables (`FILE_KEYS`) are read by the packages that use them. `limits` bound a file that is not trusted.
    """
    source = read_table(table, "file")
    check_keys(source, FILE_KEYS, "file")
    settings = read_table(source.get("policy", {}), "policy")
    if "ladder" in source:
        if "ladder" in settings:
            raise ConfigError("policy.ladder", settings["ladder"], "left out if the file has a [ladder] table")
        settings["ladder"] = parse_ladder(source["ladder"])
    book = PolicyBook(
        default=parse_policy(settings),
        settings=settings,
        projects=_tables_by_name(source.get("projects", {}), "projects"),
        tools=_tables_by_name(source.get("tools", {}), "tools"),
        rules=_user_rules(source.get("rules", [])),
        limits=limits,
    )
    _check_overrides(book)
    return replace(book, default=book.limit(book.default))


_OF_LADDER: Final = ("entry", "tries")  # settings that name rungs of the ladder
_MERGED: Final = ("backoff", "budget", "stalls", "learn", "prompts", *_OF_LADDER)


def _check_overrides(book: PolicyBook) -> None:
    """Check the tables of projects and tools: entries and tries with the ladder that they apply to, the rest alone."""
    bases = [book.settings]
    for name, overrides in book.projects.items():
        _check_override(overrides, f"projects.{name}", [book.settings])
        bases.append(merge_tables(book.settings, overrides))
    for name, overrides in book.tools.items():
        _check_override(overrides, f"tools.{name}", bases)


def _check_override(overrides: Table, where: str, bases: list[Table]) -> None:
    parse_policy({key: value for key, value in overrides.items() if key not in _OF_LADDER}, where)
    settings: Table = {key: read_table(overrides[key], f"{where}.{key}") for key in _OF_LADDER if key in overrides}
    if not settings:
        return
    if where.startswith("projects") and "ladder" in overrides:
        settings["ladder"] = overrides["ladder"]  # a tool's failure stays on the ladder of its incident
    for base in bases:
        ladder = merge_tables(base, settings).get("ladder", "task")
        parse_policy({"ladder": ladder, **settings}, where)


def merge_tables(*tables: Table) -> Table:
    """Merge policy tables: later keys override earlier ones; the tables in `_MERGED` are merged key by key.

    Entries and tries belong to a ladder: a table with another ladder drops those before it.
    """
    merged: Table = {}
    for table in tables:
        if "ladder" in table:
            merged = {key: value for key, value in merged.items() if key not in _OF_LADDER}
        caps = {key: table[key] for key in _BUDGET_KEYS if key in table}
        settings = {key: value for key, value in table.items() if key not in caps}
        if caps:
            settings["budget"] = {**_as_table(settings.get("budget", {})), **caps}
        for key, value in settings.items():
            is_nested = key in _MERGED and key in merged
            merged[key] = {**_as_table(merged[key]), **_as_table(value)} if is_nested else value
    return merged


def _as_table(value: Any) -> Table:
    if isinstance(value, bool):  # the short form of `learn`
        return {"enabled": value}
    return dict(value) if isinstance(value, Mapping) else asdict(value)


def _base_policy(source: Table, base: Policy | None) -> Policy:
    """Return the policy that the settings override: a preset, or the base with another ladder or template."""
    ladder, template = source.get("ladder"), source.get("template", "default")
    if ladder is not None and not isinstance(ladder, str | Ladder):
        ladder = parse_ladder(ladder)
    if template not in tuple(TEMPLATES):
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES) + suggest_names(template, TEMPLATES))
    if base is None:
        named = preset("task" if ladder is None else ladder).ladder
        return preset(_with_entry(named, source), template)
    if ladder is not None:
        base = base.replace(ladder=preset(ladder).ladder)
    base = base.replace(ladder=_with_entry(base.ladder, source))
    return TEMPLATES[template](base).replace(name=template) if "template" in source else base


def _tables_by_name(value: object, where: str) -> Mapping[str, Table]:
    """Return a copy of a table of tables."""
    tables = read_table(value, where)
    return FrozenDict({name: read_table(row, f"{where}.{name}") for name, row in tables.items()})


def policy(ladder: str | Ladder = "task", template: str = "default", **settings: Unpack[PolicySettings]) -> Policy:
    """Return a policy: a preset ladder, a template, and any setting of a policy file.

    Args:
        ladder: Name of a preset ladder (`task`, `call`, `pipeline`, `model`, `crew`), or a `rung.policies.Ladder`. Default:
            `task`.
        template: `default`, `conservative`, `aggressive`, `unattended`, `helper` or `off`. Default: `default`.
        name: Name of the policy in events. Default: that of the template.
        attempts: Most attempts of one recovery; None: no cap. Retries leave one for each listed model or agent that can follow
            them. Probes of a failing service that is waited for are not counted: `patience` bounds them, `patience=0` makes
            none. Default of `task`: 20.
        seconds: Most seconds of one recovery; None: no cap. Default of `task`: 3600.
        dollars: Most US dollars of one recovery, as far as attempts report them with `rung.report_cost`. Default: no cap.
        budget: The three caps above in one table or `rung.policies.Budget`.
        retries: Unchanged repetitions before the ladder climbs; 0: none. Default of `task` and `call`: 3.
        tries: Number of tries of single rungs: `{"nudge": 1}`. Default: those of the ladder.
        entry: Rung at which a kind, or a group of kinds, enters the ladder: `{"not_found": "replan"}`.
        backoff: Wait before a retry, in seconds: `{"base": 1, "multiplier": 2, "cap": 30}`, or `rung.policies.Backoff`.
        models: The model ladder, cheapest first: names, or `{"name": "large", "cost": 0.5, "provider": "anthropic"}`.
            Default: none.
        agents: Agents to hand over to, in this order. Default: none.
        same_account: Agents that draw on the first agent's account: an exhausted quota is not handed over to them.
        retry: Kinds whose request may be repeated unchanged. Default: transient ones, `malformed_output` and `tool_error`.
        retry_after_cap: Longest wait that a server may ask for, in seconds; above it the ladder climbs. Default: 60.
        patience: Longest wait for a failing service to come back, in seconds, when no other rung can help. Default: 300.
        park: Longest time until a limit reopens that the work is parked for, in seconds. Default of `task`: 6 hours.
        attempt_seconds: Time limit of one attempt, in seconds. Default: none of its own.
        stalls: When an attempt without progress is ended, by the history in the journal.
        retry_budget: Whether the retry budget of the process limits the retries. Default: True.
        breaker: Whether circuit breakers reject attempts. Default: True.
        auto_escalate: Whether another model may take over without a person's approval. Default: True.
        escalate_after: Retries after which another model takes over. Default: when the rungs below are used up.
        confirm: When a person must approve a handover: `never`, `more_expensive` or `always`. Default: `never`.
        sticky: How long a session stays on the model it was handed over to: `call` or `session`. Default: `call`.
        unattended: Whether nobody is there to answer: a question ends the run as `blocked`. Default: False.
        checkpoints: Whether a checkpoint is taken before a rung that changes the work. Default: True.
        report: File that the report of a blocked recovery is appended to. Default: none.
        prompts: Replacement texts of recovery prompts, by id.
        resume_sessions: Whether a command-line agent that failed continues its own session. Default: True.
        elide_text: Whether compaction may cut the middle of a long text. Default: False.
        learn: Whether recoveries follow what helped before, by the journal. Default: False.

    Returns:
        The policy, checked.

    Raises:
        ConfigError: A key is unknown or a value is not allowed; the message names the key and what is allowed.

    Example:
        >>> import rung
        >>> policy = rung.policy("task", models=["small", {"name": "large", "cost": 0.5}], attempts=8, dollars=2.0)
        >>> policy.budget.attempts, [model.name for model in policy.models]
        (8, ['small', 'large'])
    """
    return parse_policy({"ladder": ladder, "template": template, **settings})


__all__ = [
    "LADDERS",
    "POLICY_KEYS",
    "PolicyBook",
    "merge_tables",
    "parse_ladder",
    "parse_policy",
    "parse_policy_file",
    "policy",
]
