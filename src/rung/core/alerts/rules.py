"""Alert rules and channels, as `[alerts]` of a settings file declares them."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003  # dataclasses read the annotation
from dataclasses import field
from enum import StrEnum
from typing import Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.frozen_dict import FrozenDict
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COMMAND,
    COUNT,
    FLAG,
    NUMBER,
    POSITIVE_SECONDS,
    SECONDS,
    TEXTS,
    Type,
    one_of,
    optional,
    read_settings,
    read_table,
    read_values,
    setting,
    settings,
    suggest_names,
)

DEFAULT_INTERVAL_SECONDS: Final = 30.0
PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NAME_ALLOWED: Final = "a name of 1 to 64 letters, digits, dots, dashes and underscores"


class Metric(StrEnum):
    """Figure that a rule compares with its threshold."""

    FAILURE_RATE = "failure_rate"
    UNRECOVERED = "unrecovered"
    COST = "cost"
    STUCK = "stuck"
    PARKED = "parked"
    DEAD_WORKERS = "dead_workers"
    UNANSWERED = "unanswered"


METRIC_DESCRIPTIONS: Final[Mapping[Metric, str]] = {
    Metric.FAILURE_RATE: "Share of the attempts in the window that failed, 0 to 1; 0 with fewer than `minimum` attempts.",
    Metric.UNRECOVERED: "Incidents that ended failed, partial or blocked in the window; nested ones count with their parent.",
    Metric.COST: "US dollars spent in the window.",
    Metric.STUCK: "Sessions that were stuck in the window: the same failure three times, or a recovery without success.",
    Metric.PARKED: "Recoveries and crew pools that have been parked for at least the window.",
    Metric.DEAD_WORKERS: "Executors of a fleet and workers of a crew that died in the window.",
    Metric.UNANSWERED: "Questions to a person that have waited for at least the window.",
}
_DEFAULT_WINDOWS: Final[Mapping[Metric, float]] = {
    Metric.FAILURE_RATE: 900.0,
    Metric.UNRECOVERED: 3_600.0,
    Metric.COST: 86_400.0,
    Metric.STUCK: 3_600.0,
    Metric.PARKED: 3_600.0,
    Metric.DEAD_WORKERS: 600.0,
    Metric.UNANSWERED: 1_800.0,
}


class ChannelType(StrEnum):
    """Service that a channel notifies."""

    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    WEBHOOK = "webhook"
    COMMAND = "command"


class Severity(StrEnum):
    """Severity of an alert, by the names of PagerDuty."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


VARIABLE: Final = Type(
    "the name of an environment variable", lambda value: isinstance(value, str) and bool(_VARIABLE.fullmatch(value))
)


@settings
class AlertRule:
    """One rule: `[alerts.rules.NAME]`."""

    when: Metric = setting(one_of(Metric), "Figure that the rule watches.")
    threshold: float = setting(NUMBER, "Value from which on the alert fires.")
    channels: tuple[str, ...] = setting(TEXTS, "Channels that are notified; empty: the history alone.", default=())
    window: float | None = setting(
        optional(POSITIVE_SECONDS), "Seconds that the figure covers; its default depends on the figure.", default=None
    )
    cooldown: float = setting(SECONDS, "Seconds after an alert has fired before it may fire again.", default=1_800.0)
    minimum: int = setting(COUNT, "Attempts below which a failure rate counts as 0.", default=20)
    project: str | None = setting(optional(ANY_TEXT), "Project that the rule is about; left out: all.", default=None)
    severity: Severity = setting(one_of(Severity), "Severity that notifications name.", default=Severity.ERROR)
    name: str = field(default="")

    def __post_init__(self) -> None:
        if self.when is Metric.FAILURE_RATE and not 0 < self.threshold <= 1:
            raise ConfigError("threshold", self.threshold, "a share of the attempts, more than 0 and at most 1")
        if self.when is Metric.COST and not self.threshold > 0:
            raise ConfigError("threshold", self.threshold, "US dollars, more than 0")
        if self.when not in (Metric.FAILURE_RATE, Metric.COST) and not _is_count(self.threshold):
            raise ConfigError("threshold", self.threshold, "a whole number, 1 or more")
        if self.when is Metric.DEAD_WORKERS and self.project is not None:
            raise ConfigError("project", self.project, "left out: the executors of a fleet belong to no project")

    @property
    def window_seconds(self) -> float:
        """Return the window, or the default of the figure."""
        return _DEFAULT_WINDOWS[self.when] if self.window is None else self.window


