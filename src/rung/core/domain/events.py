"""Events and decisions of a recovery. Their names and fields are a public contract: schema `event`.

They are named tuples instead of frozen dataclasses: a recovery writes four or more of them, and a tuple costs a third.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rung.core.domain.ladder import Action  # noqa: TC001  # the codec reads the annotations

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request

VERSION: Final = 1

Skip: TypeAlias = tuple[int, str]  # index of a rung that was not taken, and why


class Status(StrEnum):
    """How an incident ended."""

    SUCCEEDED = "succeeded"
    RECOVERED = "recovered"
    PARTIAL = "partial"
    BLOCKED = "blocked"
    FAILED = "failed"


class Option(NamedTuple):
    """One possible answer to a question. `id`: approve, decline, retry, replan, stop, model:NAME, answer:TEXT or answer."""

    id: str
    label: str


class Repeat(NamedTuple):
    """Decision: wait, then send the unchanged request again.

    `until`: the end of patience with a failing service; with `parked`, the time at which a limit reopens. `other_key`: the
    attempt is made with another key of the same upstream.
    """

    rung: int
    wait: float
    reason: str
    skipped: tuple[Skip, ...] = ()
    until: float | None = None
    parked: bool = False
    other_key: bool = False


class Change(NamedTuple):
    """Decision: build a new request with this action, then attempt it."""

    rung: int
    action: Action
    wait: float
    reason: str
    skipped: tuple[Skip, ...] = ()


class HandOver(NamedTuple):
    """Decision: hand the work over to another model or agent. `estimate`: US dollars; None: unknown."""

    rung: int
    model: str
    agent: str
    estimate: float | None
    reason: str
    skipped: tuple[Skip, ...] = ()


class Ask(NamedTuple):
    """Decision: wait for a person's choice. With `model` or `agent`, the question is whether to hand over to it.

    Attributes:
        rung: Index of the rung.
        question: What is asked.
        options: The choices, each with an `id` and a `label`. An answer is one of the ids.
        estimate: US dollars that a handover would cost; None: unknown.
        model: Model that would take over.
        agent: Agent that would take over.
        reason: Why it is asked.
        skipped: Rungs that were not taken, and why.
    """

    rung: int
    question: str
    options: tuple[Option, ...]
    estimate: float | None
    model: str
    agent: str
    reason: str
    skipped: tuple[Skip, ...] = ()


class Finish(NamedTuple):
    """Decision: end the incident."""

    rung: int
    status: Status
    reason: str
    skipped: tuple[Skip, ...] = ()


Decision: TypeAlias = Repeat | Change | HandOver | Ask | Finish


def is_retry(decision: Decision) -> bool:
    """Whether the decision is a retry: neither a wait for a failing service nor for a limit to reopen."""
    return isinstance(decision, Repeat) and decision.until is None


def is_park(decision: Decision | None) -> bool:
    """Whether the decision parks the work until a limit reopens."""
    return isinstance(decision, Repeat) and decision.parked


class IncidentContext(NamedTuple):
    """Facts that hold for a whole incident; all calls of one guarded function share one object."""

    ladder: str
    policy: str
    attended: bool = False
    idempotent: bool = False
    rungs: tuple[str, ...] = ()  # names of the ladder's rungs: events hold only their indexes
    project: str = ""
    session: str = ""
    tries: tuple[int, ...] = ()  # how often each rung may be tried, by the policy


class Opened(NamedTuple):
    """A recovery began. `deadline` and `dollars` include the limits of an outer incident.

    `used` holds the tries that the session has already used, by rung, for rungs with the scope `session`.
    """

    at: float
    id: str
    terms: IncidentContext
    request: Request | None = None
    deadline: float | None = None
    dollars: float | None = None
    parent: str = ""
    used: tuple[tuple[str, int], ...] = ()


class AttemptFailed(NamedTuple):
    """An attempt failed. `may_retry`: the process-wide retry budget had room. `made` is False if a circuit was open."""

    at: float
    failure: Failure
    seconds: float
    dollars: float
    may_retry: bool
    made: bool = True


class AttemptSucceeded(NamedTuple):
    """An attempt succeeded. `verified`: a check has accepted its result."""

    at: float
    seconds: float
    dollars: float
    verified: bool = False


class Charged(NamedTuple):
    """The last attempt has cost more than was known when it ended: its price was looked up later, maybe after the incident."""

    at: float
    dollars: float


class Hinted(NamedTuple):
    """The journal knows a rung that fixed this failure before; recorded after the first failure."""

    at: float
    rung: int
    reason: str


class LearnedSkip(NamedTuple):
    """Tries that are left out: those of a rung from this number on. `instead`: the rung that succeeds more often."""

    rung: int
    number: int
    instead: int
    reason: str


class Learned(NamedTuple):
    """Recorded outcomes leave out tries after failures of this kind. `explored`: the ladder's own order is taken nevertheless."""

    at: float
    kind: str
    skips: tuple[LearnedSkip, ...]
    explored: bool = False


