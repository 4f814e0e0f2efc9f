"""Schemas of the alert routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, StrictNumber

MetricName = Literal["failure_rate", "unrecovered", "cost", "stuck", "parked", "dead_workers", "unanswered"]
SeverityName = Literal["critical", "error", "warning", "info"]


class AlertScopeOut(ApiModel):
    """State of a rule in one crew."""

    scope: str
    state: Literal["ok", "firing"]
    since: float | None
    fired_at: float | None
    alert: str


class AlertRuleOut(ApiModel):
    """A rule with its settings, its state, and its value now; null if it is not known.

    `coolingUntil` is set if the value is over the threshold but the cooldown holds the alert back: it may fire again then.
    """

    name: str
    when: MetricName
    threshold: float
    window: float
    cooldown: float
    minimum: int
    project: str | None
    severity: SeverityName
    channels: list[str]
    state: Literal["ok", "firing"]
    since: float | None
    fired_at: float | None
    alert: str
    cooling_until: float | None
    silenced_until: float | None
    value: float | None
    detail: str
    scopes: list[AlertScopeOut]


class AlertChannelOut(ApiModel):
    """A channel, without its address."""

    name: str
    type: Literal["slack", "teams", "pagerduty", "webhook", "command"]
    resolved: bool


class UntrustedAlertsOut(ApiModel):
    """A settings file whose alerts are off because it is not trusted, and the command that trusts it."""

    path: str
    decision: Literal["denied", "undecided"]
    command: str


class AlertsOut(ApiModel):
    """The rules and channels of the service's settings file. `untrusted` is set if the file has alerts that are off."""

    rules: list[AlertRuleOut]
    channels: list[AlertChannelOut]
    untrusted: UntrustedAlertsOut | None


class AlertDeliveryOut(ApiModel):
    """What became of a notification to one channel."""

    channel: str
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    at: float | None = None
    error: str = ""


class AlertEntryOut(ApiModel):
    """A change of an alert, or a test."""

    v: int
    id: str
    alert: str
    event: Literal["fired", "resolved", "test"]
    rule: str
    when: MetricName
    severity: SeverityName
    value: float | None
    threshold: float
    window: float
    at: float
    project: str | None
    scope: str
    detail: str
    url: str
    title: str
    summary: str
    link: str
    silenced: bool
    deliveries: list[AlertDeliveryOut]


class AlertHistoryOut(ApiModel):
    """What fired and was resolved, the newest first."""

    entries: list[AlertEntryOut]


class AlertTestOut(ApiModel):
    """Why each channel did not accept a test; empty where it did."""

    errors: dict[str, str]


class AlertSilenceIn(ApiModel):
    """How long the notifications of a rule are held back; 0 ends a silence."""

    minutes: Annotated[StrictNumber, Field(ge=0, le=10_080)]


class AlertSilenceOut(ApiModel):
    """Until when the notifications of a rule are held back."""

    silenced_until: float
