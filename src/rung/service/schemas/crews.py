"""Schemas of the crew routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel
from rung.service.schemas.incidents import TimelineEntry

TaskAction = Literal["tell", "fix", "approve", "reject", "reset", "exit"]


class CoordinatorOut(ApiModel):
    """Status of a crew's conductor or watchdog."""

    state: str
    heartbeat_at: float | None
    stale: bool


class PoolOut(ApiModel):
    """A closed pool: its tasks wait for an account or a model until it is probed, or until a person opens it."""

    name: str
    state: Literal["parked", "backing_off", "blocked"]
    reason: str
    since: float | None
    parked_until: float | None
    next_probe: float | None
    probe: str


class CrewOut(ApiModel):
    """A crew: its conductor and watchdog, task counts by state, why dispatch is paused, if it is, and closed pools."""

    name: str
    place: str
    trouble: str
    conductor: CoordinatorOut | None
    watchdog: CoordinatorOut | None
    counts: dict[str, int]
    tasks: int
    for_person: int
    facts: dict[str, str]
    pools: list[PoolOut]


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
    warnings: int
    redispatches: int
    needs_person: bool
    note: str
    version: str


class TaskPage(ApiModel):
    """A page of tasks, those that need a person first."""

    items: list[TaskOut]
    next_cursor: str | None


class CrewMessage(ApiModel):
    """A message about a task."""

    id: int
    sender: str
    kind: str
    text: str
    at: float | None


class WorkerProcessOut(ApiModel):
    """A worker process launched for a task."""

    session: str
    launched_at: float | None
    ended_at: float | None
    exit_code: int | None
    command: list[str]


class TaskDetail(TaskOut):
    """A task with its messages, worker processes and recovery timeline."""

    instruction_path: str
    depends_on: list[str]
    writes: list[str]
    workdir: str
    session: str
    generation: int
    checkpoint: int | None
    review_cycles: int
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
    """A message from the operator to a task's worker."""

    words: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*\S[^\x00]*$")]


class WakeCrewIn(ApiModel):
    """Request to open a pool, or all closed pools of a crew."""

    pool: Annotated[str, Field(max_length=100, pattern=r"^[^\x00]*$")] = ""


class StopIn(ApiModel):
    """Stop request for a crew; with handOver, only the conductor stops and another takes over."""

    why: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = "a person asked"
    hand_over: Annotated[bool, Field(strict=True)] = False
