"""Ports of the store: back ends that run portable SQL, and the database interfaces built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rung.store.backends.durable_future import DurableFuture as DurableFuture  # noqa: PLC0414, TC001  # re-export: the result of a write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount
    from rung.store.sealing import JournalKey

Row = tuple[Any, ...]
T = TypeVar("T")


class BackendConnection(Protocol):
    """Connection to a store, used by one thread. SQL is the same for both back ends, with `?` placeholders."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        ...

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        ...

    def begin(self) -> None:
        """Begin a write transaction; it excludes all other writers until it ends."""
        ...

    def commit(self) -> None:
        """Commit durably. After an error the outcome is unknown."""
        ...

    def rollback(self) -> None:
        """Roll the transaction back."""
        ...

    def close(self) -> None:
        """Close the connection, or return it to the pool."""
        ...


class StoreBackend(Protocol):
    """Store at one location."""

    url: str

    def connect(self, *, write: bool) -> BackendConnection:
        """Open a connection; the first writable one migrates the schema."""
        ...

    def size(self) -> int:
        """Return its size in bytes."""
        ...


class Readable(Protocol):
    """Database that runs queries."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one query on a read-only connection and return its rows."""
        ...


class Database(Readable, Protocol):
    """Database that runs queries and transactions. The journal is one."""

    def write(
        self, work: Callable[[BackendConnection], T], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[T]:
        """Run `work` in a transaction; `present` tells whether it was committed when the outcome is unknown."""
        ...


class DurableEventLog(Database, Protocol):
    """Journal as a durable run needs it: fenced appends, operator interventions, and remembered remedies."""

    project: str
    key: JournalKey

    def append_if(
        self, incident: str, first: int, events: Sequence[Event], precondition: Callable[[BackendConnection], object]
    ) -> DurableFuture[None]:
        """Append events in one transaction with a precondition, which raises when they may not be appended."""
        ...

    def intervention(self, incident: str) -> Intervention | None:
        """Return a pending operator intervention for an incident."""
        ...

    def model_for(self, session: str) -> str:
        """Return the model that an operator chose for a session; empty when there is none."""
        ...

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Return the rung that resolved this failure before."""
        ...

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return how often the ladder's rungs helped."""
        ...

    def similar_durations(self, incident: str, model: str, agent: str) -> Sequence[float]:
        """Return the durations of successful attempts at tasks of this incident's kind."""
        ...
