"""Ports of a journal: an append-only event log, and what some journals offer besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount


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
class LastInterventions(Protocol):
    """Interventions that can be read at once, before a recovery ends: one that came during its last attempt is not lost."""

    def last_intervention(self, incident: str) -> Awaitable[Intervention | None] | Intervention | None:
        """Return the pending instruction for an incident that would end now, or None."""
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

    def stored_policy(self, default_ladder: str = "") -> Policy | None:
        """Return the policy of the journal's project now; None if the journal was opened without one. May block.

        It has the default ladder, if one is given, unless its settings name another.
        """
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

    def run_attributes(self) -> dict[str, Any]:
        """Return the attributes of a run with this journal, which waits for every event."""
        return {
            "journal": self.log,
            "back_pressure": self.back_pressure,
            "interventions": self.interventions,
            "remedies": self.remedies,
            "statistics": self.statistics,
            "history": self.history,
        }


NO_JOURNAL: Final = JournalPorts()
