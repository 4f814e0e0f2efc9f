"""The names on the wire: camelCase, seconds and UTC seconds, checked strictly. The OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """What is sent and taken; a field that does not exist is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", allow_inf_nan=False)


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 3.0 is 3; but true is none, and neither is a text."""
    if isinstance(value, bool | str):
        raise ValueError("a whole number is wanted")  # noqa: TRY004  # pydantic's way
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("a number is wanted")  # noqa: TRY004  # pydantic's way
    return value


Whole = Annotated[int, BeforeValidator(_whole), WithJsonSchema({"type": "integer"})]
Number = Annotated[float, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
Text = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=200_000)]
SessionStatus = Literal[
    "running", "retrying", "waiting", "succeeded", "recovered", "partial", "blocked", "failed", "open", ""
]


# -- policies -----------------------------------------------------------------------------------------


class PolicyIn(Wire):
    """A policy as it is set. The short names are for the commonest settings; `settings` takes all of ours."""

    name: Text | None = None
    max_retries: Annotated[Whole, Field(ge=0, le=1_000)] | None = None
    backoff_base: Annotated[Number, Field(ge=0, le=86_400)] | None = None
    backoff_multiplier: Annotated[Number, Field(ge=1, le=1_000)] | None = None
    max_backoff: Annotated[Number, Field(ge=0, le=86_400)] | None = None
    retryable_errors: Annotated[list[Text], Field(max_length=100)] | None = None
    auto_escalate: Annotated[bool, Field(strict=True)] | None = None
    escalate_after_retries: Annotated[Whole, Field(ge=0, le=1_000)] | None = None
    settings: dict[str, Any] | None = None
    toml: LongText | None = None


class PolicyOut(Wire):
    """A policy in force."""

    id: str
    name: str
    max_retries: int
    backoff_base: float
    backoff_multiplier: float
    max_backoff: float
    retryable_errors: list[str]
    auto_escalate: bool
    escalate_after_retries: int
    ladder: str
    version: int
    settings: dict[str, Any]
    toml: str
    worst_attempts: int | None
    worst_seconds: float | None
    worst_dollars: float | None
    waits: list[float]


class Value(Wire):
    """A value in force, and where it comes from."""

    key: str
    value: Any
    origin: Literal["preset", "file", "service", "project file", "project"]


class EffectivePolicy(Wire):
    """What holds for a project."""

    project: str
    policy: PolicyOut
    values: list[Value]


class Template(Wire):
    """A policy to begin with."""

    id: str
    about: str
    policy: PolicyOut


class ProjectPolicy(Wire):
    """A project that has settings of its own."""

    project: str
    version: int
    at: float
    who: str


class Valid(Wire):
    """What is wrong with a policy, if anything."""

    valid: bool
    field: str | None = None
    message: str = ""
    policy: PolicyOut | None = None


class BacktestIn(Wire):
    """What would this policy have done?"""

    policy: PolicyIn
    project: Text | None = None
    since: Number | None = None


class Differing(Wire):
    """One incident that would have gone otherwise."""

    incident: str
    words: str
    was: str


class BacktestOut(Wire):
    """What would have been different, and what cannot be known."""

    incidents: int
    same: int
    fewer: int
    otherwise: int
    unknown: int
    good_lost: int
    attempts_saved: int
    seconds_saved: float
    dollars_saved: float
    differing: list[Differing]
    cannot_know: list[str]


# -- sessions and incidents ---------------------------------------------------------------------------


class LastFailure(Wire):
    """The failure a session last met."""

    kind: str
    message: str
    rule: str


class Retry(Wire):
    """What a waiting recovery waits for: which attempt comes next, of how many, and when."""

    attempt: int
    of: int | None
    until: float


class SessionOut(Wire):
    """One agent's session."""

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
    retry: Retry | None


class SessionPage(Wire):
    """A page of sessions."""

    items: list[SessionOut]
    next_cursor: str | None
    total: int


class AttemptOut(Wire):
    """One attempt of a session."""

    incident: str
    attempt_number: int
    error: str
    error_message: str
    timestamp: float
    delay_ms: float
    succeeded: bool
    seconds: float
    dollars: float
    model: str
    rung: str
    prompt: str
    rule: str


class Escalation(Wire):
    """A change of model."""

    from_model: str
    to_model: str
    reason: str
    timestamp: float
    cost_estimate: float | None
    cost: float | None
    by: str


class IncidentOut(Wire):
    """One recovery."""

    id: str
    project: str
    session: str
    agent: str
    model: str
    first_model: str
    ladder: str
    policy: str
    status: str
    reason: str
    opened_at: float
    ended_at: float | None
    attempts: int
    failures: int
    dollars: float
    rung: str
    kind: str
    fingerprint: str
    message: str
    parent: str


class IncidentPage(Wire):
    """A page of incidents."""

    items: list[IncidentOut]
    next_cursor: str | None
    total: int


class SpentOn(Wire):
    """What a model cost in a session."""

    model: str
    attempts: int
    dollars: float


class SessionDetail(SessionOut):
    """A session, whole."""

    attempts_made: list[AttemptOut]
    recoveries: list[IncidentOut]
    model_changes: list[Escalation]
    cost: list[SpentOn]


class RungOut(Wire):
    """A rung of an incident's ladder, and what was done on it."""

    name: str
    action: str
    about: str
    tries: int | None
    seconds: float | None
    state: Literal["ahead", "skipped", "climbed", "here"]
    used: int
    took: float
    dollars: float


