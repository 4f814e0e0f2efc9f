"""Schemas of the crew routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel
from rung.service.schemas.incidents import TimelineEntry

TaskAction = Literal["tell", "fix", "approve", "reject", "reset", "exit"]


class CoordinatorOut(ApiModel):
    """The conductor or its watchdog."""

    state: str
    heartbeat_at: float | None
    stale: bool


class CrewOut(ApiModel):
    """A crew: who leads it, how many tasks are where, and why nothing is given out if that is so."""

    name: str
    place: str
    trouble: str
    conductor: CoordinatorOut | None
    watchdog: CoordinatorOut | None
    counts: dict[str, int]
    tasks: int
    for_person: int
    facts: dict[str, str]


class TaskOut(ApiModel):
    """A task of a crew."""

    crew: str
    id: str
    title: str
    state: str
    outcome: str
    worker: str
    heartbeat_at: float | None
    stale: bool
    progress: str
    error_tries: int
    redispatches: int
    needs_person: bool
    note: str
    version: str


class TaskPage(ApiModel):
    """Tasks, those that need a person first."""

    items: list[TaskOut]
    next_cursor: str | None


class CrewMessage(ApiModel):
    """What somebody said about a task."""

    id: int
    sender: str
    kind: str
    text: str
    at: float | None


class WorkerProcessOut(ApiModel):
    """A process that was started for a task."""

    session: str
    launched_at: float | None
    ended_at: float | None
    exit_code: int | None
    command: list[str]


class TaskDetail(TaskOut):
    """A task, whole."""

    instruction_path: str
    depends_on: list[str]
    writes: list[str]
    workdir: str
    session: str
    generation: int
    checkpoint: int | None
    review_cycles: int
    warnings: int
    last_error: str
    report_path: str
    started_at: float | None
    completed_at: float | None
    incident: str | None
    can: list[TaskAction]
    messages: list[CrewMessage]
    workers: list[WorkerProcessOut]
    story: list[TimelineEntry]


class OperatorMessageIn(ApiModel):
    """What a person says."""

    words: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*\S[^\x00]*$")]


class StopIn(ApiModel):
    """Why a crew is to end; handed over, another conductor goes on with it."""

    why: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = "a person asked"
    hand_over: Annotated[bool, Field(strict=True)] = False
