"""Schemas of the incident routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, ShortText


class ScheduledRetry(ApiModel):
    """What a waiting recovery waits for: which attempt comes next, of how many, and when."""

    attempt: int
    of: int | None
    until: float


class IncidentOut(ApiModel):
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


class IncidentPage(ApiModel):
    """A page of incidents."""

    items: list[IncidentOut]
    next_cursor: str | None
    total: int


class RungOut(ApiModel):
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


class TimelineEntry(ApiModel):
    """One event, told."""

    n: int
    at: float
    name: str
    mark: str
    subject: str
    text: str
    more: list[str]


class FieldChange(ApiModel):
    """What a rung changed in the request."""

    n: int
    at: float
    field: str
    before: str
    after: str


class AskOption(ApiModel):
    """An answer that can be given."""

    id: str
    label: str


class AskOut(ApiModel):
    """A question that waits for a person."""

    incident: str
    n: int
    at: float
    project: str
    question: str
    options: list[AskOption]
    estimate: float | None


class IncidentDetail(IncidentOut):
    """An incident, whole."""

    rungs: list[RungOut]
    timeline: list[TimelineEntry]
    changes: list[FieldChange]
    outcome: dict[str, Any]
    ask: AskOut | None
    retry: ScheduledRetry | None
    result: str | None


class AnswerIn(ApiModel):
    """The chosen option."""

    option: ShortText
    note: Annotated[str, Field(max_length=2_000)] = ""
