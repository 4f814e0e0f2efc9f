"""The rows of the reports. Every count of failures has its attempts beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rung.store.queries.groups import GroupState


class Rate(NamedTuple):
    """How often something failed, of how many attempts."""

    key: str
    attempts: int
    failures: int
    dollars: float  # of the attempts; where they are counted by kind or tool, of the failures

    @property
    def rate(self) -> float:
        """Failures among the attempts, 0 to 1."""
        return self.failures / self.attempts if self.attempts else 0.0


class TrendPoint(NamedTuple):
    """One hour or day: when it began, and what was counted in it."""

    at: float
    attempts: int
    failures: int


class MessageCountRow(NamedTuple):
    """One failure seen again and again; `seen` and `share` are of the time asked for."""

    project: str
    fingerprint: str
    kind: str
    message: str
    seen: int
    share: float  # of all failures in that time
    first_at: float
    last_at: float
    example: str
    state: GroupState


class Recovery(NamedTuple):
    """How incidents ended that began with a failure of this kind."""

    kind: str
    incidents: int
    recovered: int
    partial: int
    blocked: int
    failed: int
    mean_seconds: float | None  # from the first failure to the recovery; None: there was none
    dollars: float
    asks: int
    escalations: int

    @property
    def rate(self) -> float:
        """Recovered among the incidents, 0 to 1."""
        return self.recovered / self.incidents if self.incidents else 0.0


class RungTime(NamedTuple):
    """How well a rung recovers, and how long after the first failure. `looked_at`: recoveries the mean is of."""

    rung: str
    tried: int
    saved: int
    mean_seconds: float | None
    looked_at: int


class RungEffect(NamedTuple):
    """What a rung, prompt and model achieved together, at what price. Empty: not told apart, or none."""

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
        """What one that was saved cost, the tries in vain included."""
        return self.dollars / self.saved if self.saved else None


class Latency(NamedTuple):
    """How long a model's attempts take, in seconds, to within 9 %."""

    model: str
    attempts: int
    p50: float
    p95: float
    p99: float


class StuckSession(NamedTuple):
    """A session stuck in recovery. `score`: of 100 attempts so many were the same failure once more."""

    session: str
    project: str
    fingerprint: str
    kind: str
    message: str
    repeats: int
    failures: int
    attempts: int
    seconds: float  # spent on that failure
    dollars: float
    first_at: float
    last_at: float
    score: float


class Totals(NamedTuple):
    """Everything in a handful of numbers. An incident is troubled when anything failed in it."""

    attempts: int
    failures: int
    dollars: float
    incidents: int
    troubled: int
    recovered: int
    auto_recovered: int  # without asking anybody
    partial: int
    blocked: int
    failed: int
    asks: int  # questions
    asked: int  # incidents with any
    escalations: int  # hand-overs to another model or agent
    escalated: int  # incidents with any
    mean_seconds: float | None
