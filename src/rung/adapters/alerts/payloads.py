"""Notifications in the formats of the services that channels name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.alerts.notifications import FIRED, RESOLVED, TEST, format_span, format_time, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.alerts.notifications import Notification

SOURCE: Final = "rung"
_MAX_HEADER_CHARS: Final = 150  # of Slack
_MAX_SECTION_CHARS: Final = 3_000  # of Slack
_MAX_SUMMARY_CHARS: Final = 1_024  # of PagerDuty
_COLORS: Final[Mapping[str, str]] = {FIRED: "attention", RESOLVED: "good", TEST: "accent"}  # of Adaptive Cards
_EMOJI: Final[Mapping[str, str]] = {FIRED: ":rotating_light:", RESOLVED: ":white_check_mark:", TEST: ":wave:"}


def facts(made: Notification) -> dict[str, str]:
    """Return the facts of a notification as names and texts."""
    found = {
        "Rule": made.rule,
        "Severity": made.severity,
        "Value": "unknown" if made.value is None else format_value(made.when, made.value),
        "Threshold": format_value(made.when, made.threshold),
        "Window": format_span(made.window),
        "Project": made.project if made.project is not None else "all",
        "Time": format_time(made.at),
    }
    return {**found, "Crew": made.scope.removeprefix("crew:")} if made.scope else found


def slack(made: Notification) -> dict[str, Any]:
    """Return the body for an incoming webhook of Slack: blocks, and a text for clients without them."""
    section = f"{_EMOJI[made.event]} {_slack_text(made.summary)}"
    if made.url:
        section += f"\n<{made.link}|Open the rule in the dashboard>"
    details = "  ·  ".join(f"{name}: {_slack_text(text)}" for name, text in facts(made).items())
    return {
        "text": f"{_slack_text(made.title)}: {_slack_text(made.summary)}",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": made.title[:_MAX_HEADER_CHARS]}},
            {"type": "section", "text": {"type": "mrkdwn", "text": section[:_MAX_SECTION_CHARS]}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": details[:_MAX_SECTION_CHARS]}]},
        ],
    }


def _slack_text(text: str) -> str:
    """Escape the three characters that Slack reads as control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def teams(made: Notification) -> dict[str, Any]:
    """Return the body for a webhook of Teams Workflows: a message with one Adaptive Card."""
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {
                "type": "TextBlock",
                "text": _plain(made.title),
                "size": "large",
                "weight": "bolder",
                "color": _COLORS[made.event],
                "wrap": True,
            },
            {"type": "TextBlock", "text": _plain(made.summary), "wrap": True},
            {
                "type": "FactSet",
                "facts": [{"title": name, "value": _plain(text)} for name, text in facts(made).items()],
            },
        ],
    }
    if made.url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the rule in the dashboard", "url": made.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _plain(text: str) -> str:
    """Escape what Adaptive Cards read as Markdown: links, emphasis and lists."""
    return "".join(f"\\{char}" if char in "\\[]()*_`#" else char for char in text)


def pagerduty(made: Notification, key: str) -> dict[str, Any]:
    """Return an event of PagerDuty's Events API v2; both events of an alert have its id as `dedup_key`."""
    event = {"routing_key": key, "dedup_key": made.alert}
    if made.event == RESOLVED:
        return {**event, "event_action": "resolve"}
    body: dict[str, Any] = {
        **event,
        "event_action": "trigger",
        "client": "Rung",
        "payload": {
            "summary": f"{made.title}: {made.summary}"[:_MAX_SUMMARY_CHARS],
            "source": made.scope or SOURCE,
            "severity": "info" if made.event == TEST else made.severity,
            "timestamp": format_time(made.at),
            "component": made.project or SOURCE,
            "class": made.when,
            "custom_details": made.to_json(),
        },
    }
    return {**body, "client_url": made.link} if made.url else body