class Decided(NamedTuple):
    """A decision was made; recorded before it is carried out."""

    at: float
    decision: Decision


class Unparked(NamedTuple):
    """Parked work is taken up: the limit reopens, or a person woke it."""

    at: float


class Abandoned(NamedTuple):
    """A new plan or a handover abandons an approach: a known-bad path. `cause`: found by an investigator, or empty."""

    at: float
    rung: int
    approach: str
    cause: str = ""


class Changed(NamedTuple):
    """A rung built this request; `fields` are the names of the fields that differ from the previous one."""

    at: float
    request: Request
    digest: str
    fields: tuple[str, ...]
    prompt: str


class Skipped(NamedTuple):
    """A rung could not be applied: it raised, changed nothing, or did not make the request smaller."""

    at: float
    rung: int
    reason: str


class StepCompleted(NamedTuple):
    """The attempt reported a finished part of the work; part of the outcome if the incident ends partial."""

    at: float
    step: str


class AgentSessionOpened(NamedTuple):
    """The attempt works in a session of its agent: a new one, or one that is `continued`.

    `program` is the agent's name, such as `claude`; `session` is the id by which it continues the session. `agent` is that of
    the request.
    """

    at: float
    agent: str
    program: str
    session: str
    continued: bool = False


class Answered(NamedTuple):
    """A person answered a question."""

    at: float
    option: str


class Ordered(NamedTuple):
    """A person intervened: `retry` at once, optionally with another model or prompt, or `cancel`.

    With `suspend`, a durable run was stopped from outside, by a signal, Ctrl-C or its caller; it stays open.
    """

    at: float
    action: str
    by: str
    model: str = ""
    prompt: str = ""


class CheckpointTaken(NamedTuple):
    """A checkpoint of the state before this rung was taken."""

    at: float
    rung: int
    reference: str


class RolledBack(NamedTuple):
    """A rung failed, and the state before it was restored."""

    at: float
    rung: int
    reference: str


class ModelRestored(NamedTuple):
    """A handover failed: the work is back on its former model and agent."""

    at: float
    model: str
    agent: str


class SessionSwitched(NamedTuple):
    """Another call of the session was handed over from this call's model or agent: following it takes no try."""

    at: float
    model: str
    agent: str


class Crashed(NamedTuple):
    """A listener, hook, check or checkpoint raised an error. An attempt whose check raised is not a success."""

    at: float
    what: str
    error: str


class Cancelled(NamedTuple):
    """The recovery was cancelled from outside."""

    at: float
    reason: str


class Closed(NamedTuple):
    """The incident ended without success."""

    at: float
    status: Status
    reason: str


Event: TypeAlias = (
    Opened
    | AttemptFailed
    | AttemptSucceeded
    | Charged
    | Hinted
    | Learned
    | Decided
    | Unparked
    | Abandoned
    | Changed
    | Skipped
    | StepCompleted
    | AgentSessionOpened
    | Answered
    | Ordered
    | CheckpointTaken
    | RolledBack
    | ModelRestored
    | SessionSwitched
    | Crashed
    | Cancelled
    | Closed
)
