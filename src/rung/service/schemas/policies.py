"""Schemas of the policy routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rung.core.classify.error_types import ErrorType
from rung.service.schemas.base import ApiModel, LongText, ShortText, StrictInteger, StrictNumber


class PolicyIn(ApiModel):
    """A policy to store: named fields for the most common settings; `settings` or `toml` for all of them.

    What a GET returned may be sent back as it is. `version` names the version that is replaced. `retryableKinds`, the worst
    case and `waits` are computed: they are ignored.
    """

    id: ShortText | None = None
    name: ShortText | None = None
    max_retries: Annotated[StrictInteger, Field(ge=0, le=1_000)] | None = None
    backoff_base: Annotated[StrictNumber, Field(ge=0, le=86_400)] | None = None
    backoff_multiplier: Annotated[StrictNumber, Field(ge=1, le=1_000)] | None = None
    max_backoff: Annotated[StrictNumber, Field(ge=0, le=86_400)] | None = None
    retryable_errors: Annotated[list[ShortText], Field(max_length=100)] | None = None
    auto_escalate: Annotated[bool, Field(strict=True)] | None = None
    escalate_after_retries: Annotated[StrictInteger, Field(ge=0, le=1_000)] | None = None
    jitter: Annotated[bool, Field(strict=True)] | None = None
    attempt_seconds: Annotated[StrictNumber, Field(gt=0, le=86_400)] | None = None
    settings: dict[str, Any] | None = None
    toml: LongText | None = None
    ladder: ShortText | None = None
    version: Annotated[StrictInteger, Field(ge=0, le=999_999_999)] | None = None
    retryable_kinds: Annotated[list[ShortText], Field(max_length=100)] | None = None
    worst_attempts: StrictInteger | None = None
    worst_seconds: StrictNumber | None = None
    worst_dollars: StrictNumber | None = None
    waits: Annotated[list[StrictNumber], Field(max_length=100)] | None = None


class PolicyOut(ApiModel):
    """An effective policy. `retryableErrors` holds error types, `retryableKinds` the kinds that they cover and others.

    `waits` are the longest waits before each retry. With `jitter`, a wait is a random part of it, so that calls that failed
    together do not come back together; without, exactly that.
    """

    id: str
    name: str
    max_retries: int
    backoff_base: float
    backoff_multiplier: float
    max_backoff: float
    retryable_errors: list[ErrorType]
    auto_escalate: bool
    escalate_after_retries: int
    jitter: bool
    attempt_seconds: float | None
    retryable_kinds: list[str]
    ladder: str
    version: int
    settings: dict[str, Any]
    toml: str
    worst_attempts: int | None
    worst_seconds: float | None
    worst_dollars: float | None
    waits: list[float]


class PolicyValue(ApiModel):
    """An effective value and the layer that sets it."""

    key: str
    value: Any
    origin: Literal["preset", "file", "service", "project file", "project"]


class EffectivePolicy(ApiModel):
    """The effective policy of a project, with the origin of each value."""

    project: str
    policy: PolicyOut
    values: list[PolicyValue]


class PolicyTemplate(ApiModel):
    """A policy template."""

    id: str
    about: str
    policy: PolicyOut


class ProjectPolicy(ApiModel):
    """A project with its own policy settings."""

    project: str
    version: int
    at: float
    who: str


class PolicyValidation(ApiModel):
    """Result of a policy validation."""

    valid: bool
    field: str | None = None
    message: str = ""
    policy: PolicyOut | None = None


class BacktestIn(ApiModel):
    """A policy to replay against recorded incidents."""

    policy: PolicyIn
    project: ShortText | None = None
    since: StrictNumber | None = None


class BacktestDifference(ApiModel):
    """One incident in which the policy would have decided differently."""

    incident: str
    words: str
    was: str


class BacktestOut(ApiModel):
    """Differences between the recorded decisions and the policy's, and the limits of the comparison."""

    incidents: int
    same: int
    fewer: int
    otherwise: int
    unknown: int
    good_lost: int
    attempts_saved: int
    seconds_saved: float
    dollars_saved: float
    differing: list[BacktestDifference]
    cannot_know: list[str]
