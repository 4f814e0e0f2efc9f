"""What a store is: a place where portable SQL runs, and promises about what was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rung.core.errors import Busy as Busy  # noqa: PLC0414  # the stores' own word, known to the engine
from rung.core.errors import RungError
from rung.store.ticket import Ticket as Ticket  # noqa: PLC0414  # what a store gives for what it is given

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[Any, ...]


class StoreError(RungError):
    """The journal cannot be used as it is: what is wrong with it, in one line."""


class ReadOnly(StoreError):
    """It can be read, but not written."""


class Fenced(BaseException):
    """Somebody else owns the run now: what a former owner still writes is refused.

    No Exception, so that no catch-all of an agent goes on working for a run that is no longer its own.
    """


class Taken(RungError):
    """The run is in the hands of a living process."""

    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"run {run!r} cannot be taken up: {why}")


class Connection(Protocol):
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


class Backend(Protocol):
    """One kind of store at one place."""

    url: str

    def connect(self, *, write: bool) -> Connection:
        """A new connection; the first that may write brings the schema up to date."""
        ...

    def size(self) -> int:
        """Bytes it takes."""
        ...
