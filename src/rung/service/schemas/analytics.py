"""Schemas of the analytics and failure-group routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.core.classify.error_types import ErrorType
from rung.service.schemas.base import ApiModel, StrictNumber


class MessageCount(ApiModel):
    """An error message and its number of occurrences in all projects.

    `project` is the one with most of them, and `state` that of the group there.
    """

    message: str
    count: int
    kind: str
    project: str
    projects: list[str]
    fingerprint: str
    first_at: float
    last_at: float
    example: str
    state: str


class DailyFailureRate(ApiModel):
    """Attempts and failures of one day."""

    day: str
    at: float
    attempts: int
    failures: int
    rate: float


class FailureRate(ApiModel):
    """Failure rate of one group: a kind, a model, a project, a day and so on."""

    key: str
    attempts: int
    failures: int
    rate: float
    dollars: float


class FailureAnalytics(ApiModel):
    """Failure counts and rates, with the most frequent error messages. Days are dates in UTC."""

    total_failures: int
    total_attempts: int
    failure_rate: float
    by_error_type: dict[ErrorType, int]
    by_kind: dict[str, int]
    by_model: dict[str, int]
    top_error_messages: list[MessageCount]
    failure_rate_by_day: dict[str, float]
    days: list[DailyFailureRate]
    by: str
    rates: list[FailureRate]


class RecoveryStats(ApiModel):
    """Outcomes of the incidents whose first failure has this kind."""

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
    """Recoveries by a rung, prompt or model, with their time and cost."""

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
    """One figure on one day."""

    at: float
    value: float | None


class KpiTile(ApiModel):
    """One success figure, with its definition, goal and daily trend.

    `share` is `numerator` by `denominator`; `of` is the denominator. The goal of `manualInterventions` is one of `reduction`:
    by how much the restarts per session fell below those of the period of the same length before.
    """

    id: Literal["autoRecovered", "manualInterventions", "stuckEscalated", "meanTimeToRecovery"]
    value: float | None
    goal: float | None
    of: int
    numerator: float
    denominator: int
    share: float | None
    per_hundred_sessions: float | None
    before: int | None
    before_sessions: int | None
    reduction: float | None
    is_met: bool | None
    definition: str
    trend: list[DailyValue]


class FailureGroupOut(ApiModel):
    """A group of failures with the same fingerprint."""

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
    """How long to mute a failure group."""

    hours: Annotated[StrictNumber, Field(gt=0, le=8_760)] = 24.0
