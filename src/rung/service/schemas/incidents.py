"""Schemas of the incident routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, ShortText

if TYPE_CHECKING:
    from rung.service.incident_status import NextAttempt


class ScheduledRetry(ApiModel):
    """The next scheduled attempt of a recovery: its number among the tries of its rung, their maximum, and its time.

    `isProbe`: the recovery waits for a failing service, and the attempt looks whether it is back; waits are not limited in number.
    """

    attempt: int
    of: int | None
    until: float
    is_probe: bool

    @classmethod
    def of_attempt(cls, scheduled: NextAttempt | None) -> ScheduledRetry | None:
        """Return the scheduled attempt as the API shows it."""
        return None if scheduled is None else cls(**scheduled._asdict())


class IncidentOut(ApiModel):
    """One incident: the recovery of one request."""

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
    parked_until: float | None


class IncidentPage(ApiModel):
    """A page of incidents."""

    items: list[IncidentOut]
    next_cursor: str | None
    total: int


class RungOut(ApiModel):
    """A rung of an incident's ladder, with its tries, time and cost, and why it was skipped."""

    name: str
    action: str
    about: str
    tries: int | None
    seconds: float | None
    state: Literal["ahead", "skipped", "climbed", "here"]
    skipped: str
    used: int
    took: float
    dollars: float


class TimelineEntry(ApiModel):
    """One event of the timeline, as text."""

    n: int
    at: float
    name: str
    mark: str
    subject: str
    text: str
    more: list[str]


class FieldChange(ApiModel):
    """A request field changed by a rung."""

    n: int
    at: float
    field: str
    before: str
    after: str


class AskOption(ApiModel):
    """An option that answers a question."""

    id: str
    label: str


class AskOut(ApiModel):
    """A question that waits for a person. `note` says that its process is gone, and what continues it."""

    incident: str
    n: int
    at: float
    project: str
    question: str
    options: list[AskOption]
    estimate: float | None
    note: str = ""


class IncidentDetail(IncidentOut):
    """An incident with its ladder, timeline, request changes and outcome."""

    rungs: list[RungOut]
    timeline: list[TimelineEntry]
    changes: list[FieldChange]
    outcome: dict[str, Any]
    levels: list[dict[str, Any]]
    ask: AskOut | None
    retry: ScheduledRetry | None
    result: str | None


class WakeIn(ApiModel):
    """How a parked recovery goes on: on its model, or on another one."""

    model: ShortText | None = None


class AnswerIn(ApiModel):
    """The option a person chose."""

    option: ShortText
    note: Annotated[str, Field(max_length=2_000)] = ""
