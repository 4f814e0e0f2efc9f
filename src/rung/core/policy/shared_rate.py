"""Rate limit of which a process holds a slice; without a fleet, or while it is out of reach, the limit is its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.policy.slices import SharedLimit, SharedUse, SliceHolder, SliceRequest, unused, use_as_of

if TYPE_CHECKING:
    from rung.core.policy.slices import Lease

_KEPT_SHARE: Final = 20  # between calls, a process keeps one in so many of the tokens, in whole ones
IDLE_SECONDS: Final = 60.0  # after the last call, in which it does


class SharedRate:
    """Calls per minute: at most a minute's calls at once, refilled with time."""

    def __init__(self, per_minute: float) -> None:
        self._slice = SliceHolder()
        self.per_minute = per_minute
        self._own: SharedUse | None = None  # the use of a limit that is the process's own
        self._is_wanted = False
        self._needed = 0.0
        self._asked_at = -math.inf
        self.is_exhausted = False  # the shared limit had nothing left when it was asked last

    @property
    def per_minute(self) -> float:
        """Return the calls per minute."""
        return self.limit.amount

    @per_minute.setter
    def per_minute(self, calls: float) -> None:
        self.limit = SharedLimit(amount=calls, per_second=calls / 60)

    @property
    def is_own(self) -> bool:
        """Return whether the limit is that of this process alone."""
        return self._own is not None

    def own(self, now: float) -> None:
        """Let this process have the whole limit for itself."""
        if self._own is None:
            self._own = unused(self.limit, now)

    def take(self, now: float) -> bool:
        """Take one call; return False if there is none."""
        is_taken = self._slice.take(1.0, now) if self._own is None else self._take_own(self._own, now)
        self._is_wanted = self._is_wanted or not is_taken
        self._asked_at = now
        return is_taken

    def _take_own(self, own: SharedUse, now: float) -> bool:
        """Take one call of a limit that is not shared. The slice counts it, too: a fleet that is back is told of it."""
        own = use_as_of(self.limit, own, now)
        is_taken = own.used + 1 <= self.limit.amount
        self._own = replace(own, used=own.used + is_taken)
        self._slice.add(float(is_taken))
        return is_taken

    def is_used(self, now: float) -> bool:
        """Return whether this process has something to tell or to ask about the shared limit."""
        return self._slice.slack > 0 or now < self._asked_at + IDLE_SECONDS

    def seconds_per_call(self) -> float:
        """Return the seconds in which one call is refilled."""
        return 1 / self.limit.per_second

    def request(self, now: float) -> SliceRequest:
        """Return what to ask of the shared limit."""
        self._slice.minimum = math.floor(self.per_minute / _KEPT_SHARE) if now < self._asked_at + IDLE_SECONDS else 0
        self._needed, self._is_wanted = float(self._is_wanted), False
        return self._slice.request(now, self._needed)

    def apply(self, lease: Lease) -> None:
        """Use the slice of a lease of the shared limit."""
        self._own = None
        self._slice.apply(lease, self.limit.lease_seconds)
        self.is_exhausted = self._slice.slack < self._needed
