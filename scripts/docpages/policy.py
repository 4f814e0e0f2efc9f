"""Generate the reference page of policy files; the examples are validated first."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from docpages.markdown import code, codes, doc, fence, page, table
from rung.adapters.system.user_hooks import CommandHook
from rung.core.agents.own_agents import OwnAgent
from rung.core.classify.user_rules import RuleTable
from rung.core.domain.ladder import Action, Ladder, Rung
from rung.core.domain.settings_schema import REQUIRED, declared_settings
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.learn_settings import LearnSettings
from rung.core.policy.parser import POLICY_KEYS, parse_policy_file
from rung.core.policy.policy import DEFAULT_RETRY, TEMPLATES, Model, Policy, preset
from rung.core.policy.presets import LADDERS
from rung.core.policy.spend_limits import SpendLimits
from rung.core.policy.stalls import StallLimits
from rung.core.policy.stop_settings import StopSettings
from rung.detectors.loop_settings import LoopSettings
from rung.gateway.settings import GatewayKey, GatewaySettings, Price, SizeLimits, TierPrice, TimeoutSettings
from rung.gateway.upstream.settings import UpstreamSettings
from rung.wiring.recording import RecordingSettings

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
    "attempts": ("a whole number, 1 or more", "Cap on the attempts of one incident, including the first."),
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
        "Policy files",
        "A policy file (`rung.toml`) is validated when it is loaded; an error names the key and the allowed values.",
        "A file in a working directory is policy data alone, and can only lower your limits, until you "
        "[trust it](../howto/trust-a-settings-file.md).",
        table(("table", "content"), _TABLES),
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
        _keys(Model),
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
        _keys(Rung),
        "See the [list of actions](ladders/README.md). The default name is the action; the default scope of `retry` is "
        "`action`.",
        "### Example of a ladder",
        fence(OWN_LADDER, "toml"),
        "## Other tables",
        *(part for title, settings in _SETTINGS for part in (f"### {title}", doc(settings), _keys(settings))),
    )
    return {"policy.md": text}


_SETTINGS = (
    ("`[[rules]]`", RuleTable),
    ("`[stop]`", StopSettings),
    ("`[[hooks]]`", CommandHook),
    ("`[[agents]]`", OwnAgent),
    ("`[loops]`", LoopSettings),
    ("`[recording]`", RecordingSettings),
    ("`[gateway]`", GatewaySettings),
    ("`[gateway.timeouts]`", TimeoutSettings),
    ("`[gateway.limits]`", SizeLimits),
    ("`[gateway.budgets]`", SpendLimits),
    ("`[gateway.upstreams.NAME]`", UpstreamSettings),
    ("`[[gateway.keys]]`", GatewayKey),
    ("`[gateway.prices.MODEL]`", Price),
    ("`[[gateway.prices.MODEL.tiers]]`", TierPrice),
)
_TABLES = (
    ("`[policy]`", "The policy, with the keys below."),
    ("`[ladder]`", "Your own ladder; omit `policy.ladder` in this case."),
    ("`[projects.NAME]`", "Overrides for one project, with the same keys."),
    (
        "`[tools.NAME]`",
        (
            "Overrides for one tool, with the same keys. They take precedence over the project. NAME is the program of the "
            "command for `rung run` and a pipeline's stage, and the tool of a failure for everything else: a tool call for the "
            "gateway, a report for MCP, a loop for hooks, `AttemptError(tool=…)` for the library."
        ),
    ),
    ("`[[rules]]`", "Your own classification rules; see [Classify failures](../howto/classify-failures.md)."),
)


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
    explicit["dollars"] = _value(base.budget.dollars)
    keys = _OTHER_KEYS | {each.name: (each.type.allowed, each.doc) for each in declared_settings(Policy)}
    for key in POLICY_KEYS:
        kind, meaning = keys[key]
        default = explicit[key] if key in explicit else _value(getattr(base, key))
        yield code(key), kind, default, meaning


def _keys(settings: type) -> str:
    rows = (
        (code(key.name), key.type.allowed, "required" if key.default is REQUIRED else _value(key.default), key.doc)
        for key in declared_settings(settings)
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
    """Return a policy as the rows of a table."""
    flat = {"rungs": codes(rung.name for rung in policy.ladder.rungs), "retries": _retries(policy)}
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in ("name", "ladder"):
            continue
        if isinstance(value, Backoff | Budget | StallLimits):
            flat |= {f"{field.name}.{part.name}": _value(getattr(value, part.name)) for part in fields(value)}
        elif isinstance(value, frozenset):
            flat[field.name] = "default" if value == DEFAULT_RETRY else codes(sorted(value)) or "none"
        else:
            flat[field.name] = _value(value)
    return flat


def _retries(policy: Policy) -> str:
    tries = [str(rung.tries) for rung in policy.ladder.rungs if rung.action is Action.RETRY]
    return ", ".join(tries) or "no retry rung"


def _value(value: object) -> str:
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
