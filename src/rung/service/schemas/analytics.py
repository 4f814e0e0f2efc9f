"""Schemas of the analytics and failure-group routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, StrictNumber


class MessageCount(ApiModel):
    """A message and how often it came."""

    message: str
    count: int
    kind: str
    project: str
    fingerprint: str
    first_at: float
    last_at: float
    example: str
    state: str


class DailyFailureRate(ApiModel):
    """One day: failures, and of how many attempts."""

    day: str
    at: float
    attempts: int
    failures: int
    rate: float


class FailureRate(ApiModel):
    """Failures by something, with the attempts they are a share of."""

    key: str
    attempts: int
    failures: int
    rate: float
    dollars: float


class FailureAnalytics(ApiModel):
    """What fails, how often, and of how many."""

    total_failures: int
    total_attempts: int
    failure_rate: float
    by_error_type: dict[str, int]
    by_model: dict[str, int]
    top_error_messages: list[MessageCount]
    failure_rate_by_day: list[DailyFailureRate]
    by: str
    rates: list[FailureRate]


class RecoveryStats(ApiModel):
    """How incidents of a kind ended."""

    kind: str
    incidents: int
    recovered: int
    partial: int
    blocked: int
    failed: int
    rate: float
    mean_seconds: float | None
    dollars: float
    asks: int
    escalations: int


class RungEffectOut(ApiModel):
    """What a rung, prompt or model saved, at what price."""

    rung: str
    prompt: str
    model: str
    kind: str
    tried: int
    saved: int
    seconds: float
    dollars: float
    mean_seconds: float | None = None


class DailyValue(ApiModel):
    """A figure on one day."""

    at: float
    value: float | None


class KpiTile(ApiModel):
    """One figure of success, with its goal and its trend by day."""

    id: Literal["autoRecovered", "manualInterventions", "stuckEscalated", "meanTimeToRecovery"]
    value: float | None
    goal: float | None
    of: int
    trend: list[DailyValue]


class FailureGroupOut(ApiModel):
    """Failures that are the same trouble."""

    project: str
    fingerprint: str
    kind: str
    message: str
    example: str
    first_at: float
    last_at: float
    seen: int
    state: str
    until: float | None
    trend: list[int]


class SnoozeIn(ApiModel):
    """How long nobody wants to hear of it."""

    hours: Annotated[StrictNumber, Field(gt=0, le=8_760)] = 24.0
