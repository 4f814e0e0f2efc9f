"""The page of policy files: keys, templates, and examples that were loaded before they were written."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from docpages.markdown import code, codes, doc, fence, page, table
from rung.adapters.user_hooks import Hook
from rung.core.backoff import Backoff
from rung.core.budget import Budget
from rung.core.config import POLICY_KEYS, book_from
from rung.core.keys import REQUIRED, declared
from rung.core.ladder import Action, Ladder, Rung
from rung.core.own_rules import RuleTable
from rung.core.policy import DEFAULT_RETRY, TEMPLATES, Model, Policy, preset
from rung.core.presets import LADDERS
from rung.core.spending import Allowance
from rung.core.stop_gate import StopSettings
from rung.detectors.watching import Watching
from rung.gateway.settings import Key, Limits, Price, Settings, Timeouts, Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_LADDER = "as the ladder has it"
_BY_LADDER = "by ladder, see below"

# Type and meaning of the keys that are not fields of a policy.
_OTHERS: dict[str, tuple[str, str]] = {
    "ladder": (f"{codes(LADDERS)}, or a table", "The ladder to climb; a table is one of your own."),
    "template": (codes(TEMPLATES), "Preset to start from; every other key changes it."),
    "retries": ("a whole number, 0 or more", "Tries on the retry rung."),
    "attempts": ("a whole number, 1 or more", "Cap of one incident: attempts, the first one included."),
    "seconds": ("seconds, 0 or more", "Cap of one incident: seconds from its beginning, waits included."),
    "dollars": ("US dollars, 0 or more", "Cap of one incident: cost, as reported by the attempts."),
}

EXAMPLE = """\
[policy]
ladder = "task"
template = "conservative"
models = [
  { name = "small", cost = 0.02, max_tokens = 16000 },
  { name = "large", cost = 0.30 },
]
attempts = 8
dollars = 2.0
attempt_seconds = 600
retry = ["transient", "malformed_output"]
backoff = { base = 1, cap = 20 }

[policy.prompts]
"nudge.test" = "The tests fail: {error} Mend the code, not the tests. The task: {task}"

[projects.website]
dollars = 5.0

[tools.bash]
attempt_seconds = 120
retries = 1
"""

OWN_LADDER = """\
[ladder]
name = "nightly"
about = "A nightly job that nobody watches."
default_entry = "replan"
rungs = [
  { action = "retry", tries = 4, seconds = 120 },
  { action = "compact", applies_to = ["context_limit"] },
  { action = "replan", tries = 2, seconds = 900, rollback = true },
  { action = "force-done", seconds = 60 },
]

[ladder.entry]
transient = "retry"
context_limit = "compact"
missing_credentials = "force-done"

[ladder.loops]
5 = "force-done"

