"""The conductor's lease in the crew's table: who conducts, in which term, and until when by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rung.core.crew.contract import CONDUCTOR
from rung.core.domain.errors import ConductorLeaseHeld, ConductorReplaced
from rung.engine.process_identity import current_owner, is_gone
from rung.store.crew.conductor_commands import ConductorCommands
from rung.store.crew.trigger_conditions import NOW_SQL

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.crew.contract import TaskState

_CLOCK: Final = "julianday('now') * 86400"  # seconds
_SELECT: Final = f"SELECT term, holder, host, pid, process, since, expires - {_CLOCK} FROM crew_lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorLease:
    """The lease as it was read. A larger term is a later holder."""

    term: int
    holder: str  # a new id for each holder; empty if nobody conducts
    host: str
    pid: int
    process: str  # identity of the process, for `is_gone`
    since: str
    seconds_left: float  # by the database's clock

    @property
    def is_live(self) -> bool:
        """Return whether its holder may still conduct: it has not released it, is not known to be gone, and is in time."""
        return bool(self.holder) and self.seconds_left > 0 and not is_gone(self.process)

    def describe(self) -> str:
        """Return who has it, for a message."""
        return f"process {self.pid} on {self.host}, since {self.since} UTC (term {self.term})"


class LeaseCommands(ConductorCommands):
    """Operations on the conductor's lease. Writes of a table that holds it, or watches it, are fenced by its term."""

    def conductor_lease(self) -> ConductorLease:
        """Return the lease."""
        ((term, holder, host, pid, process, since, left),) = self.connection.execute(_SELECT)
        return ConductorLease(
            term=term, holder=holder, host=host, pid=pid, process=process, since=since, seconds_left=left
        )

    def acquire_lease(
        self, seconds: float, *, succeeds: str = "", is_free: Callable[[ConductorLease], bool] | None = None
    ) -> ConductorLease:
        """Take the lease for this process, with a new term; raise ConductorLeaseHeld if another one conducts.

        `succeeds` is the holder that started this process and gives the lease up to it. `is_free` replaces the test
        whether a lease may be taken over.
        """
        me = current_owner()
        with self.signed_in(fenced=False):
            held = self.conductor_lease()
            taken = held.is_live if is_free is None else not is_free(held)
            if taken and held.holder != succeeds:
                raise ConductorLeaseHeld(held.describe())
            self.connection.execute(
                f"UPDATE crew_lease SET term = term + 1, holder = ?, host = ?, pid = ?, process = ?, since = {NOW_SQL},"
                f" expires = {_CLOCK} + ?",
                [uuid4().hex, me.host, me.pid, me.text(), float(seconds)],
            )
            lease = self.conductor_lease()
        self.fence(lease.term, seconds)
        return lease

    def fence(self, term: int | None, lease_seconds: float = 0.0) -> None:
        """Reject the writes of this table from now on if the lease has another term. Heartbeats renew the lease."""
        self._term, self._lease_seconds = term, lease_seconds

    def require_lease(self) -> None:
        """Raise ConductorReplaced if this table is fenced and another conductor has the lease."""
        if self._term is not None and self.conductor_lease().term != self._term:
            raise ConductorReplaced(self.conductor_lease().describe())

    def release_lease(self, state: TaskState) -> None:
        """Set the conductor's last state and give the lease up, in one transaction. Its later writes are rejected."""
        with self.signed_in():
            self._beat(CONDUCTOR, state)
            self.connection.execute("UPDATE crew_lease SET term = term + 1, holder = '', expires = 0")
