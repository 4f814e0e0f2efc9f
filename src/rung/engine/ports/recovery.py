"""Ports that a caller gives a recovery: listeners, operator, checks, rung handlers, notes, and the recorder of attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from typing import TypeAlias

    from rung.core.domain.events import Ask, Event
    from rung.core.domain.failures import Evidence, Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.domain.verdict import Verdict

    CheckAnswer: TypeAlias = Evidence | Failure | Verdict | bool | str | None


class Listener(Protocol):
    """Observer of events. Called for each event after it is persisted. Its errors are recorded and ignored."""

    def __call__(self, event: Event, incident: Incident, /) -> object:
        """Handle one event."""
        ...


class ServiceWait(NamedTuple):
    """One wait of a call for a failing service. All times are those of the call's clock."""

    key: str  # circuit of the service
    began: float
    due: float  # when the call, alone, would make its next attempt
    until: float  # end of its patience
    since: float  # when its incident began
    has_probed: bool = False  # whether the call's last attempt was the probe of the circuit, which failed


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
        """Save the current state and return a reference to it.

        Args:
            label: Name of the checkpoint.
        """
        ...

    def restore(self, reference: str) -> Awaitable[None] | None:
        """Restore the saved state.

        Args:
            reference: What `take` returned.
        """
        ...


class ResultValidator(Protocol):
    """Validator of attempt results."""

    def __call__(self, value: Any, /) -> Awaitable[CheckAnswer] | CheckAnswer:
        """Return None or True if the result is good, else False, a text, evidence, a failure or a verdict."""
        ...


class RungHandler(Protocol):
    """User-supplied function that makes the new request of a rung (a planner for replan, a compactor for compact)."""

    def __call__(self, request: Request, incident: Incident, /) -> Awaitable[Request] | Request:
        """Return the request to attempt next."""
        ...
