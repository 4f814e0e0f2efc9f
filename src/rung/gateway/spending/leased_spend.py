"""Leases of this gateway on each spend limit: calls reserve from it without asking the journal.

Slices are needed where other processes spend from the same journal. A slice grows with what calls reserve, and is returned
when they stop. The journal is asked when a slice is used up: for the first call under a limit, for one that is larger than
what is left of the slice, and for every call when a limit is nearly spent. Runs on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.policy.slices import MAX_CLOCK_DRIFT
from rung.store.backends.postgres import PostgresBackend
from rung.store.fleet.spend_slices import LEASE_SECONDS, WantedSlice, lease_spend
from rung.store.spend_holds import SpendRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.policy.spend_limits import SpendLimit
    from rung.store.journal.journal import Journal

AHEAD: Final = 3.0  # how many times the dollars of the busiest recent second are leased
IDLE_RENEWALS: Final = 5  # after which a slice is returned that no call used
MAX_LIMITS: Final = 500  # of which slices are leased; each session has one
_ROUNDING: Final = 1e-9  # dollars
MAX_WANTED: Final = 50  # of which more is leased at a time: other processes wait meanwhile


@dataclass(slots=True)
class _Use:
    """Use of one limit: dollars reserved since the last renewal, and in the busiest second of late."""

    limit: SpendLimit
    reserved: float = 0.0
    busiest: float = 0.0
    newest: float = 0.0  # largest reservation since the last renewal
    largest: float = 0.0  # reservation of late
    idle: int = 0  # renewals since the last reservation

    def note(self, more: float) -> None:
        self.reserved += more
        self.newest, self.largest = max(self.newest, more), max(self.largest, more)

    def renew(self) -> None:
        self.busiest, self.largest = max(self.reserved, self.busiest / 2), max(self.newest, self.largest / 2)
        self.idle = 0 if self.reserved else self.idle + 1
        self.reserved = self.newest = 0.0


class LeasedSpend:
    """Dollars that this process holds of each limit in the journal, by the limit's id."""

    def __init__(
        self, journal: Journal, holder: str, held: Callable[[], Mapping[str, float]], held_of: Callable[[str], float]
    ) -> None:
        self._journal, self._holder, self._held, self._held_of = journal, holder, held, held_of
        self.is_fleet = isinstance(journal.backend, PostgresBackend)  # others may join at any time
        self.leased: dict[str, float] = {}
        self.valid_until = -math.inf
        self._uses: dict[str, _Use] = {}
        self._waiting: dict[str, float] = {}  # dollars of calls that wait for the journal: counted as held, not granted
        self.turn = asyncio.Lock()  # held while the journal is asked, and to give up what is leased

    @property
    def was_used(self) -> bool:
        """Return whether this process has ever leased anything."""
        return self.valid_until > -math.inf

    def covers(self, limits: Sequence[SpendLimit], now: float) -> bool:
        """Return whether all that calls have reserved, or wait to reserve, is within what is leased."""
        return self._covers(limits, now, {})

    def _covers(self, limits: Sequence[SpendLimit], now: float, others: Mapping[str, float]) -> bool:
        """Return whether what is held, without what `others` wait for, is within what is leased."""
        if now >= self.valid_until:
            return False
        return all(
            self._held_of(limit.id) - others.get(limit.id, 0.0) <= self.leased.get(limit.id, 0.0) + _ROUNDING
            for limit in limits
        )

    def note(self, limits: Sequence[SpendLimit], more: float) -> None:
        """Note that a call reserves dollars under these limits."""
        for limit in limits:
            use = self._uses.get(limit.id)
            if use is None:
                use = self._uses[limit.id] = _Use(limit)
            use.limit = limit
            use.note(more)

    async def reserve(self, limits: Sequence[SpendLimit], more: float, now: float) -> SpendRefusal | None:
        """Have the journal decide about a reservation that is counted already; return why it is refused."""
        self._wait(limits, more)
        try:
            async with self.turn:
                others = {limit.id: self._waiting[limit.id] - more for limit in limits}
                if self._covers(limits, now, others):
                    return None  # by what a call before this one leased
                wanted = [each for each in map(self._wanted, limits) if each is not None]
                answer = await self._lease(wanted, limits, more, now)
        finally:
            self._wait(limits, -more)
        return answer if isinstance(answer, SpendRefusal) else None

    def _wait(self, limits: Sequence[SpendLimit], more: float) -> None:
        for limit in limits:
            self._waiting[limit.id] = self._waiting.get(limit.id, 0.0) + more
            if self._waiting[limit.id] < _ROUNDING:
                del self._waiting[limit.id]

    async def renew(self, now: float) -> None:
        """Renew all slices for another lease; return what calls did not use, and lease more where they used much."""
        async with self.turn:
            for use in self._uses.values():
                use.renew()
            used = [(name, use) for name, use in self._uses.items() if use.idle < IDLE_RENEWALS]
            self._uses = dict(used[-MAX_LIMITS:])
            for name, leased in list(self.leased.items()):  # given up before the journal is told
                granted = self._held_of(name) - self._waiting.get(name, 0.0)
                kept = granted + (AHEAD * self._uses[name].busiest if name in self._uses else 0.0)
                self.leased[name] = min(leased, kept)
                if not self.leased[name]:
                    del self.leased[name]
            wanted = [each for use in self._uses.values() if (each := self._wanted(use.limit)) and each.want > 0]
            await self._lease(wanted[-MAX_WANTED:], (), 0.0, now)

    def forget(self, recorded: Mapping[str, float]) -> None:
        """Give up what has been spent and is in the journal now."""
        for name, dollars in recorded.items():
            if name in self.leased:
                self.leased[name] = max(0.0, self.leased[name] - dollars)

    def _wanted(self, limit: SpendLimit) -> WantedSlice | None:
        use = self._uses.get(limit.id)
        if use is None:
            return None
        slack = max(0.0, self.leased.get(limit.id, 0.0) - self._held_of(limit.id))
        return WantedSlice(limit, max(0.0, AHEAD * max(use.busiest, use.reserved) - slack), use.largest)

    async def _lease(
        self, wanted: Sequence[WantedSlice], limits: Sequence[SpendLimit], more: float, now: float
    ) -> Mapping[str, float] | SpendRefusal:
        if now >= self.valid_until:
            self.leased = {}  # it may be somebody else's by now
        held = {name: dollars - self._waiting.get(name, 0.0) for name, dollars in self._held().items()}
        answer = await asyncio.to_thread(
            lease_spend, self._journal, self._holder, held, dict(self.leased), wanted, limits, more
        )
        if not isinstance(answer, SpendRefusal):
            self.leased = dict(answer)
            self.valid_until = now + LEASE_SECONDS * (1 - MAX_CLOCK_DRIFT)
        return answer
