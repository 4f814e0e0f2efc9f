"""Generate the reference page of rung.toml: every table that is accepted, with its keys."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from docpages.markdown import code, doc, fence, page, table
from docpages.policy import keys_table, written
from rung.adapters.system.user_hooks import CommandHook
from rung.core.agents.own_agents import OwnAgent
from rung.core.alerts.rules import AlertChannel, AlertRule, AlertSettings
from rung.core.classify.user_rules import RuleTable
from rung.core.policy.parser import FILE_KEYS
from rung.core.policy.spend_limits import SpendLimits
from rung.core.policy.stop_settings import StopSettings
from rung.detectors.loop_settings import LoopSettings
from rung.gateway.settings import GatewayKey, GatewaySettings, ModelAlias, Price, SizeLimits, TierPrice, TimeoutSettings
from rung.gateway.upstream.settings import UpstreamSettings
from rung.wiring.engines import FleetSettings
from rung.wiring.recording import RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


class TopLevel(NamedTuple):
    """A top-level key of rung.toml: how it is written, what it is for, and the page that explains its use."""

    written: str
    content: str
    guide: str
    link: str = ""  # where its keys are; default: a section of this page


TOP_LEVEL = {
    "policy": TopLevel("[policy]", "The recovery policy.", "", "policy.md"),
    "ladder": TopLevel(
        "[ladder]", "Your own ladder; omit `policy.ladder` in this case.", "", "policy.md#define-a-ladder"
    ),
    "projects": TopLevel("[projects.NAME]", "Policy of one project, with the keys of `[policy]`.", "", "policy.md"),
    "tools": TopLevel(
        "[tools.NAME]",
        "Policy of one tool, with the keys of `[policy]`. It takes precedence over the project. NAME is the program of the "
        "command for `rung run` and a pipeline's stage, and the tool of a failure for everything else: a tool call for "
        "the gateway, a report for MCP, a loop for hooks, `AttemptError(tool=…)` for the library.",
        "",
        "policy.md",
    ),
    "rules": TopLevel("[[rules]]", "Your own classification rules.", "classify-failures"),
    "journal": TopLevel("journal", "Path or URL of the journal.", "use-the-journal"),
    "notes": TopLevel("notes", "Folder of the project's notes on failures.", "supervise-a-command"),
    "gateway": TopLevel("[gateway]", "The gateway: upstreams, keys, prices, limits.", "use-the-gateway"),
    "loops": TopLevel("[loops]", "Loop detection.", "detect-loops"),
    "stop": TopLevel("[stop]", "What a finished run must show before it counts as done.", "supervise-a-command"),
    "hooks": TopLevel("[[hooks]]", "Your own commands around attempts and rungs.", "supervise-a-command"),
    "agents": TopLevel("[[agents]]", "Agents of your own that `rung run` can resume.", "supervise-a-command"),
    "recording": TopLevel("[recording]", "What is recorded of prompts and answers.", "use-the-journal"),
    "alerts": TopLevel("[alerts]", "Alerts: rules, and the channels that are notified.", "set-up-alerts"),
    "fleet": TopLevel("[fleet]", "The durable engine of a fleet, and where it runs.", "choose-a-durable-engine"),
}

# Sections of the page, in order: the top-level key, the title, and the class that declares the keys.
SECTIONS: tuple[tuple[str, str, type], ...] = (
    ("rules", "[[rules]]", RuleTable),
    ("stop", "[stop]", StopSettings),
    ("hooks", "[[hooks]]", CommandHook),
    ("agents", "[[agents]]", OwnAgent),
    ("loops", "[loops]", LoopSettings),
    ("recording", "[recording]", RecordingSettings),
    ("alerts", "[alerts]", AlertSettings),
    ("alerts", "[alerts.rules.NAME]", AlertRule),
    ("alerts", "[alerts.channels.NAME]", AlertChannel),
    ("fleet", "[fleet]", FleetSettings),
    ("gateway", "[gateway]", GatewaySettings),
    ("gateway", "[gateway.timeouts]", TimeoutSettings),
    ("gateway", "[gateway.limits]", SizeLimits),
    ("gateway", "[gateway.budgets]", SpendLimits),
    ("gateway", "[gateway.upstreams.NAME]", UpstreamSettings),
    ("gateway", "[[gateway.keys]]", GatewayKey),
    ("gateway", "[[gateway.aliases]]", ModelAlias),
    ("gateway", "[gateway.prices.MODEL]", Price),
    ("gateway", "[[gateway.prices.MODEL.tiers]]", TierPrice),
)

VALUES = """\
journal = "postgresql://rung@db.internal/rung"   # or a file: "runs/journal.db"
notes = "notes"
"""


def pages() -> dict[str, str]:
    """Return the path and text of the page."""
    missing = set(FILE_KEYS) - set(TOP_LEVEL)
    if missing:
        raise ValueError(f"rung.toml accepts {', '.join(sorted(missing))}: describe it in docpages/settings.py")
    text = page(
        "Settings: rung.toml",
        "Everything that `rung.toml` accepts. The file is validated when it is loaded; an error names the key and the "
        "allowed values. `rung policy check` checks a file, `rung policy show` prints what is in effect.",
        "A file in a working directory is policy data alone, and can only lower your limits, until you "
        "[trust it](../howto/trust-a-settings-file.md).",
        table(("table or key", "content", "guide"), _rows()),
        "## `journal` and `notes`",
        "Two keys stand at the top of the file, before the first table. An option such as `--journal` and the environment "
        "variable `RUNG_JOURNAL` take precedence over `journal`.",
        fence(VALUES, "toml"),
        *(part for _, title, settings in SECTIONS for part in _section(title, settings)),
    )
    return {"settings.md": text}


def _rows() -> Iterator[tuple[str, ...]]:
    for key in FILE_KEYS:
        top = TOP_LEVEL[key]
        link = top.link or ("#journal-and-notes" if key in ("journal", "notes") else f"#{anchor(top.written)}")
        guide = f"[{top.guide.replace('-', ' ').capitalize()}](../howto/{top.guide}.md)" if top.guide else ""
        yield f"[{code(top.written)}]({link})", top.content, guide


def anchor(title: str) -> str:
    """Return the anchor of a heading, as code hosts and the site make it."""
    return "".join(char for char in title.lower() if char.isalnum() or char in "-_ ").replace(" ", "-")


def _section(title: str, settings: type) -> Iterator[str]:
    yield f"## {code(title)}"
    yield doc(settings)
    if settings is FleetSettings:  # a plain dataclass: its docstring describes the keys
        yield table(("key", "default"), ((code(field.name), written(field.default)) for field in fields(FleetSettings)))
    else:
        yield keys_table(settings)
