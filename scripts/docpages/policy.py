"""Generate the reference page of policies; the examples are validated first."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from docpages.markdown import code, codes, doc, fence, page, table
from rung.core.domain.ladder import Action, Ladder, Rung
from rung.core.domain.settings_schema import REQUIRED, declared_settings
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.learn_settings import LearnSettings
from rung.core.policy.parser import POLICY_KEYS, parse_policy_file
from rung.core.policy.policy import DEFAULT_RETRY, Model, Policy
from rung.core.policy.presets import LADDERS
from rung.core.policy.stalls import StallLimits
from rung.core.policy.templates import TEMPLATES, preset

if TYPE_CHECKING:
    from collections.abc import Iterator

_FROM_RUNG = "set by the ladder"
_BY_LADDER = "depends on the ladder, see below"

# Type and description of the keys that are not fields of a policy.
_OTHER_KEYS: dict[str, tuple[str, str]] = {
    "ladder": (f"{codes(LADDERS)}, or a table", "The ladder to use: a built-in one by name, or your own as a table."),
    "template": (codes(TEMPLATES), "Base values; every other key overrides one of them."),
    "retries": ("a whole number, 0 or more", "Number of tries on the retry rung."),
    "entry": (
        "a table: kind or group = rung",
        "Entry rungs of single kinds; those of the ladder stay for the others.",
    ),
    "tries": ("a table: rung = a whole number, 0 or more", "Number of tries of single rungs."),
    "attempts": (
        "a whole number, 1 or more",
        "Cap on the attempts of one incident, including the first. Probes of a failing service are not counted: `patience` bounds them.",
    ),
    "seconds": ("seconds, 0 or more", "Cap on the seconds of one incident from its start, including waits."),
    "dollars": ("US dollars, 0 or more", "Cap on the US dollars of one incident, as reported by the attempts."),
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
"nudge.test" = "The tests fail: {error} Fix the code, not the tests. The task: {task}"

[projects.website]
dollars = 5.0

[tools.bash]
attempt_seconds = 120
retries = 1
"""

OWN_LADDER = """\
[ladder]
name = "nightly"
about = "An unattended nightly job."
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
    """Return the path and text of the page."""
    for example in (EXAMPLE, OWN_LADDER):
        parse_policy_file(tomllib.loads(example))  # documented examples must be valid
    text = page(
        "Policy",
        "A policy is a ladder with its limits. These are the keys of `[policy]`, `[projects.NAME]` and `[tools.NAME]` in "
        "[rung.toml](settings.md), of `rung.policy(…)` in Python, and of the policies in the dashboard.",
        "## Keys",
        f"Defaults are those of the ladder {code('task')} with the template {code('default')}.",
        table(("key", "type", "default", "meaning"), _key_rows()),
        "### `backoff`",
        doc(Backoff),
        table(("key", "default"), _defaults(Backoff)),
        "### `budget`",
        doc(Budget),
        "### `stalls`",
        doc(StallLimits),
        table(("key", "default"), _defaults(StallLimits)),
        "### `learn`",
        doc(LearnSettings),
        table(("key", "default"), _defaults(LearnSettings)),
        "### `models`",
        doc(Model),
        keys_table(Model),
        "### Defaults by ladder",
        table(("ladder", "attempts", "seconds", "retries"), _ladder_rows()),
        "## Templates",
        "Values for the ladder `task`. Keys with the same value in all templates are omitted.",
        table(("", *(code(name) for name in TEMPLATES)), _template_rows()),
        "## Example",
        fence(EXAMPLE, "toml"),
        "## Define a ladder",
        doc(Ladder),
        "In `entry`, `applies_to` and `retry`, the name of a [group](kinds/README.md) stands for all its kinds.",
        "### Rungs",
        doc(Rung),
        keys_table(Rung),
        "See the [list of actions](ladders/README.md). The default name is the action; the default scope of `retry` is "
        "`action`.",
        "### Example of a ladder",
        fence(OWN_LADDER, "toml"),
    )
    return {"policy.md": text}


def _key_rows() -> Iterator[tuple[str, ...]]:
    base = preset()
    explicit = {
        "ladder": code(base.ladder.name),
        "template": code(base.name),
        **dict.fromkeys(("retries", "entry", "tries"), _FROM_RUNG),
        "name": "name of the template",
        "retry": codes(kind for kind in type(next(iter(DEFAULT_RETRY))) if kind in DEFAULT_RETRY),
        "backoff": "see below",
        "stalls": "see below",
        "budget": _BY_LADDER,
        **dict.fromkeys(("attempts", "seconds", "dollars"), _BY_LADDER),
    }
    explicit["dollars"] = written(base.budget.dollars)
    keys = _OTHER_KEYS | {each.name: (each.type.allowed, each.doc) for each in declared_settings(Policy)}
    for key in POLICY_KEYS:
        kind, meaning = keys[key]
        default = explicit[key] if key in explicit else written(getattr(base, key))
        yield code(key), kind, default, meaning


def keys_table(settings: type) -> str:
    """Return a table of the declared keys of a settings class."""
    rows = (
        (code(key.name), key.type.allowed, "required" if key.default is REQUIRED else written(key.default), key.doc)
        for key in declared_settings(settings)
    )
    return table(("key", "allowed", "default", "meaning"), rows)


def _defaults(record: Any) -> Iterator[tuple[str, str]]:
    for field in fields(record):
        if field.init:
            yield code(field.name), "required" if field.default is MISSING else written(field.default)


def _ladder_rows() -> Iterator[tuple[str, ...]]:
    for name in LADDERS:
        policy = preset(name)
        link = f"[{name}](ladders/{name}.md)"
        yield link, written(policy.budget.attempts), written(policy.budget.seconds), _retries(policy)


def _template_rows() -> Iterator[tuple[str, ...]]:
    columns = [_flat(preset("task", template)) for template in TEMPLATES]
    for key in columns[0]:
        values = [column[key] for column in columns]
        if len(set(values)) > 1:
            yield code(key), *values


def _flat(policy: Policy) -> dict[str, str]:
    """Return a policy as the rows of a table."""
    flat = {"rungs": codes(rung.name for rung in policy.ladder.rungs), "retries": _retries(policy)}
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in ("name", "ladder"):
            continue
        if isinstance(value, Backoff | Budget | StallLimits):
            flat |= {f"{field.name}.{part.name}": written(getattr(value, part.name)) for part in fields(value)}
        elif isinstance(value, frozenset):
            flat[field.name] = "default" if value == DEFAULT_RETRY else codes(sorted(value)) or "none"
        else:
            flat[field.name] = written(value)
    return flat


def _retries(policy: Policy) -> str:
    tries = [str(rung.tries) for rung in policy.ladder.rungs if rung.action is Action.RETRY]
    return ", ".join(tries) or "no retry rung"


def written(value: object) -> str:
    """Return a value as written in a policy file."""
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
