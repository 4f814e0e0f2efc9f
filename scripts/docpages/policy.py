"""Generate the reference page of policy files; the examples are validated first."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from docpages.markdown import code, codes, doc, fence, page, table
from rung.core.backoff import Backoff
from rung.core.budget import Budget
from rung.core.config import POLICY_KEYS, book_from
from rung.core.ladder import Action, Ladder, Rung
from rung.core.policy import BLOCKED_REPORT, DEFAULT_RETRY, TEMPLATES, Confirm, Model, Policy, Sticky, preset
from rung.core.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FROM_RUNG = "set by the ladder"
_BY_LADDER = "depends on the ladder, see below"

# Type and description of each key. Defaults come from the policy. A missing key fails the build.
_KEYS: dict[str, tuple[str, str]] = {
    "ladder": (f"{codes(LADDERS)}, or a table", "The ladder to use: a built-in one by name, or your own as a table."),
    "template": (codes(TEMPLATES), "Base values; every other key overrides one of them."),
    "retries": ("whole number", "Number of tries on the retry rung."),
    "attempts": ("whole number, 1 or more", "Cap on the attempts of one incident, including the first."),
    "seconds": ("number", "Cap on the seconds of one incident from its start, including waits."),
    "dollars": ("number", "Cap on the US dollars of one incident, as reported by the attempts."),
    "name": ("text", "The name of the policy in events."),
    "backoff": (f"table: {codes(f.name for f in fields(Backoff))}", "How long to wait before a retry."),
    "budget": (f"table: {codes(f.name for f in fields(Budget))}", "The three caps in one table."),
    "models": (
        f"list of names or tables ({codes(f.name for f in fields(Model))})",
        "The model ladder, cheapest first; `fallback` and `escalate` hand over to its models.",
    ),
    "agents": ("list of names", "Agents to hand over to, in order."),
    "retry": (
        "list of kinds or groups",
        "Kinds whose request may be retried unchanged. The failure must also be retryable.",
    ),
    "retry_after_cap": (
        "seconds",
        "The longest `Retry-After` to wait for. If a server asks for more, recovery moves to the next rung.",
    ),
    "attempt_seconds": (
        "seconds",
        "Time limit of one attempt. Default: only the time limits of the rung and the incident.",
    ),
    "auto_escalate": ("true or false", "Whether recovery may move to the next model up without confirmation."),
    "escalate_after": (
        "whole number",
        "With fewer failures than this, moving to the next model up requires confirmation.",
    ),
    "confirm": (codes(Confirm), "When a person must confirm a hand-over to another model or agent."),
    "sticky": (codes(Sticky), "How long a session keeps the model of a hand-over."),
    "unattended": ("true or false", "No person is available: a question ends the incident as blocked, with a report."),
    "checkpoints": ("true or false", "Whether to save the state of the work before a rung that can change much of it."),
    "report": (
        "path",
        ("File to which the report of a blocked incident is appended. Empty: no file. Default of the command line: "
        f"`{BLOCKED_REPORT}`."),
    ),
    "prompts": ("table: prompt id = text", "Your own text for a [recovery prompt](prompts.md)."),
    "learn": ("true or false", "Start at the rung that recovered this failure before, if the journal has one."),
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
otherwise = "replan"
rungs = [
  { action = "retry", tries = 4, seconds = 120 },
  { action = "compact", helps = ["context_limit"] },
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
    if set(_KEYS) != set(POLICY_KEYS):
        raise SystemExit(f"docpages/policy.py: describe exactly these keys: {sorted(set(_KEYS) ^ set(POLICY_KEYS))}")
    for example in (EXAMPLE, OWN_LADDER):
        book_from(tomllib.loads(example))  # documented examples must be valid
    text = page(
        "Policy files",
        "A policy file (`rung.toml`) is validated when it is loaded; an error names the key and the allowed values.",
        table(("table", "content"), _TABLES),
        "## Keys",
        f"Defaults are those of the ladder {code('task')} with the template {code('default')}.",
        table(("key", "type", "default", "meaning"), _key_rows()),
        "### `backoff`",
        doc(Backoff),
        table(("key", "default"), _defaults(Backoff)),
        "### `budget`",
        doc(Budget),
        "### `models`",
        doc(Model),
        table(("key", "default"), _defaults(Model)),
        "### Defaults by ladder",
        table(("ladder", "attempts", "seconds", "retries"), _ladder_rows()),
        "## Templates",
        "Values for the ladder `task`. Keys with the same value in all templates are omitted.",
        table(("", *(code(name) for name in TEMPLATES)), _template_rows()),
        "## Example",
        fence(EXAMPLE, "toml"),
        "## Define a ladder",
        doc(Ladder),
        "In `entry`, `helps` and `retry`, the name of a [group](kinds/README.md) stands for all its kinds.",
        "### Rungs",
        doc(Rung),
        table(("key", "default"), _defaults(Rung)),
        "See the [list of actions](ladders/README.md). The default name is the action; the default scope of `retry` is "
        "`action`.",
        "### Example of a ladder",
        fence(OWN_LADDER, "toml"),
    )
    return {"policy.md": text}


_TABLES = (
    ("`[policy]`", "The policy, with the keys below."),
    ("`[ladder]`", "Your own ladder; omit `policy.ladder` in this case."),
    ("`[projects.NAME]`", "Overrides for one project, with the same keys."),
    ("`[tools.NAME]`", "Overrides for one tool, with the same keys. They take precedence over the project."),
    ("`[[rules]]`", "Your own classification rules; see [Classify failures](../howto/classify-failures.md)."),
)


def _key_rows() -> Iterator[tuple[str, ...]]:
    base = preset()
    explicit = {
        "ladder": code(base.ladder.name),
        "template": code(base.name),
        "retries": _FROM_RUNG,
        "name": "name of the template",
        "retry": codes(kind for kind in type(next(iter(DEFAULT_RETRY))) if kind in DEFAULT_RETRY),
        "backoff": "see below",
        "budget": _BY_LADDER,
        **dict.fromkeys(("attempts", "seconds", "dollars"), _BY_LADDER),
    }
    explicit["dollars"] = _value(base.budget.dollars)
    for key in POLICY_KEYS:
        kind, meaning = _KEYS[key]
        default = explicit[key] if key in explicit else _value(getattr(base, key))
        yield code(key), kind, default, meaning


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
        if isinstance(value, Backoff | Budget):
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
    return "empty" if not value else code(value)
