"""Ports of the engine: what it needs from outside, as narrow protocols; and the real clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rung.core.domain.events import Ask, Event
    from rung.core.domain.failures import Evidence, Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.domain.verdict import Verdict
    from rung.core.recovery.interventions import Intervention

# UTC that never runs backwards: the wall clock of the start, moved on by the monotonic one.
EPOCH: Final = time.time() - time.monotonic()
SLICE: Final = 30.0


class Clock(Protocol):
    """Time, and the only way to let it pass."""

    def now(self) -> float:
        """UTC seconds; never runs backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, so that Ctrl-C still stops at once."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait, so that a cancellation still stops at once."""
        ...


class SystemClock:
    """The real clock. Long waits are taken in slices, so that a machine that slept is noticed."""

    def now(self) -> float:
        """UTC seconds; never runs backwards."""
        return EPOCH + time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait in slices."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SLICE))

    async def asleep(self, seconds: float) -> None:
        """Wait in slices."""
        import asyncio

        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:  # noqa: ASYNC110  # time is what is waited for
            await asyncio.sleep(min(left, SLICE))


class Listener(Protocol):
    """Is told every event once it is written down. May fail: that is recorded and ignored."""

    def __call__(self, event: Event, incident: Incident, /) -> object:
        """Take notice."""
        ...


class EventLog(Protocol):
    """Journal of events. Every journal is one; the other ports of a journal are optional, see `JournalPorts`."""

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Awaitable[None] | None:
        """Keep these events, the first of which is the incident's event number `first`.

        When it returns, or its awaitable does, they are safe. What it returns may be a future: then the next
        attempt waits for it, and the pause before that attempt does not.
        """
        ...


@runtime_checkable
class LazyEventLog(Protocol):
    """Event log that can write later what nobody waits for."""

    def append_lazy(self, make: Callable[..., Sequence[Event]], *values: Any) -> object:
        """Keep the events of a guarded call whose first attempt succeeded.

        They are what `make(*values)` returns, whenever and in whichever thread it is called.
        """
        ...

    def append_final(self, incident: str, first: int, events: Sequence[Event]) -> object:
        """Keep the last events of an incident."""
        ...


@runtime_checkable
class Interventions(Protocol):
    """Instructions of a person to recoveries and sessions that did not ask."""

    def intervention(self, incident: str) -> Awaitable[Intervention | None] | Intervention | None:
        """The instruction for this incident; None when there is none. Asked for while a recovery waits."""
        ...

    def model_for(self, session: str) -> str:
        """The model that a person has put the session on; empty when there is none."""
        ...


@runtime_checkable
class Remedies(Protocol):
    """Memory of what helped before."""

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Name of the rung that helped with this failure before; None when none is known."""
        ...


@runtime_checkable
class ProjectScope(Protocol):
    """Journal that belongs to a project."""

    project: str


class JournalPorts(NamedTuple):
    """Ports that one journal offers."""

    log: EventLog | None = None
    lazy_log: LazyEventLog | None = None
    interventions: Interventions | None = None
    remedies: Remedies | None = None
    project: str = ""

    @classmethod
    def of(cls, journal: EventLog | None) -> JournalPorts:
        """Ask a journal once, at the edge, which of the ports it offers."""
        if journal is None:
            return NO_JOURNAL
        return cls(
            journal,
            journal if isinstance(journal, LazyEventLog) else None,
            journal if isinstance(journal, Interventions) else None,
            journal if isinstance(journal, Remedies) else None,
            journal.project if isinstance(journal, ProjectScope) else "",
        )


NO_JOURNAL: Final = JournalPorts()


class RunLease(Protocol):
    """Durable run that this process owns: its steps, and the event log as long as it is the owner."""

    run: str
    done: Any
    exhausted: bool

    def steps(self) -> dict[str, Any]:
        """Results of the completed steps, by key."""
        ...

    def record(self, key: str, result: Any) -> None:
        """Record a completed step."""
        ...

    def finish(self, result: Any) -> None:
        """Record how the run ended."""
        ...

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Awaitable[None]:
        """Keep events, as long as this process owns the run."""
        ...

    def __enter__(self) -> RunLease:
        """Renew the lease from now on."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop renewing the lease."""
        ...


class OpenRunInfo(Protocol):
    """Durable run that has not ended."""

    @property
    def id(self) -> str:
        """Name of the run."""
        ...

    @property
    def task(self) -> str:
        """Name of its task; empty for a recovery."""
        ...

    @property
    def arguments(self) -> Any:
        """Arguments of its task."""
        ...

    @property
    def owned(self) -> bool:
        """Whether a living process works on it."""
        ...


class DurableRuns(Protocol):
    """Registry of runs that survive their process."""

    def claim(self, run: str, task: str = "", arguments: Any = None) -> RunLease:
        """Become the owner of a run, which is created if it does not exist."""
        ...

    def open_runs(self) -> Sequence[OpenRunInfo]:
        """Runs that have not ended."""
        ...

    def received(self, topic: str) -> Any:
        """The last message about a topic; None when there is none."""
        ...


@runtime_checkable
class DurableJournal(Protocol):
    """Journal that keeps durable runs."""

    @property
    def runs(self) -> DurableRuns:
        """The registry of its runs."""
        ...

    def events(self, incident: str) -> Sequence[Event]:
        """All events of an incident, in their order."""
        ...


class AttemptRecorder(Protocol):
    """Keeps what attempts come to, so that none that has ended is made again after a crash."""

    def begun(self) -> Awaitable[None] | None:
        """The next attempt is about to be made."""
        ...

    def came_to(self, value: Any, error: Exception | None) -> Awaitable[None] | None:
        """The attempt has returned this value or raised this error."""
        ...


class Operator(Protocol):
    """Someone who can choose."""

    def __call__(self, question: Ask, incident: Incident, /) -> Awaitable[str | None] | str | None:
        """The id of the chosen option; None when nobody answers."""
        ...


class Checkpoint(Protocol):
    """Keeps the state of the work, so that a rung that fails can be undone."""

    def take(self, label: str) -> Awaitable[str] | str:
        """Keep the state as it is now; returns a reference to it."""
        ...

    def restore(self, reference: str) -> Awaitable[None] | None:
        """Put that state back."""
        ...


class ResultValidator(Protocol):
    """Looks at a result: None when it is good, else what is wrong with it."""

    def __call__(self, value: Any, /) -> Awaitable[Evidence | Verdict | None] | Evidence | Verdict | None:
        """Judge."""
        ...


class RungHandler(Protocol):
    """A user's own way to make a rung's new request (a planner for replan, a compactor for compact)."""

    def __call__(self, request: Request, incident: Incident, /) -> Awaitable[Request] | Request:
        """The request to attempt instead."""
        ...
