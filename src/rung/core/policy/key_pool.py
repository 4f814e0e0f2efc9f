"""Keys of one upstream: what a failure says about the key of an attempt, and which key is taken next. Pure functions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rung.core.domain.failures import Failure


class KeyState(StrEnum):
    """State of a key. All but the first end at a known time."""

    USABLE = "usable"
    LIMITED = "limited"  # a rate limit of one model
    EXHAUSTED = "exhausted"  # the quota or the credit of its account
    DEAD = "dead"  # refused


class KeyStatus(NamedTuple):
    """State of a key, and when it is usable again, in UTC seconds."""

    state: KeyState = KeyState.USABLE
    until: float = 0.0

    def is_usable(self, now: float) -> bool:
        """Return whether an attempt may be made with the key."""
        return now >= self.until


USABLE: Final = KeyStatus()
MIN_SECONDS: Final = 1.0  # a wait of 0 s would make the key the next one again at once
LIMITED_SECONDS: Final = 10.0  # of a rate limit that names no wait
EXHAUSTED_SECONDS: Final = 3_600.0  # of a quota that names no reset
DEAD_SECONDS: Final = 600.0  # a key may be enabled again, or paid for
_STATES: Final = {
    Kind.RATE_LIMIT: (KeyState.LIMITED, LIMITED_SECONDS),
    Kind.QUOTA_EXHAUSTED: (KeyState.EXHAUSTED, EXHAUSTED_SECONDS),
    Kind.AUTH_ERROR: (KeyState.DEAD, DEAD_SECONDS),
    Kind.MISSING_CREDENTIALS: (KeyState.DEAD, DEAD_SECONDS),
}


def status_after(failure: Failure, now: float) -> KeyStatus | None:
    """Return the status of a key after a failure; None if the failure says nothing about the key."""
    found = _STATES.get(failure.kind)
    if found is None:
        return None
    state, seconds = found
    if state is not KeyState.DEAD and failure.retry_after is not None:
        seconds = failure.retry_after
    return KeyStatus(state, now + max(MIN_SECONDS, seconds))


def later(one: KeyStatus, other: KeyStatus) -> KeyStatus:
    """Return the status that lasts longer: a key is usable when all its limits have reopened."""
    return one if one.until >= other.until else other


def usable_keys(
    names: Sequence[str], statuses: Mapping[str, KeyStatus], now: float, tried: Collection[str] = ()
) -> list[str]:
    """Return the keys that may be used now and were not `tried`, in their order."""
    return [name for name in names if name not in tried and statuses.get(name, USABLE).is_usable(now)]


def first_to_reopen(names: Sequence[str], statuses: Mapping[str, KeyStatus]) -> str:
    """Return the key that is usable again before the others."""
    return min(names, key=lambda name: statuses.get(name, USABLE).until)
