"""Schemas of the session routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.core.classify.error_types import ErrorType
from rung.core.recovery.escalation_reason import EscalationReason
from rung.service.schemas.base import ActionResult, ApiModel, LongText, ShortText
from rung.service.schemas.incidents import IncidentOut, ScheduledRetry

SessionStatus = Literal[
    "running", "retrying", "parked", "waiting", "succeeded", "recovered", "partial", "blocked", "failed", "open", ""
]


class LastFailure(ApiModel):
    """The last failure of a session."""

    kind: str
    message: str
    rule: str


class SessionOut(ApiModel):
    """One session of an agent."""

    id: str
    project: str
    agent: str
    model: str
    former_model: str
    status: SessionStatus
    began_at: float
    touched_at: float
    incidents: int
    attempts: int
    failures: int
    dollars: float
    last_failure: LastFailure | None
    retry: ScheduledRetry | None
    parked_until: float | None


class SessionPage(ApiModel):
    """A page of sessions."""

    items: list[SessionOut]
    next_cursor: str | None
    total: int


class AttemptOut(ApiModel):
    """One attempt of a session, with its end in ISO 8601.

    `error` is the type of a failure, `kind` its finer kind. `delayMs` is the pause after this attempt, before the next one.
    """

    incident: str
    attempt_number: int
    error: ErrorType | None
    error_message: str
    timestamp: str
    delay_ms: float
    succeeded: bool
    kind: str
    seconds: float
    dollars: float
    model: str
    rung: str
    prompt: str
    rule: str


class ModelChange(ApiModel):
    """A model change in a session, with its time in ISO 8601. `cause` is the reason in the words of the decision."""

    from_model: str
    to_model: str
    reason: EscalationReason
    cause: str
    timestamp: str
    cost_estimate: float | None
    cost: float | None
    by: str


class ModelCost(ApiModel):
    """Attempts and cost of one model in a session."""

    model: str
    attempts: int
    dollars: float


class FollowUpOut(ApiModel):
    """A later failure, and what links it to the root cause or to an earlier follow-up."""

    step: int
    link: str
    where: str


class RootCauseOut(ApiModel):
    """The step that first went wrong; null if no single cause is certain. Steps are numbered through the session."""

    step: int | None
    kind: str | None
    sentence: str
    chain: list[FollowUpOut]
    confidence: float
    where: str


class SessionDetail(SessionOut):
    """A session with its attempts, recoveries, model changes and costs; `rootCause` is null if nothing failed.

    `cacheShare`: the part of its input tokens that came from the provider's cache, 0 to 1; null: none are recorded.
    """

    attempts_made: list[AttemptOut]
    recoveries: list[IncidentOut]
    model_changes: list[ModelChange]
    cost: list[ModelCost]
    cache_share: float | None
    root_cause: RootCauseOut | None


class RetryIn(ApiModel):
    """A manual retry: unchanged, with the error in the prompt, on another model, or with a new prompt."""

    mode: Literal["plain", "context", "model", "prompt"] = "plain"
    model: ShortText | None = None
    prompt: LongText | None = None
    api_key: Annotated[str, Field(max_length=1_000)] | None = None  # used once, never stored in clear
    confirm: Annotated[str, Field(max_length=500)] | None = None


class RetryOut(ActionResult):
    """A retry that was made or ordered, or an estimate to confirm. Costs are US dollars of one call; null: unknown."""

    from_model: str
    to_model: str
    cost_estimate: float | None
    cost_difference: float | None
    estimate_basis: str
    budget_left: float | None
    token: str | None = None


class RetryPreview(ApiModel):
    """The request that a retry with error context would send."""

    incident: str
    prompt: str
    model: str
    models: list[str]
    characters: int
    possible: bool
    why_not: str
    needs: list[str]
    cost_estimate: float | None
    cost_difference: float | None
    estimate_basis: str
    budget_left: float | None


class EscalateIn(ApiModel):
    """The target model, or the token that confirms an estimate."""

    to_model: ShortText | None = None
    confirm: Annotated[str, Field(max_length=500)] | None = None


class EscalateOut(ApiModel):
    """A cost estimate to confirm, or the confirmation of the change. Costs are US dollars of one call; null: unknown."""

    from_model: str
    to_model: str
    cost_estimate: float | None
    cost_difference: float | None
    estimate_basis: str
    budget_left: float | None
    token: str | None
    done: bool
    note: str