class Moment(Wire):
    """One event, told."""

    n: int
    at: float
    name: str
    mark: str
    subject: str
    text: str
    more: list[str]


class FieldChange(Wire):
    """What a rung changed in the request."""

    n: int
    at: float
    field: str
    before: str
    after: str


class Choice(Wire):
    """An answer that can be given."""

    id: str
    label: str


class AskOut(Wire):
    """A question that waits for a person."""

    incident: str
    n: int
    at: float
    project: str
    question: str
    options: list[Choice]
    estimate: float | None


class IncidentDetail(IncidentOut):
    """An incident, whole."""

    rungs: list[RungOut]
    timeline: list[Moment]
    changes: list[FieldChange]
    outcome: dict[str, Any]
    ask: AskOut | None
    retry: Retry | None
    result: str | None


# -- acts ---------------------------------------------------------------------------------------------


class RetryIn(Wire):
    """Try again: as it was, told of the error, on another model, or with a prompt of one's own."""

    mode: Literal["plain", "context", "model", "prompt"] = "plain"
    model: Text | None = None
    prompt: LongText | None = None


class Preview(Wire):
    """What would be sent."""

    incident: str
    prompt: str
    model: str
    models: list[str]
    characters: int
    possible: bool
    why_not: str


class Done(Wire):
    """What came of an act."""

    how: Literal["ordered", "replayed", "answered", "switched", "said"]
    incident: str | None = None
    note: str = ""


class EscalateIn(Wire):
    """To which model, or the token of the estimate that is confirmed."""

    to_model: Text | None = None
    confirm: Annotated[str, Field(max_length=500)] | None = None


class EscalateOut(Wire):
    """An estimate to confirm, or that it is done."""

    from_model: str
    to_model: str
    cost_estimate: float | None
    budget_left: float | None
    token: str | None
    done: bool
    note: str


class AnswerIn(Wire):
    """The chosen option."""

    option: Text
    note: Annotated[str, Field(max_length=2_000)] = ""


class SnoozeIn(Wire):
    """How long nobody wants to hear of it."""

    hours: Annotated[Number, Field(gt=0, le=8_760)] = 24.0


# -- analytics ----------------------------------------------------------------------------------------


class MessageCount(Wire):
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


class DayRate(Wire):
    """One day: failures, and of how many attempts."""

    day: str
    at: float
    attempts: int
    failures: int
    rate: float


class RateOut(Wire):
    """Failures by something, with the attempts they are a share of."""

    key: str
    attempts: int
    failures: int
    rate: float
    dollars: float


class FailureAnalytics(Wire):
    """What fails, how often, and of how many."""

    total_failures: int
    total_attempts: int
    failure_rate: float
    by_error_type: dict[str, int]
    by_model: dict[str, int]
    top_error_messages: list[MessageCount]
    failure_rate_by_day: list[DayRate]
    by: str
    rates: list[RateOut]


class RecoveryOut(Wire):
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


class RescueOut(Wire):
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


class Tile(Wire):
    """One figure of success, with its goal and its trend by day."""

    id: Literal["autoRecovered", "manualInterventions", "stuckEscalated", "meanTimeToRecovery"]
    value: float | None
    goal: float | None
    of: int
    trend: list[DayValue]


class DayValue(Wire):
    """A figure on one day."""

    at: float
    value: float | None


class GroupOut(Wire):
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


# -- budgets, inbox, the rest -------------------------------------------------------------------------


class BudgetsIn(Wire):
    """What may be spent, in US dollars: in a month by all, by each project, and by any one session."""

    monthly: Annotated[Number, Field(ge=0, le=1e9)] | None = None
    session: Annotated[Number, Field(ge=0, le=1e9)] | None = None
    projects: dict[str, Annotated[Number, Field(ge=0, le=1e9)]] = Field(default_factory=dict)


class BudgetOut(Wire):
    """One budget and what is spent of it."""

    id: str
    scope: Literal["month", "project", "session"]
    name: str
    limit: float
    spent: float
    share: float
    alert: int | None
    acknowledged: bool


class BudgetsOut(Wire):
    """The budgets."""

    monthly: float | None
    session: float | None
    projects: dict[str, float]
    version: int
    spent_this_month: float
    items: list[BudgetOut]


class InboxItem(Wire):
    """Something that waits for a person."""

    id: str
    kind: Literal["ask", "task", "blocked", "budget", "crash", "group"]
    at: float
    title: str
    detail: str
    project: str
    incident: str | None
    ask: AskOut | None
    task: str | None = None


class NotificationsIn(Wire):
    """Where to tell people what waits for them: a webhook that takes Slack's shape. Empty: nowhere."""

    webhook: Annotated[str, Field(max_length=2_000)] = ""


class Me(Wire):
    """Who asks, and what they may do."""

    name: str
    role: Literal["read", "act", "admin"]
    csrf: str
    version: str
    demo: bool
    journal: str
    trouble: str
    models: list[str]
    projects: list[str]


class LoginIn(Wire):
    """A token."""

    token: Annotated[str, Field(max_length=500)]


class AuditOut(Wire):
    """One act of a person."""

    seq: int
    at: float
    who: str
    action: str
    subject: str
    detail: dict[str, Any]


class TokenIn(Wire):
    """A token to be made."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: Literal["read", "act", "admin"]
    days: Annotated[Number, Field(gt=0, le=3_650)] | None = None


class TokenOut(Wire):
    """A token; the token itself only when it is made."""

    name: str
    role: str
    made_at: float
    ends_at: float | None
    token: str | None = None
