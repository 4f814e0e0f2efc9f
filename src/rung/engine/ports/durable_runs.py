"""Ports to the registry of durable runs and to the lease on one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from rung.core.domain.events import Event


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