def _is_count(value: float) -> bool:
    return is_whole(value, 1) or (is_number(value, 1) and float(value).is_integer())


@settings
class AlertChannel:
    """Where notifications go: `[alerts.channels.NAME]`. Addresses and secrets are in environment variables."""

    type: ChannelType = setting(one_of(ChannelType), "Service that is notified.")
    url_env: str = setting(
        VARIABLE, "Variable with the URL of the webhook: slack, teams, webhook, pagerduty.", default=""
    )
    key_env: str = setting(VARIABLE, "Variable with the integration key of a PagerDuty service.", default="")
    secret_env: str = setting(VARIABLE, "Variable with the secret that signs requests to a webhook.", default="")
    run: tuple[str, ...] = setting(COMMAND, "Command that gets the notification as JSON on standard input.", default=())
    timeout: float = setting(POSITIVE_SECONDS, "Seconds that one delivery may take.", default=10.0)
    resolved: bool = setting(FLAG, "Whether it also hears when an alert is resolved.", default=True)
    name: str = field(default="")

    def __post_init__(self) -> None:
        needed, others = _CHANNEL_KEYS[self.type]
        for key in ("url_env", "key_env", "secret_env", "run"):
            given = bool(getattr(self, key))
            if key in needed and not given:
                raise ConfigError(key, getattr(self, key), f"set: a channel of type {self.type} needs it")
            if given and key not in (*needed, *others):
                raise ConfigError(key, getattr(self, key), f"left out: a channel of type {self.type} does not use it")

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that it reads, by the key that names them."""
        names = {key: getattr(self, key) for key in ("url_env", "key_env", "secret_env")}
        return {key: name for key, name in names.items() if name}


_CHANNEL_KEYS: Final[Mapping[ChannelType, tuple[tuple[str, ...], tuple[str, ...]]]] = {  # needed, and optional
    ChannelType.SLACK: (("url_env",), ()),
    ChannelType.TEAMS: (("url_env",), ()),
    ChannelType.PAGERDUTY: (("key_env",), ("url_env",)),
    ChannelType.WEBHOOK: (("url_env",), ("secret_env",)),
    ChannelType.COMMAND: (("run",), ()),
}


@settings
class AlertSettings:
    """All of `[alerts]`."""

    interval: float = setting(
        POSITIVE_SECONDS, "Seconds between two evaluations of the rules.", default=DEFAULT_INTERVAL_SECONDS
    )
    allow_hosts: tuple[str, ...] = setting(
        TEXTS, "Hosts that may be notified although they are this machine or link-local.", default=()
    )
    dashboard: str = setting(
        ANY_TEXT, "Address of the dashboard, as its readers open it; notifications link to it.", default=""
    )
    rules: Mapping[str, AlertRule] = field(default_factory=FrozenDict)
    channels: Mapping[str, AlertChannel] = field(default_factory=FrozenDict)


def read_alerts(table: object, where: str = "alerts") -> AlertSettings:
    """Return the settings of an `[alerts]` table; raise ConfigError that names the key and what is allowed."""
    source = read_table(table, where)
    values = read_values(AlertSettings, source, where, "rules", "channels")
    channels = {
        name: read_settings(AlertChannel, one, f"{where}.channels.{name}", name=name)
        for name, one in _named(source.get("channels", {}), f"{where}.channels")
    }
    rules = {
        name: read_settings(AlertRule, one, f"{where}.rules.{name}", name=name)
        for name, one in _named(source.get("rules", {}), f"{where}.rules")
    }
    for name, rule in rules.items():
        for channel in rule.channels:
            if channel not in channels:
                known = f"a channel of [{where}.channels]: {', '.join(channels) or 'there is none'}"
                raise ConfigError(f"{where}.rules.{name}.channels", channel, known + suggest_names(channel, channels))
    return AlertSettings(**values, rules=rules, channels=channels)


def _named(table: object, where: str) -> list[tuple[str, Any]]:
    rows = list(read_table(table, where).items())
    for name, _ in rows:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{where}.{name}", name, _NAME_ALLOWED)
    return rows
