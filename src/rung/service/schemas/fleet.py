"""Schemas of the fleet route."""

from __future__ import annotations

from rung.service.schemas.base import ApiModel


class ExecutorOut(ApiModel):
    """One process of the fleet. `age`: seconds since its heartbeat; `runs` and `requests`: what it has in hand."""

    id: str
    role: str
    host: str
    pid: int
    version: str
    engine: str
    state: str
    health: str
    started_at: float
    heartbeat: float
    lease: float
    age: float
    runs: int
    requests: int
    queues: list[str]


class OpenRunsOut(ApiModel):
    """Open runs of a task with one owner; without one, `host` and `executor` are empty. `task` is empty for recoveries."""

    task: str
    host: str
    pid: int
    executor: str
    open: int
    oldest_at: float


class ExpiringLeaseOut(ApiModel):
    """Lease of a run that its owner has not renewed in time; expired if `expiresIn` is negative."""

    run: str
    task: str
    host: str
    pid: int
    expires_in: float


class QueueOut(ApiModel):
    """Runs that wait for a worker; `lag`: since how many seconds the oldest does."""

    engine: str
    name: str
    waiting: int
    lag: float


class VersionCountOut(ApiModel):
    """Number of executors of a version that are not dead."""

    version: str
    executors: int


class SharedLimitOut(ApiModel):
    """A limit that the processes share: what was used of it, and what is out in slices."""

    fleet: str
    name: str
    used: float
    out: float
    holders: int


class FleetOut(ApiModel):
    """The processes that share this journal, as of `at` on the database's clock."""

    at: float
    executors: list[ExecutorOut]
    runs: list[OpenRunsOut]
    leases: list[ExpiringLeaseOut]
    queues: list[QueueOut]
    versions: list[VersionCountOut]
    limits: list[SharedLimitOut]
