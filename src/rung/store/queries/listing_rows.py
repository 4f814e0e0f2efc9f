"""The rows of the lists: what a page, a table or an API shows of sessions, incidents and what belongs to them."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

R = TypeVar("R")


class Page(NamedTuple, Generic[R]):
    """Some rows of a list, and where the next ones begin: give that as `after`; empty: these were the last.

    `total` is how many there are on all pages; from ten thousand on they are not counted to the end.
    """

    rows: list[R]
    after: str
    total: int = 0


class SessionRow(NamedTuple):
    """A session of an agent. `status`: working, recovering, waiting, or how its last incident ended."""

    id: str
    project: str
    agent: str
    model: str
    former: str  # the model before this one; empty: it never changed
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
    """A recovery. `status`: open, or how it ended; `waiting`: for a person's answer."""

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
    rung: str  # the highest one used
    attempts: int
    failures: int
    asks: int
    escalations: int
    dollars: float
    opened_at: float
    failed_at: float | None
    ended_at: float | None
    due_at: float | None  # when the next attempt begins, while it waits for that
    touched_at: float


class AttemptRow(NamedTuple):
    """One attempt, good or not."""

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


class LevelRow(NamedTuple):
    """A rung that an incident stood on. `result`: open, saved, failed, forced, skipped, asked, ended."""

    incident: str
    n: int
    place: int
    rung: str
    kind: str  # of the failure that led there
    entered_at: float
    left_at: float | None
    tries: int
    seconds: float
    dollars: float
    result: str


class ModelChangeRow(NamedTuple):
    """A hand-over to another model or agent: what it was thought to cost, and what it did."""

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
    """What a model did and cost in a session."""

    session: str
    model: str
    attempts: int
    failures: int
    dollars: float
    touched_at: float


class AskRow(NamedTuple):
    """A question to a person. `options`: the id and the words of each; `state`: waiting, answered, over."""

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
    """A listener, hook, check or checkpoint that broke."""

    incident: str
    n: int
    at: float
    project: str
    session: str
    what: str
    error: str


class ProjectRow(NamedTuple):
    """A project and all that was done in it."""

    id: str
    incidents: int
    attempts: int
    failures: int
    dollars: float
    began_at: float
    touched_at: float


class TopMessage(NamedTuple):
    """An error seen often, and which share of all failures it is."""

    message: str
    seen: int
    share: float
    kind: str
    project: str
    fingerprint: str


class Figures(NamedTuple):
    """How well it goes without people. An incident counts on the day it ended, if anything failed in it."""

    day: str  # ISO, UTC; empty: all the time asked for
    incidents: int
    recovered: int
    auto_recovered: int  # nobody was asked
    interventions: int  # incidents in which a person was asked
    escalated: int  # incidents that were stuck and went to another model or agent
    mean_seconds: float | None  # from the first failure to the recovery; None: there was none

    @property
    def auto_share(self) -> float | None:
        """Recovered without anybody's help, among the incidents with a failure; None: there were none."""
        return self.auto_recovered / self.incidents if self.incidents else None
