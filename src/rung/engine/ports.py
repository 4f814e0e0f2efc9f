"""Ports of the engine: narrow protocols for everything it needs from outside, and the system clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rung.core.domain.events import Ask, Event
    from rung.core.domain.failures import Evidence, Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.domain.verdict import Verdict
    from rung.core.policy.policy import Policy
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount

# Offset from the monotonic clock to UTC, taken once: a UTC clock that never runs backwards.
EPOCH: Final = time.time() - time.monotonic()
MAX_SLEEP_SLICE_SECONDS: Final = 30.0


class Clock(Protocol):
    """Source of time, and the only way to wait."""

    def now(self) -> float:
        """Return UTC seconds. The value never decreases."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`. Ctrl-C must end the wait at once."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait for `seconds` without blocking the event loop. A cancellation must end the wait at once."""
        ...


class SystemClock:
    """System clock. Long waits are cut into slices, so that a suspended machine wakes on time."""

    def now(self) -> float:
        """Return UTC seconds. The value never decreases."""
        return EPOCH + time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, in slices."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, MAX_SLEEP_SLICE_SECONDS))

    async def asleep(self, seconds: float) -> None:
        """Wait for `seconds`, in slices, without blocking the event loop."""
        import asyncio

        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:  # noqa: ASYNC110  # time is what is waited for
            await asyncio.sleep(min(left, MAX_SLEEP_SLICE_SECONDS))


class Listener(Protocol):
    """Observer of events. Called for each event after it is persisted. Its errors are recorded and ignored."""

    def __call__(self, event: Event, incident: Incident, /) -> object:
        """Handle one event."""
        ...


class EventLog(Protocol):
    """Append-only event log. Every journal implements it; the other ports of a journal are optional, see `JournalPorts`."""

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Awaitable[None] | None:
        """Append events to an incident. The first one has the sequence number `first`.

        The events are durable when this returns, or when the returned awaitable completes. If it returns a future,
        the next attempt waits for it; the backoff before that attempt overlaps with the write.
        """
        ...


@runtime_checkable
class LazyEventLog(Protocol):
    """Event log that can defer writes that no caller waits for."""

    def append_lazy(self, make: Callable[..., Sequence[Event]], *values: Any) -> object:
        """Append the events of a guarded call whose first attempt succeeded.

        The log calls `make(*values)` to build the events when it writes them, in any thread.
        """
        ...

    def append_final(self, incident: str, first: int, events: Sequence[Event]) -> object:
        """Append the last events of an incident. A returned awaitable is waited for: the log is behind."""
        ...


@runtime_checkable
class BackPressure(Protocol):
    """Event log that tells when it has too much to write: then a recovery also waits for its last events."""

    @property
    def is_behind(self) -> bool:
        """Whether the log has too much to write."""
        ...


@runtime_checkable
class Interventions(Protocol):
    """Unsolicited instructions of an operator to running recoveries and sessions."""

    def intervention(self, incident: str) -> Awaitable[Intervention | None] | Intervention | None:
        """Return the pending instruction for this incident, or None. Polled while a recovery waits."""
        ...

    def model_for(self, session: str) -> str:
        """Return the model that an operator has pinned the session to, or an empty string."""
        ...


@runtime_checkable
class Remedies(Protocol):
    """Record of the rungs that resolved earlier failures."""

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Return the name of the rung that resolved this failure before, or None."""
        ...


@runtime_checkable
class AttemptHistory(Protocol):
    """Journal that knows how long similar attempts have taken."""

    def similar_durations(self, incident: str, model: str, agent: str) -> Sequence[float]:
        """Return the seconds of the latest successful attempts at tasks of this incident's kind. May block."""
        ...


@runtime_checkable
class RungStatistics(Protocol):
    """Journal that counts how often each rung has helped."""

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return the tries of the ladder's rungs in the last `window` seconds. May block, and may be minutes old."""
        ...


@runtime_checkable
class ProjectScope(Protocol):
    """Journal that belongs to a project."""

    project: str


@runtime_checkable
class StoredPolicies(Protocol):
    """Journal that knows the policy of its project, as set in the service and in rung.toml."""

    def stored_policy(self) -> Policy | None:
        """Return the policy of the journal's project now; None if the journal was opened without one. May block."""
        ...


