"""A circuit breaker: stop calling what keeps failing, and let exactly one probe find out if it is back.

It is two short steps around a call, `admit` and `ended`, and never a lock over the call itself.
While the circuit is closed a good call costs one append to a bounded ring; the rate is counted only
after a bad one. A lock guards the changes of state alone, so that of many threads exactly one probes.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import Any, NamedTuple

from rung.core.domain.errors import ConfigError, is_whole


class CircuitState(StrEnum):
    """Whether calls pass."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallVerdict(StrEnum):
    """What a finished call says about the service. NEUTRAL: cancelled, or the caller's own fault."""

    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


# Reading a member off an enum class is slow in Python 3.11, and these are read on every call.
_CLOSED, _GOOD, _BAD = CircuitState.CLOSED, CallVerdict.GOOD, CallVerdict.BAD


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """Opens when, of at least `minimum` calls within `window` seconds, `rate` failed or were slow.

    `slow` is the number of seconds after which a finished call counts as failed (None: never). The
    circuit stays open for `pause` seconds; then one probe is let through, and one whose result has
    not come within `probe` seconds gives its place back.
    """

    rate: float = 0.5
    minimum: int = 20
    window: float = 60.0
    pause: float = 30.0
    probe: float = 60.0
    slow: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError("breaker.rate", self.rate, "a number above 0, at most 1")
        if not is_whole(self.minimum, 1):
            raise ConfigError("breaker.minimum", self.minimum, "a whole number, 1 or more")
        for key in ("window", "pause", "probe"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"breaker.{key}", getattr(self, key), "seconds, more than 0")
        if self.slow is not None and not self.slow > 0:
            raise ConfigError("breaker.slow", self.slow, "seconds, more than 0, or left out")


class Permit(NamedTuple):
    """Leave to make one call. The result of a probe of an older generation is ignored."""

    generation: int
    probe: bool


class Breaker:
    """The state of one key (a provider, a model, a decorated function)."""

    __slots__ = (
        "__weakref__",  # whoever has to close all short ways must not keep any alive
        "_lock",
        "_look_at",
        "_patience",
        "calls",
        "circuit",
        "generation",
        "home",
        "probing_since",
        "reopens_at",
        "settings",
        "slow",
    )

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self.settings = settings or BreakerSettings()
        self.circuit = _CLOSED
        self.generation = 0
        self.reopens_at = 0.0
        self.probing_since: float | None = None
        # A plain float, so that the hot path can compare without asking whether it is set.
        self.slow = math.inf if self.settings.slow is None else self.settings.slow
        # When the latest calls were; below zero for a bad one. One float, appended without a lock.
        self.calls: deque[float] = deque(maxlen=max(100, self.settings.minimum))
        # The thread in which guarded calls need not ask for leave: none while the circuit is not closed.
        self.home: int | None = None
        self._lock = Lock()
        self._forget()

    def admit(self, now: float) -> Permit | float:
        """A permit, or the seconds after which it is worth coming back."""
        if self.circuit is _CLOSED:
            return Permit(self.generation, probe=False)
        with self._lock:
            return self._admit_probe(now)

    def ended(self, permit: Permit | None, began: float, now: float, vote: CallVerdict) -> None:
        """A call has ended; without a permit it was made while the circuit was closed."""
        if vote is _GOOD and now - began > self.slow:
            vote = _BAD
        if permit is not None and permit.probe:
            with self._lock:
                self._probed(permit, now, vote)
        elif vote is _GOOD:
            self.calls.append(now)
        elif vote is _BAD:
            self.calls.append(-now or -1e-9)
            self._patience -= 1
            if self._patience <= 0 or now >= self._look_at:
                with self._lock:
                    self._judge(now)

    def rate(self, now: float) -> tuple[float, int]:
        """The share of bad calls within the window, and how many calls it is a share of."""
        recent = [at < 0 for at in self._recent(now)]
        return (sum(recent) / len(recent) if recent else 0.0), len(recent)

    def snapshot(self, now: float) -> dict[str, Any]:
        """The state as JSON; times are relative, so that it can be restored on another clock."""
        probing = None if self.probing_since is None else now - self.probing_since
        return {
            "circuit": self.circuit.value,
            "generation": self.generation,
            "reopens_in": self.reopens_at - now if self.circuit is CircuitState.OPEN else 0.0,
            "probing_for": probing,
            "calls": [[now - abs(at), at < 0] for at in tuple(self.calls)],
        }

    def restore(self, saved: dict[str, Any], now: float) -> None:
        """Take up the state that `snapshot` saved."""
        self.circuit = CircuitState(saved["circuit"])
        self.home = None
        self.generation = int(saved["generation"])
        self.reopens_at = now + float(saved["reopens_in"])
        probing = saved["probing_for"]
        self.probing_since = None if probing is None else now - float(probing)
        self._forget()
        for age, bad in saved["calls"]:
            at = max(now - age, 1e-9)  # this clock may be younger than the call
            self.calls.append(-at if bad else at)
        self._patience = 0  # look at the next bad call

    def _admit_probe(self, now: float) -> Permit | float:
        if self.circuit is CircuitState.OPEN:
            if now < self.reopens_at:
                return self.reopens_at - now
            self.circuit = CircuitState.HALF_OPEN
            self.probing_since = None
        if self.probing_since is not None:
            lease_ends = self.probing_since + self.settings.probe
            if now < lease_ends:
                return lease_ends - now
            self.generation += 1  # the hung probe's result, should it ever come, is a stranger's
        self.probing_since = now
        return Permit(self.generation, probe=True)

    def _probed(self, permit: Permit, now: float, vote: CallVerdict) -> None:
        if permit.generation != self.generation:
            return
        self.probing_since = None
        # Neutral (cancelled, or not the service's fault): the next caller may probe.
        if vote is _BAD:
            self._open(now)
        elif vote is _GOOD:
            self._close()

    def _judge(self, now: float) -> None:
        if self.circuit is not _CLOSED:
            return  # a call from before it opened
        rate, count = self.rate(now)
        if count >= self.settings.minimum and rate >= self.settings.rate:
            self._open(now)
            return
        # Before so many more bad calls, or the oldest call's leaving the window, the rate cannot be reached.
        self._patience = self._bad_ones(count) - round(rate * count)
        self._look_at = min(map(abs, self._recent(now)), default=now) + self.settings.window

    def _open(self, now: float) -> None:
        self.circuit = CircuitState.OPEN
        self.home = None
        self.generation += 1
        self.reopens_at = now + self.settings.pause
        self._forget()

    def _close(self) -> None:
        self.circuit = _CLOSED
        self.generation += 1
        self._forget()

    def _forget(self) -> None:
        self.calls.clear()
        self._patience = self._bad_ones(0)
        self._look_at = math.inf

    def _recent(self, now: float) -> list[float]:
        # A copy: other threads append meanwhile, and a deque that grows cannot be walked.
        return [at for at in tuple(self.calls) if now - abs(at) <= self.settings.window]

    def _bad_ones(self, count: int) -> int:
        """How many of so many calls must be bad for the circuit to open."""
        needed = self.settings.rate * max(count, self.settings.minimum)
        return math.ceil(needed - 1e-9)  # 7 of 100 are 7 %, whatever 0.07 * 100 is in floats
