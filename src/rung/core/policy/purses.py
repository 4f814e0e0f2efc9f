"""Purses: the dollars spent and reserved under each spend limit. Every paid attempt reserves before it is made.

A call is admitted while the spent and the reserved dollars are below each of its limits. It then reserves an upper
bound of its cost and settles with what it used. So all calls together exceed a limit by at most one call's estimate,
however many run at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Final

from rung.core.domain.dollars import format_dollars
from rung.core.policy.spend_limits import renewal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rung.core.policy.spend_limits import SpendLimit


_ROUNDING: Final = 1e-9  # dollars that remain of sums which should be zero


@dataclass(slots=True, kw_only=True, eq=False)
class Reservation:
    """Dollars that one call holds under its limits, from its admission to its end."""

    limits: Sequence[SpendLimit] = ()
    held: float = 0.0


class Purses:
    """Dollars by the id of a spend limit. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.reserved: dict[str, float] = {}
        self.reserved_elsewhere: Mapping[str, float] = {}  # by other processes that share the journal
        self._lock = Lock()

    def reserve(self, reservation: Reservation, dollars: float) -> SpendLimit | None:
        """Raise the hold of a call to this many dollars. Return the limit that forbids it; None if it is granted.

        A call that already holds as much needs no more: a retry is not starved by calls that were admitted after it, nor a
        larger one by its own hold.
        """
        more = max(0.0, dollars - reservation.held)
        if not more and reservation.held:
            return None
        with self._lock:
            exhausted = self.exhausted(reservation.limits, reservation.held)
            if exhausted is None:
                self._hold(reservation, more)
            return exhausted

    def settle(self, reservation: Reservation, dollars: float) -> None:
        """Count the cost of an attempt as spent and take it from the call's hold."""
        if not reservation.limits:
            return
        with self._lock:
            for limit in reservation.limits:
                self.spent[limit.id] = self.spent.get(limit.id, 0.0) + dollars
            self._hold(reservation, -min(dollars, reservation.held))

    def release(self, reservation: Reservation) -> None:
        """End a call: free what it still holds."""
        if not reservation.held:
            return
        with self._lock:
            self._hold(reservation, -reservation.held)

    def add(self, name: str, dollars: float) -> None:
        """Count dollars as spent that were not reserved."""
        with self._lock:
            self.spent[name] = self.spent.get(name, 0.0) + dollars

    def record(self, name: str, dollars: float) -> None:
        """Apply a total from a journal, which may lag behind this process: the larger one counts."""
        with self._lock:
            self.spent[name] = max(dollars, self.spent.get(name, 0.0))

    def used(self, name: str) -> float:
        """Return the dollars spent and reserved under a limit, by every known process."""
        return self.spent.get(name, 0.0) + self.reserved.get(name, 0.0) + self.reserved_elsewhere.get(name, 0.0)

    def left(self, limit: SpendLimit) -> float:
        """Return the dollars of a limit that are not spent; some of them may be reserved."""
        return max(0.0, limit.limit - self.spent.get(limit.id, 0.0))

    def exhausted(self, limits: Iterable[SpendLimit], own: float = 0.0) -> SpendLimit | None:
        """Return the first limit under which nothing is left to reserve for a call that holds `own` dollars."""
        return next((limit for limit in limits if self.used(limit.id) - own >= limit.limit), None)

    def _hold(self, reservation: Reservation, more: float) -> None:
        reservation.held += more
        for limit in reservation.limits:
            held = self.reserved.get(limit.id, 0.0) + more
            if held > _ROUNDING:
                self.reserved[limit.id] = held
            else:
                self.reserved.pop(limit.id, None)


def refusal(limit: SpendLimit, left: float, now: float) -> str:
    """Describe why a call is refused: what is left of the limit, and when it renews."""
    if left > 0:
        return (
            f"the {format_dollars(left)} left of the {format_dollars(limit.limit)} for this {limit.scope} are reserved by calls in flight;"
            " try again when they have ended"
        )
    at = renewal(limit, now)
    when = "does not renew" if at is None else f"renews on {datetime.fromtimestamp(at, UTC):%Y-%m-%d} (UTC)"
    return (
        f"budget of {format_dollars(limit.limit)} for this {limit.scope} is spent (spend limit): $0.00 left; it {when}"
    )