class JournalPorts(NamedTuple):
    """Ports that one journal offers."""

    log: EventLog | None = None
    lazy_log: LazyEventLog | None = None
    back_pressure: BackPressure | None = None
    interventions: Interventions | None = None
    remedies: Remedies | None = None
    history: AttemptHistory | None = None
    project: str = ""
    statistics: RungStatistics | None = None

    @classmethod
    def of(cls, journal: EventLog | None) -> JournalPorts:
        """Determine once which of the optional ports a journal offers."""
        if journal is None:
            return NO_JOURNAL
        return cls(
            journal,
            journal if isinstance(journal, LazyEventLog) else None,
            journal if isinstance(journal, BackPressure) else None,
            journal if isinstance(journal, Interventions) else None,
            journal if isinstance(journal, Remedies) else None,
            journal if isinstance(journal, AttemptHistory) else None,
            journal.project if isinstance(journal, ProjectScope) else "",
            journal if isinstance(journal, RungStatistics) else None,
        )


NO_JOURNAL: Final = JournalPorts()


class RunLease(Protocol):
    """Lease on a durable run: its recorded steps, and an event log that accepts writes while the lease is held."""

    run: str
    done: Any
    exhausted: bool

    def steps(self) -> dict[str, Any]:
        """Return the results of the completed steps, by key."""
        ...

    def record(self, key: str, result: Any) -> None:
        """Record a completed step."""
        ...

    def finish(self, result: Any) -> None:
        """Record the result of the run."""
        ...

    @property
    def is_in_doubt(self) -> bool:
        """Return whether the lease may have expired: another process may own the run."""
        ...

    def renew(self) -> None:
        """Renew the lease; raise LeaseLost when another process claimed the run."""
        ...

    def give_back(self) -> None:
        """Release a run that cannot be resumed here, as if it had not been claimed."""
        ...

    def append(
        self, incident: str, first: int, events: Sequence[Event], steps: Mapping[str, Any] | None = None
    ) -> Awaitable[None]:
        """Append events, and record steps, in one transaction while this process holds the lease.

        An event that is stored redacted or clipped is also recorded whole, as the step `event.POSITION`.
        """
        ...

    def record_appended(self, events: Sequence[Event], steps: Mapping[str, Any]) -> None:
        """Record the steps that `append` records, for the events of a run that was not durable when they were appended."""
        ...

    def __enter__(self) -> RunLease:
        """Start to renew the lease periodically."""
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
        """Whether a live process holds its lease."""
        ...


class ClaimedRunInfo(Protocol):
    """Run of a task that this process has acquired."""

    @property
    def lease(self) -> RunLease:
        """Lease on the run."""
        ...

    @property
    def task(self) -> str:
        """Name of its task."""
        ...

    @property
    def arguments(self) -> Any:
        """Arguments of its task."""
        ...


class FoundRunInfo(Protocol):
    """Run, open or ended."""

    @property
    def result(self) -> Any:
        """Its end, as `{"status": …}`; None while it is open."""
        ...


class ListedRunInfo(Protocol):
    """Run in a listing."""

    @property
    def id(self) -> str:
        """Name of the run."""
        ...

    @property
    def task(self) -> str:
        """Name of its task."""
        ...

    @property
    def status(self) -> str | None:
        """How it ended; None while it is open."""
        ...

    @property
    def owner(self) -> str:
        """Live process that owns it; empty if there is none."""
        ...

    @property
    def made_at(self) -> float:
        """When it was created, in UTC seconds."""
        ...


class DurableRuns(Protocol):
    """Registry of runs that survive their process."""

    lease: float

    def claim(self, run: str, task: str = "", arguments: Any = None) -> RunLease:
        """Acquire the lease on a run. The run is created if it does not exist."""
        ...

    def open_runs(self) -> Sequence[OpenRunInfo]:
        """Return the runs that have not ended."""
        ...

    def received(self, topic: str) -> Any:
        """Return the last message sent to a topic, or None."""
        ...

    def send(self, topic: str, body: Any) -> None:
        """Send a message to a topic."""
        ...

    def submit(self, run: str, task: str, arguments: Any) -> bool:
        """Create a run that no process owns. Return False if it exists."""
        ...

    def claim_next(self, tasks: Sequence[str], *, takes_expired: bool = True) -> ClaimedRunInfo | None:
        """Acquire the lease on the oldest run of these tasks that no live process owns, or None.

        Without `takes_expired`, a run whose lease has expired is left to its owner.
        """
        ...

    def find(self, run: str) -> FoundRunInfo | None:
        """Return a run, or None if it does not exist."""
        ...

    def cancel(self, run: str, reason: str) -> bool | None:
        """End an open run. Return whether it was open, or None if it does not exist."""
        ...

    def list_runs(self, task: str, limit: int, *, is_open: bool | None = None) -> Sequence[ListedRunInfo]:
        """Return runs of a task (empty: of all tasks), the newest first; all, open or ended ones."""
        ...


