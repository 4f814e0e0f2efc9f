"""Slices of limits that the processes of a fleet share: each leases a slice and uses it without asking anybody.

One table, kept by the database, says what has been used and what each holder has leased. `exchange` is one step on it: a
holder tells what it has used and what it keeps, and gets more. `SliceHolder` is the other end. Both are pure: the time is
an argument, and neither assumes that a message arrives, or arrives once.

Used and leased amounts together never exceed the limit: a holder gives up what it returns before it says so, uses what it
gets only when it has been told, and counts the time of its lease from when it asked. So the clocks of holders may differ
by any amount; only their rates must agree to `MAX_CLOCK_DRIFT`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import ConfigError, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CLOCK_DRIFT: Final = 0.05  # by which the clock of a holder may be slower than the database's
_SHARES: Final = 2  # of what is left, all holders together get one in so many at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """Limit of all holders together, in tokens or dollars.

    `per_second` of what was used is refilled, up to `initial`, which is also what is there at first (None: all).
    A slice is valid for `lease_seconds` after the holder last asked. One that was neither renewed nor returned counts as
    used (`doubt_seconds` None: for limits that refill), or it stays leased for `doubt_seconds`, in which its holder may
    still tell what it used, and is then free.
    """

    amount: float
    per_second: float = 0.0
    initial: float | None = None
    lease_seconds: float = 10.0
    doubt_seconds: float | None = None

    def __post_init__(self) -> None:
        for key in ("amount", "per_second", "initial", "doubt_seconds"):
            value = getattr(self, key)
            if value is not None and not is_number(value):
                raise ConfigError(f"shared_limit.{key}", value, "a finite number, 0 or more")
        if not is_number(self.lease_seconds) or not self.lease_seconds > 0:
            raise ConfigError("shared_limit.lease_seconds", self.lease_seconds, "seconds, more than 0")

    @property
    def used_at_first(self) -> float:
        """Return the amount that counts as used before anything was."""
        return 0.0 if self.initial is None else max(0.0, self.amount - self.initial)


class Lease(NamedTuple):
    """Lease of one holder. `granted` and `used` are totals since the holder began; `until` is the database's time."""

    granted: float = 0.0
    used: float = 0.0
    until: float = 0.0
    number: int = 0  # of the holder's last request

    @property
    def out(self) -> float:
        """Return what the holder may have used since it last told."""
        return max(0.0, self.granted - self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """Use of a limit as of `at`, and the leases on it."""

    used: float
    at: float
    leases: Mapping[str, Lease] = field(default_factory=dict)

    @property
    def out(self) -> float:
        """Return what all holders have leased."""
        return sum(lease.out for lease in self.leases.values())


class SliceRequest(NamedTuple):
    """Report and request of a holder.

    `used`: all that it has used; `acknowledged`: the part of it that it knows to be counted. `keeps`: it will use no more
    than this in total until it is answered. `need`: less is of no use to it; `want`: what it would like to get.
    """

    number: int
    used: float = 0.0
    acknowledged: float = 0.0
    keeps: float = 0.0
    need: float = 0.0
    want: float = 0.0


def unused(limit: SharedLimit, now: float) -> SharedUse:
    """Return the table of a limit that nobody has used."""
    return SharedUse(used=limit.used_at_first, at=now)


def slice_size(left: float, holders: int, need: float, want: float) -> float:
    """Return how much a holder gets of what is `left`: all it wants while there is much, only what it needs near the end."""
    if left <= 0 or left < need:
        return 0.0
    share = left / (_SHARES * max(1, holders))
    return min(left, max(need, min(want, share)))


def use_as_of(limit: SharedLimit, use: SharedUse, now: float) -> SharedUse:
    """Return the table as of `now`: refilled, and without the slices of holders that are gone."""
    floor, elapsed = limit.used_at_first, max(0.0, now - use.at)
    used = use.used if use.used <= floor else max(floor, use.used - elapsed * limit.per_second)
    doubt = limit.doubt_seconds
    gone = {name for name, lease in use.leases.items() if now >= lease.until + (doubt or 0.0)}
    if doubt is None:
        used += sum(use.leases[name].out for name in gone)
    leases = {name: lease for name, lease in use.leases.items() if name not in gone}
    return SharedUse(used=used, at=max(now, use.at), leases=leases)


def exchange(
    limit: SharedLimit, use: SharedUse, holder: str, request: SliceRequest, now: float
) -> tuple[SharedUse, Lease]:
    """Apply a holder's request; return the new table and the holder's lease. A request that came before changes nothing."""
    use = use_as_of(limit, use, now)
    lease = use.leases.get(holder)
    if lease is not None and request.number <= lease.number:
        return use, lease
    if lease is None:  # new, or forgotten: then what it kept is no longer its own
        lease = Lease(granted=request.used, used=request.acknowledged)
    used = max(0.0, use.used + request.used - lease.used)
    kept = max(request.used, min(request.keeps, lease.granted))
    others = {name: other for name, other in use.leases.items() if name != holder}
    left = limit.amount - used - sum(other.out for other in others.values()) - (kept - request.used)
    live = 1 + sum(now < other.until for other in others.values())
    more = slice_size(left, live, request.need, request.want)
    lease = Lease(kept + more, request.used, now + limit.lease_seconds, request.number)
    return replace(use, used=used, leases={**others, holder: lease}), lease


def without(limit: SharedLimit, use: SharedUse, holder: str, request: SliceRequest, now: float) -> SharedUse:
    """Return the table after a holder has told what it used and has returned the rest."""
    use, _ = exchange(limit, use, holder, request._replace(keeps=0.0, need=0.0, want=0.0), now)
    return replace(use, leases={name: lease for name, lease in use.leases.items() if name != holder})


class SliceHolder:
    """The slice of one holder: what it may still use, and what it asks for next.

    It asks for what it used, or was refused, since it last asked, several times over, and at least for `minimum`; it
    returns what it has beyond twice of that. All times are on the holder's own clock.
    """

    __slots__ = (
        "_acknowledged",
        "_asked_used",
        "_number",
        "_refused",
        "_sent_at",
        "granted",
        "minimum",
        "until",
        "used",
    )

    _AHEAD: Final = 3.0  # how many times the use between two requests is leased

    def __init__(self, minimum: float = 0.0) -> None:
        self.minimum = minimum
        self.granted = self.used = self._acknowledged = self._asked_used = self._refused = 0.0
        self.until = self._sent_at = -math.inf
        self._number = 0

    @property
    def slack(self) -> float:
        """Return what is left of the slice, however old it is."""
        return max(0.0, self.granted - self.used)

    def left(self, now: float) -> float:
        """Return what may be used now."""
        return self.slack if now < self.until else 0.0

    def take(self, amount: float, now: float) -> bool:
        """Use an amount; return False, and use nothing, if the slice does not have it."""
        if self.left(now) >= amount:
            self.used += amount
            return True
        self._refused += amount
        return False

    def add(self, used: float) -> None:
        """Count an amount as used, or as returned if it is negative, whatever the slice has."""
        self.used += used

    def request(self, now: float, need: float = 0.0) -> SliceRequest:
        """Return the next request; what it returns is given up at once. Nothing is kept of a slice that has expired."""
        if now >= self.until:
            self.granted = self.used
        recent = max(0.0, self.used - self._asked_used) + self._refused
        target = max(self.minimum, need, self._AHEAD * recent)
        if self.slack > 2 * target:
            self.granted = self.used + target
        self._asked_used, self._refused, self._sent_at = self.used, 0.0, now
        self._number += 1
        want = max(0.0, target - self.slack)
        need = max(0.0, need - self.slack)
        return SliceRequest(self._number, self.used, self._acknowledged, self.granted, need, want)

    def apply(self, lease: Lease, lease_seconds: float) -> None:
        """Apply the answer to the last request; the answer to an earlier one is ignored."""
        if lease.number == self._number:
            self.granted, self._acknowledged = lease.granted, lease.used
            self.until = self._sent_at + lease_seconds * (1 - MAX_CLOCK_DRIFT)
