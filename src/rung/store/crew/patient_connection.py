"""Connection to a crew's table that waits while the table is away, for programs with nothing else to do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.store.crew.table_patience import MAX_PAUSE_SECONDS, T, patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.store.backends.port import Row
    from rung.store.crew.connection import CrewConnection


class PatientConnection:
    """Repeats what a table that is away refuses: statements of their own, and the begin of a transaction.

    A transaction that is lost half-way raises StoreUnavailable: only its caller knows what to repeat.
    """

    def __init__(
        self,
        inner: CrewConnection,
        seconds: float,
        log: Callable[[str], None],
        longest_pause: float = MAX_PAUSE_SECONDS,
    ) -> None:
        self.inner = inner
        self.url = inner.url
        self._seconds = seconds
        self._log = log
        self._longest_pause = longest_pause
        self._in_transaction = False

    def verify(self, *, full: bool = False) -> None:
        """Raise StoreError if the triggers that enforce the contract were changed."""
        self.inner.verify(full=full)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        if self._in_transaction:
            return self.inner.execute(sql, values)
        return self._patiently(lambda: self.inner.execute(sql, values))

    def begin(self) -> None:
        """Begin a write transaction."""
        self._patiently(self.inner.begin)
        self._in_transaction = True

    def commit(self) -> None:
        """Commit durably."""
        self.inner.commit()
        self._in_transaction = False

    def rollback(self) -> None:
        """Roll back."""
        self._in_transaction = False
        self.inner.rollback()

    def close(self) -> None:
        """Close the connection."""
        self.inner.close()

    def _patiently(self, action: Callable[[], T]) -> T:
        return patiently(action, self._log, self._seconds, longest_pause=self._longest_pause)
