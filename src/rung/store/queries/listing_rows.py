"""Rows of the lists, as the dashboard, the CLI and the API show them."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from rung.core.domain.ladder import Action

R = TypeVar("R")


class Page(NamedTuple, Generic[R]):
    """Page of a list. Pass `after` to get the next page; it is empty on the last one.

    `total` is the number of rows on all pages, counted up to ten thousand.
    """

    rows: list[R]
    after: str
    total: int = 0


class SessionRow(NamedTuple):
    """Agent session. `status`: working, recovering, waiting, or how its last incident ended."""

    id: str
    project: str
    agent: str
    model: str
    former: str  # the previous model; empty when it never changed
    status: str
    kind: str  # of its last failure
    message: str
    began_at: float
    touched_at: float
    incidents: int
    attempts: int
    failures: int
    dollars: float


class IncidentRow(NamedTuple):
    """Incident. `status`: open, or how it ended; `waiting`: for an operator's answer."""

    id: str
    project: str
    session: str
    agent: str
    ladder: str
    policy: str
    parent: str
    model: str
    first_model: str
    status: str
    waiting: bool
    reason: str
    kind: str  # of its first failure
    fingerprint: str
    message: str
    rung: str  # highest rung used
    last_rung: str  # rung used last
    attempts: int
    failures: int
    asks: int
    escalations: int
    dollars: float
    opened_at: float
    failed_at: float | None
    ended_at: float | None
    due_at: float | None  # start of the next attempt, while it waits for it
    touched_at: float

    @property
    def parked_until(self) -> float | None:
        """Time at which a limit reopens that the incident is parked for; None if it is not parked."""
        return self.due_at if self.status == "open" and self.last_rung == Action.PARK else None


class AttemptRow(NamedTuple):
    """Attempt, successful or failed."""

    incident: str
    n: int
    number: int
    at: float
    seconds: float
    dollars: float
    project: str
    session: str
    model: str
    agent: str
    rung: str
    prompt: str
    ok: bool
    kind: str
    rule: str
    phase: str
    tool: str
    fingerprint: str
    message: str
    error_type: str  # of a failure; empty if it was recorded by an older Rung


class LevelRow(NamedTuple):
    """Rung that an incident used. `result`: open, saved, failed, forced, skipped, asked, ended."""

    incident: str
    n: int
    place: int
    rung: str
    kind: str  # of the failure that led to it
    entered_at: float
    left_at: float | None
    tries: int
    seconds: float
    dollars: float
    result: str


class ModelChangeRow(NamedTuple):
    """Change to another model or agent, with its estimated and actual cost."""

    incident: str
    n: int
    at: float
    session: str
    project: str
    from_model: str
    to_model: str
    to_agent: str
    reason: str
    estimate: float | None
    dollars: float
    restored_at: float | None


class ModelUse(NamedTuple):
    """Attempts and cost of a model in a session."""

    session: str
    model: str
    attempts: int
    failures: int
    dollars: float
    touched_at: float


class AskRow(NamedTuple):
    """Question to an operator. `options`: id and text of each; `state`: waiting, answered, over."""

    incident: str
    n: int
    at: float
    project: str
    session: str
    question: str
    options: list[tuple[str, str]]
    estimate: float | None
    model: str
    state: str
    answer: str
    answered_at: float | None


class CrashRow(NamedTuple):
    """Crash of a listener, hook, check or checkpoint."""

    incident: str
    n: int
    at: float
    project: str
    session: str
    what: str
    error: str


class ProjectRow(NamedTuple):
    """Project and its totals."""

    id: str
    incidents: int
    attempts: int
    failures: int
    dollars: float
    began_at: float
    touched_at: float


class TopMessage(NamedTuple):
    """Frequent error and its share of all failures."""

    message: str
    seen: int
    share: float
    kind: str
    project: str
    fingerprint: str


class Figures(NamedTuple):
    """Recovery figures of a day or time range; incidents with a failure count on the day they ended.

    An incident is transient if it began with an error that passes by itself.
    """

    day: str  # ISO date, UTC; empty for the whole time range
    incidents: int
    recovered: int
    transient: int
    transient_recovered: int
    auto_recovered: int  # transient ones that recovered without a question to a person or an intervention
    interventions: int  # incidents in which an operator was asked
    escalated: int  # incidents that moved to another model or agent
    recovery_seconds: float  # from the first failure to the recovery, of all transient ones that recovered

    @property
    def auto_share(self) -> float | None:
        """Share of transient incidents that recovered automatically; None without such incidents."""
        return self.auto_recovered / self.transient if self.transient else None

    @property
    def mean_seconds(self) -> float | None:
        """Mean time to recovery of the transient incidents; None without recoveries."""
        return self.recovery_seconds / self.transient_recovered if self.transient_recovered else None