[policy]
template = "unattended"
"""


def pages() -> dict[str, str]:
    """Path and text of the page."""
    for example in (EXAMPLE, OWN_LADDER):
        book_from(tomllib.loads(example))  # an example that does not load is worse than none
    text = page(
        "Policy files",
        "`rung.toml`. All of it is checked when it is read; an error names the key and what is allowed.",
        table(("table", "what it holds"), _TABLES),
        "## Keys",
        f"Defaults are those of the ladder {code('task')} under the template {code('default')}.",
        table(("key", "type", "default", "meaning"), _key_rows()),
        "### `backoff`",
        doc(Backoff),
        table(("key", "default"), _defaults(Backoff)),
        "### `budget`",
        doc(Budget),
        "### `models`",
        doc(Model),
        _keys(Model),
        "### What depends on the ladder",
        table(("ladder", "attempts", "seconds", "retries"), _ladder_rows()),
        "## Templates",
        "On the ladder `task`; rows in which all templates agree are left out.",
        table(("", *(code(name) for name in TEMPLATES)), _template_rows()),
        "## An example",
        fence(EXAMPLE, "toml"),
        "## A ladder of your own",
        doc(Ladder),
        "In `entry`, as in `applies_to` and `retry`, the name of [a group](kinds/README.md) stands for all its kinds.",
        "### A rung",
        doc(Rung),
        _keys(Rung),
        "An action is one of [these](ladders/README.md). The name defaults to the action, the scope of retry to "
        "`action`.",
        "### An example of one",
        fence(OWN_LADDER, "toml"),
        "## Other tables",
        *(part for title, settings in _SETTINGS for part in (f"### {title}", doc(settings), _keys(settings))),
    )
    return {"policy.md": text}


_SETTINGS = (
    ("`[[rules]]`", RuleTable),
    ("`[stop]`", StopSettings),
    ("`[[hooks]]`", Hook),
    ("`[loops]`", Watching),
    ("`[gateway]`", Settings),
    ("`[gateway.timeouts]`", Timeouts),
    ("`[gateway.limits]`", Limits),
    ("`[gateway.budgets]`", Allowance),
    ("`[gateway.upstreams.NAME]`", Upstream),
    ("`[[gateway.keys]]`", Key),
    ("`[gateway.prices.MODEL]`", Price),
)
_TABLES = (
    ("`[policy]`", "The policy in force, by the keys below."),
    ("`[ladder]`", "A ladder of your own; `policy.ladder` is then left out."),
    ("`[projects.NAME]`", "What a project changes of it: the same keys."),
    ("`[tools.NAME]`", "What a tool changes of that: the same keys. Its word weighs most."),
    ("`[[rules]]`", "Rules of your own for naming failures: see [how to](../howto/name-failures.md)."),
)


def _key_rows() -> Iterator[tuple[str, ...]]:
    base = preset()
    special = {
        "ladder": code(base.ladder.name),
        "template": code(base.name),
        "retries": _OF_LADDER,
        "name": "the template's",
        "retry": codes(kind for kind in type(next(iter(DEFAULT_RETRY))) if kind in DEFAULT_RETRY),
        "backoff": "see below",
        "budget": _BY_LADDER,
        **dict.fromkeys(("attempts", "seconds", "dollars"), _BY_LADDER),
    }
    special["dollars"] = _value(base.budget.dollars)
    keys = _OTHERS | {each.name: (each.type.allowed, each.doc) for each in declared(Policy)}
    for key in POLICY_KEYS:
        kind, meaning = keys[key]
        default = special[key] if key in special else _value(getattr(base, key))
        yield code(key), kind, default, meaning


def _keys(settings: type) -> str:
    rows = (
        (code(key.name), key.type.allowed, "required" if key.default is REQUIRED else _value(key.default), key.doc)
        for key in declared(settings)
    )
    return table(("key", "allowed", "default", "meaning"), rows)


def _defaults(record: Any) -> Iterator[tuple[str, str]]:
    for field in fields(record):
        if field.init:
            yield code(field.name), "required" if field.default is MISSING else _value(field.default)


def _ladder_rows() -> Iterator[tuple[str, ...]]:
    for name in LADDERS:
        policy = preset(name)
        link = f"[{name}](ladders/{name}.md)"
        yield link, _value(policy.budget.attempts), _value(policy.budget.seconds), _retries(policy)


def _template_rows() -> Iterator[tuple[str, ...]]:
    columns = [_flat(preset("task", template)) for template in TEMPLATES]
    for key in columns[0]:
        values = [column[key] for column in columns]
        if len(set(values)) > 1:
            yield code(key), *values


def _flat(policy: Policy) -> dict[str, str]:
    """A policy as rows of a table."""
    flat = {"rungs": codes(rung.name for rung in policy.ladder.rungs), "retries": _retries(policy)}
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in ("name", "ladder"):
            continue
        if isinstance(value, Backoff | Budget):
            flat |= {f"{field.name}.{part.name}": _value(getattr(value, part.name)) for part in fields(value)}
        elif isinstance(value, frozenset):
            flat[field.name] = "as by default" if value == DEFAULT_RETRY else codes(sorted(value)) or "none"
        else:
            flat[field.name] = _value(value)
    return flat


def _retries(policy: Policy) -> str:
    tries = [str(rung.tries) for rung in policy.ladder.rungs if rung.action is Action.RETRY]
    return ", ".join(tries) or "no such rung"


def _value(value: object) -> str:
    """A value as a policy file would hold it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, StrEnum):
        return code(f'"{value.value}"')
    if isinstance(value, float | int):
        return code(f"{value:.10g}")
    if isinstance(value, str):
        return code(f'"{value}"')
    if isinstance(value, frozenset):
        return codes(sorted(value)) or "empty"
    return "see below" if is_dataclass(value) else code(value) if value else "empty"
