"""The facts of a recovery, in the order they became true. Names and fields are a public contract.

Events and decisions are named tuples, the one place where we do not use frozen dataclasses: a
recovery writes four or more of them, and a tuple costs a third.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rung.core.domain.ladder import Action  # noqa: TC001  # the codec reads the annotations

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request

VERSION: Final = 1

Skip: TypeAlias = tuple[int, str]  # the index of a rung that was passed over, and why


class Status(StrEnum):
    """How it ended."""

    SUCCEEDED = "succeeded"
    RECOVERED = "recovered"
    PARTIAL = "partial"
    BLOCKED = "blocked"
    FAILED = "failed"


class Option(NamedTuple):
    """One answer a person may give. `id`: approve, decline, retry, replan, stop or model:NAME."""

    id: str
    label: str


class Repeat(NamedTuple):
    """Wait, then make the same request again."""

    rung: int
    wait: float
    reason: str
    skipped: tuple[Skip, ...] = ()


class Change(NamedTuple):
    """Make a new request as this action does, then attempt that."""

    rung: int
    action: Action
    wait: float
    reason: str
    skipped: tuple[Skip, ...] = ()


class HandOver(NamedTuple):
    """Give the work to another model or agent. `estimate`: US dollars, None if nobody knows."""

    rung: int
    model: str
    agent: str
    estimate: float | None
    reason: str
    skipped: tuple[Skip, ...] = ()


class Ask(NamedTuple):
    """Stop until a person has chosen. With `model` or `agent`: leave to hand over to it is asked for."""

    rung: int
    question: str
    options: tuple[Option, ...]
    estimate: float | None
    model: str
    agent: str
    reason: str
    skipped: tuple[Skip, ...] = ()


class Finish(NamedTuple):
    """End here."""

    rung: int
    status: Status
    reason: str
    skipped: tuple[Skip, ...] = ()


Decision: TypeAlias = Repeat | Change | HandOver | Ask | Finish


class IncidentContext(NamedTuple):
    """What holds for a whole incident, and is the same for every call of one guarded function."""

    ladder: str
    policy: str
    attended: bool = False
    idempotent: bool = False
    rungs: tuple[str, ...] = ()  # the ladder's, by name: an index alone says nothing to whoever reads it later
    project: str = ""
    session: str = ""


class Opened(NamedTuple):
    """A recovery began. `deadline` and `dollars` already respect an outer incident's limits.

    `used` holds the tries that the session has already spent on rungs which count per session.
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
    """An attempt failed. `may_retry`: the process-wide retry budget had room at that moment."""

    at: float
    failure: Failure
    seconds: float
    dollars: float
    may_retry: bool
    made: bool = True


class AttemptSucceeded(NamedTuple):
    """An attempt's result was good."""

    at: float
    seconds: float
    dollars: float


class Hinted(NamedTuple):
    """The journal remembers a rung that helped with this very failure before; told at the first one."""

    at: float
    rung: int
    reason: str


class Decided(NamedTuple):
    """What to do next; written down before it is done."""

    at: float
    decision: Decision


class Changed(NamedTuple):
    """A rung made this request; `fields` are the names of what differs from the one before."""

    at: float
    request: Request
    digest: str
    fields: tuple[str, ...]
    prompt: str


class Skipped(NamedTuple):
    """A rung could not do its part: its change threw, changed nothing, or did not shrink."""

    at: float
    rung: int
    reason: str


class StepCompleted(NamedTuple):
    """The attempt reported a finished part of the work: harvested when it ends partial."""

    at: float
    step: str


class Answered(NamedTuple):
    """A person chose."""

    at: float
    option: str


class Ordered(NamedTuple):
    """A person stepped in unasked: `retry` at once, with another model or prompt where given, or `cancel`."""

    at: float
    action: str
    by: str
    model: str = ""
    prompt: str = ""


class CheckpointTaken(NamedTuple):
    """The state before this rung can be put back."""

    at: float
    rung: int
    reference: str


class RolledBack(NamedTuple):
    """A rung failed, and the state from before it was put back."""

    at: float
    rung: int
    reference: str


class ModelRestored(NamedTuple):
    """A hand-over did not help: the work is back on its former model and agent."""

    at: float
    model: str
    agent: str


class Crashed(NamedTuple):
    """A listener, hook, check or checkpoint broke. Recorded, shown, and otherwise ignored."""

    at: float
    what: str
    error: str


class Cancelled(NamedTuple):
    """Somebody stopped it from outside."""

    at: float
    reason: str


class Closed(NamedTuple):
    """It ended without a success."""

    at: float
    status: Status
    reason: str


Event: TypeAlias = (
    Opened
    | AttemptFailed
    | AttemptSucceeded
    | Hinted
    | Decided
    | Changed
    | Skipped
    | StepCompleted
    | Answered
    | Ordered
    | CheckpointTaken
    | RolledBack
    | ModelRestored
    | Crashed
    | Cancelled
    | Closed
)
