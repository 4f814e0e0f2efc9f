"""Rows of the reports. Every number of failures comes with its number of attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rung.store.queries.groups import GroupState


class Rate(NamedTuple):
    """Attempts and failures of one key."""

    key: str
    attempts: int
    failures: int
    dollars: float  # of the attempts; by kind or tool, of the failures

    @property
    def rate(self) -> float:
        """Share of failed attempts, 0 to 1."""
        return self.failures / self.attempts if self.attempts else 0.0


class TrendPoint(NamedTuple):
    """Attempts and failures of one hour or day; `at` is its start."""

    at: float
    attempts: int
    failures: int


class MessageCountRow(NamedTuple):
    """Failure and its occurrences in all projects; `seen` and `share` refer to the time range."""

    project: str  # with most of the occurrences; `example` and `state` are of its group
    fingerprint: str
    kind: str
    message: str
    seen: int
    share: float  # of all failures in the time range
    first_at: float
    last_at: float
    example: str
    state: GroupState
    projects: tuple[str, ...]  # most occurrences first


class Recovery(NamedTuple):
    """Endings of the incidents whose first failure has this kind."""

    kind: str
    incidents: int
    recovered: int
    partial: int
    blocked: int
    failed: int
    mean_seconds: float | None  # from the first failure to the recovery; None without recoveries
    dollars: float
    asks: int
    escalations: int

    @property
    def rate(self) -> float:
        """Share of recovered incidents, 0 to 1."""
        return self.recovered / self.incidents if self.incidents else 0.0


class RungTime(NamedTuple):
    """Successes of a rung and its mean recovery time; `looked_at` is the number of recoveries in the mean."""

    rung: str
    tried: int
    saved: int
    mean_seconds: float | None
    looked_at: int


class RungEffect(NamedTuple):
    """Tries, successes and cost of a rung, prompt and model; a field that is not grouped by is empty."""

    rung: str
    prompt: str
    model: str
    kind: str
    tried: int
    saved: int
    seconds: float
    dollars: float

    @property
    def dollars_each(self) -> float | None:
        """Cost per success, including failed tries; None without successes."""
        return self.dollars / self.saved if self.saved else None


class Latency(NamedTuple):
    """Latency percentiles of a model's attempts in seconds, accurate to 9 %."""

    model: str
    attempts: int
    p50: float
    p95: float
    p99: float


class StuckSession(NamedTuple):
    """Session stuck in recovery. `score`: percentage of attempts that repeated the same failure."""

    session: str
    project: str
    fingerprint: str
    kind: str
    message: str
    repeats: int
    failures: int
    attempts: int
    seconds: float  # spent on the repeated failure
    dollars: float
    first_at: float
    last_at: float
    score: float


class Totals(NamedTuple):
    """Totals of the time range. An incident is troubled when it has a failure."""

    attempts: int
    failures: int
    dollars: float
    incidents: int
    troubled: int
    recovered: int
    auto_recovered: int  # without asking an operator
    partial: int
    blocked: int
    failed: int
    asks: int  # questions
    asked: int  # incidents with a question
    escalations: int  # changes to another model or agent
    escalated: int  # incidents with an escalation
    mean_seconds: float | None