@runtime_checkable
class DurableJournal(Protocol):
    """Journal with a registry of durable runs."""

    @property
    def runs(self) -> DurableRuns:
        """Registry of the durable runs in this journal."""
        ...

    def events(self, incident: str) -> Sequence[Event]:
        """Return all events of an incident, in order."""
        ...


class ServiceWait(NamedTuple):
    """One wait of a call for a failing service. All times are those of the call's clock."""

    key: str  # circuit of the service
    began: float
    due: float  # when the call, alone, would make its next attempt
    until: float  # end of its patience
    since: float  # when its incident began


class ServiceWaits(Protocol):
    """Waits of many calls for a failing service, so that they share its probes instead of each sending their own."""

    def wait(self, waiting: ServiceWait, seconds: float) -> Awaitable[bool] | bool:
        """Wait at most `seconds`. Return whether the call may make its next attempt, or its patience is over."""
        ...


class AttemptRecorder(Protocol):
    """Recorder of attempt results, so that a finished attempt is not made again after a crash."""

    def will_replay(self) -> bool:
        """Whether the next attempt has a recorded result, which is returned instead of making it."""
        ...

    def attempt_started(self) -> Awaitable[None] | None:
        """Record that the next attempt is about to start."""
        ...

    def attempt_finished(self, value: Any, error: Exception | None) -> Awaitable[None] | None:
        """Record the value that the attempt returned, or the error that it raised."""
        ...

    def reported(self, report: Mapping[str, Any]) -> None:
        """Record what the running attempt reports: `{"step": …}` or `{"dollars": …}`. Durable when this returns."""
        ...


class AttemptHooks(Protocol):
    """Attempt function with hooks of its own. They run outside the attempt's time limit."""

    def before_attempt(self, request: Request | None, /) -> Awaitable[None] | None:
        """Run the hooks before an attempt. An exception keeps the attempt from being made."""
        ...

    def after_attempt(self, request: Request | None, error: BaseException | None, /) -> Awaitable[None] | None:
        """Run the hooks after an attempt that succeeded, failed, timed out or was stopped."""
        ...


class Notes(Protocol):
    """Notes of a project about failures: read before a run, and added to at its end. A listener."""

    def read(self, failure: Failure | None = None, /) -> Awaitable[str] | str:
        """Return what is known, quoted as data; after a failure, what is known about it. Empty: nothing."""
        ...

    def __call__(self, event: Event, incident: Incident, /) -> object:
        """Handle one event."""
        ...


class Investigator(Protocol):
    """Root-cause analysis, asked before a new plan or a handover."""

    def __call__(self, request: Request, incident: Incident, /) -> Awaitable[str] | str:
        """Return the cause of the last failure, in words; empty if it is not found."""
        ...


class Operator(Protocol):
    """Person, or a stand-in, who answers questions of a recovery."""

    def __call__(self, question: Ask, incident: Incident, /) -> Awaitable[str | None] | str | None:
        """Return the id of the chosen option, or None if nobody answers."""
        ...


class Checkpoint(Protocol):
    """Snapshots of the work, so that a failed rung can be rolled back."""

    def take(self, label: str) -> Awaitable[str] | str:
        """Save the current state and return a reference to it."""
        ...

    def restore(self, reference: str) -> Awaitable[None] | None:
        """Restore the saved state."""
        ...


class ResultValidator(Protocol):
    """Validator of attempt results."""

    def __call__(self, value: Any, /) -> Awaitable[Evidence | Verdict | None] | Evidence | Verdict | None:
        """Return None if the result is good, else evidence or a verdict about the defect."""
        ...


class RungHandler(Protocol):
    """User-supplied function that makes the new request of a rung (a planner for replan, a compactor for compact)."""

    def __call__(self, request: Request, incident: Incident, /) -> Awaitable[Request] | Request:
        """Return the request to attempt next."""
        ...
