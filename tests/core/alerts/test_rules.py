"""The `[alerts]` table: what it means, and errors that name the key and what is allowed."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.notifications import Notification, format_span, new_notification
from rung.core.alerts.rules import METRIC_DESCRIPTIONS, AlertRule, ChannelType, Metric, Severity, read_alerts
from rung.core.domain.errors import ConfigError

WHOLE = """
interval = 15
allow_hosts = ["127.0.0.1"]
dashboard = "https://rung.example/"
[channels.ops]
type = "slack"
url_env = "OPS_WEBHOOK"
[channels.page]
type = "pagerduty"
key_env = "PAGER_KEY"
[channels.log]
type = "command"
run = ["logger", "-t", "rung"]
resolved = false
[rules.failing]
when = "failure_rate"
threshold = 0.2
window = 600
project = "checkout"
severity = "critical"
channels = ["ops", "page"]
[rules.waiting]
when = "unanswered"
threshold = 1
"""


def test_a_whole_table() -> None:
    """Rules and channels are read by name, with defaults that depend on the figure."""
    read = read_alerts(tomllib.loads(WHOLE))
    assert (read.interval, read.allow_hosts, list(read.rules), list(read.channels)) == (
        15, ("127.0.0.1",), ["failing", "waiting"], ["ops", "page", "log"],
    )  # fmt: skip
    failing, waiting = read.rules["failing"], read.rules["waiting"]
    assert (failing.name, failing.when, failing.window_seconds) == ("failing", Metric.FAILURE_RATE, 600)
    assert (failing.severity, failing.project, failing.channels) == (Severity.CRITICAL, "checkout", ("ops", "page"))
    assert (waiting.window_seconds, waiting.channels, waiting.project) == (1_800, (), None)
    assert (read.channels["log"].type, read.channels["log"].resolved) == (ChannelType.COMMAND, False)
    assert read.channels["page"].variables == {"key_env": "PAGER_KEY"}


RULE: dict[str, Any] = {"when": "cost", "threshold": 5}


@pytest.mark.parametrize(
    ("table", "key", "allowed"),
    [
        ({"rule": {}}, "alerts.rule", "did you mean rules"),
        ({"interval": 0}, "alerts.interval", "seconds, more than 0"),
        ({"rules": []}, "alerts.rules", "a table"),
        ({"rules": {"a/b": RULE}}, "alerts.rules.a/b", "a name of 1 to 64"),
        ({"rules": {"r": {"threshold": 1}}}, "alerts.rules.r.when", "one of failure_rate, unrecovered, cost"),
        ({"rules": {"r": {"when": "cost"}}}, "alerts.rules.r.threshold", "a number"),
        (
            {"rules": {"r": {"when": "cots", "threshold": 1}}},
            "alerts.rules.r.when",
            "one of failure_rate, unrecovered, cost",
        ),
        ({"rules": {"r": {**RULE, "threshold": 0}}}, "alerts.rules.r.threshold", "more than 0"),
        ({"rules": {"r": {"when": "failure_rate", "threshold": 20}}}, "alerts.rules.r.threshold", "at most 1"),
        ({"rules": {"r": {"when": "stuck", "threshold": 1.5}}}, "alerts.rules.r.threshold", "a whole number"),
        ({"rules": {"r": {**RULE, "windows": 1}}}, "alerts.rules.r.windows", "did you mean window"),
        ({"rules": {"r": {**RULE, "channels": ["ops"]}}}, "alerts.rules.r.channels", "there is none"),
        (
            {"rules": {"r": {"when": "dead_workers", "threshold": 2, "project": "p"}}},
            "alerts.rules.r.project",
            "left out",
        ),
        ({"channels": {"c": {}}}, "alerts.channels.c.type", "one of slack, teams, pagerduty"),
        ({"channels": {"c": {"type": "slack"}}}, "alerts.channels.c.url_env", "type slack needs it"),
        (
            {"channels": {"c": {"type": "slack", "url_env": "https://hooks.slack.com/services/T0"}}},
            "alerts.channels.c.url_env",
            "the name of an environment variable",
        ),
        ({"channels": {"c": {"type": "command"}}}, "alerts.channels.c.run", "type command needs it"),
        (
            {"channels": {"c": {"type": "slack", "url_env": "U", "run": ["x"]}}},
            "alerts.channels.c.run",
            "type slack does not use it",
        ),
    ],
)
def test_errors_name_the_key(table: dict[str, Any], key: str, allowed: str) -> None:
    """Every invalid table is refused with the full key and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        read_alerts(table)
    assert caught.value.key == key
    assert allowed in caught.value.allowed


def test_every_figure_is_described() -> None:
    """Each figure that a rule can watch has a description and a default window."""
    assert set(METRIC_DESCRIPTIONS) == set(Metric)
    assert all(AlertRule(when=one, threshold=1).window_seconds > 0 for one in Metric)


def test_a_notification_says_what_it_is_about() -> None:
    """Title and summary name the rule, the figure, the threshold and the window; its JSON is read back."""
    rule = read_alerts(tomllib.loads(WHOLE)).rules["failing"]
    made = new_notification(rule, "fired", "a1", Reading(0.25, "5 of 20 attempts failed."), 0.0)
    assert made.title == "Firing: failing (checkout)"
    assert made.summary == "Failed attempts: 25 %, threshold 20 % in the last 10 min. 5 of 20 attempts failed."
    assert Notification.from_json(made.to_json()) == made
    assert made.id == "a1-fired"


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90 s"), (600, "10 min"), (7_200, "2 h"), (86_400, "1 d"), (0.5, "0.5 s")]
)
def test_spans(seconds: float, text: str) -> None:
    """A duration is shown in its largest unit that divides it."""
    assert format_span(seconds) == text
