"""What a store is: a place where portable SQL runs, and promises about what was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rung.store.backends.durable_future import DurableFuture as DurableFuture  # noqa: PLC0414, TC001  # what a store returns for a write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention

Row = tuple[Any, ...]
T = TypeVar("T")


class BackendConnection(Protocol):
    """A connection of a store, used by one thread. SQL is written once, for both stores, with `?`."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; its rows."""
        ...

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        ...

    def begin(self) -> None:
        """Begin to write; nobody else does until it is committed."""
        ...

    def commit(self) -> None:
        """Make it durable. An error here means: nobody knows."""
        ...

    def rollback(self) -> None:
        """Take it back."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


class StoreBackend(Protocol):
    """One kind of store at one place."""

    url: str

    def connect(self, *, write: bool) -> BackendConnection:
        """A new connection; the first that may write brings the schema up to date."""
        ...

    def size(self) -> int:
        """Bytes it takes."""
        ...


class Readable(Protocol):
    """Database that runs queries."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one query on a connection that cannot write; its rows."""
        ...


class Database(Readable, Protocol):
    """Database that runs queries and transactions. The journal is one."""

    def write(
        self, work: Callable[[BackendConnection], T], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[T]:
        """Run `work` in a transaction; `present` tells whether it was committed when the outcome is unknown."""
        ...


class DurableEventLog(Database, Protocol):
    """Journal as a durable run needs it: fenced appends, orders from people, and remembered remedies."""

    project: str

    def append_if(
        self, incident: str, first: int, events: Sequence[Event], hold: Callable[[BackendConnection], object]
    ) -> DurableFuture[None]:
        """Append events in one transaction with the check that they may be appended."""
        ...

    def intervention(self, incident: str) -> Intervention | None:
        """Order that a person gave to this incident."""
        ...

    def model_for(self, session: str) -> str:
        """Model that a person has put this session on; empty when there is none."""
        ...

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Rung that resolved this failure before."""
        ...
