"""Circuit breaker: reject calls to a failing service, and admit one probe at a time to test whether it is back.

A call is enclosed by `admit` and `record`; no lock is held during the call. While the circuit is closed, a successful
call costs one append to a ring buffer; the failure rate is computed only after a failed call. A lock protects state
transitions only, so that exactly one of many threads becomes the probe.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import ConfigError, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable


class CircuitState(StrEnum):
    """State of a circuit."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallVerdict(StrEnum):
    """Result of a call as evidence about the service. NEUTRAL: cancelled, or the caller's own error."""

    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


# Reading a member of an enum class is slow in Python 3.11, and these are read on every call.
_CLOSED, _GOOD, _BAD = CircuitState.CLOSED, CallVerdict.GOOD, CallVerdict.BAD


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """Settings of a circuit breaker, which rejects attempts while a service fails.

    The circuit opens if at least `minimum` calls ended within `window` seconds and the share `rate` of them failed. Calls in
    flight count as not failed, but never for so many that a service whose calls all fail would not open it: quick failures
    end before slow successes do.

    Attributes:
        rate: Share of failed calls at which the circuit opens, from 0 to 1. Default: 0.5.
        minimum: Fewest calls in the window. Default: 100, so that a burst of quick failures among slow successes does not
            open it.
        window: Seconds that are looked at. Default: 60.
        pause: Seconds that the circuit stays open; then one probe is admitted. Default: 10.
        probe: Seconds after which a probe without a result is replaced by the next one. Default: 60.
        slow: Seconds from which on a call counts as failed; None: never. Default: None.
        enabled: Whether the circuit ever opens. Default: True.
        max_pause: The pause doubles with each failed probe, up to so many seconds; None: it stays the same.
        at_handover: Whether a call that leaves a failing service for another one opens the circuit, too, if no other call has
            succeeded meanwhile. Default: False, since calls without another service would be rejected.

    Raises:
        ConfigError: A value is not allowed.
    """

    rate: float = 0.5
    minimum: int = 100
    window: float = 60.0
    pause: float = 10.0
    probe: float = 60.0
    slow: float | None = None
    enabled: bool = True
    max_pause: float | None = None
    at_handover: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError("breaker.rate", self.rate, "a number above 0, at most 1")
        if not is_whole(self.minimum, 1):
            raise ConfigError("breaker.minimum", self.minimum, "a whole number, 1 or more")
        for key in ("window", "pause", "probe"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"breaker.{key}", getattr(self, key), "seconds, more than 0")
        for key in ("slow", "max_pause"):
            value = getattr(self, key)
            if value is not None and not value > 0:
                raise ConfigError(f"breaker.{key}", value, "seconds, more than 0, or left out")


class Permit(NamedTuple):
    """Permission to make one call. The result of a probe of an older generation is ignored."""

    generation: int
    probe: bool


class Breaker:
    """Circuit breaker of one key (a provider, a model, a decorated function)."""

    __slots__ = (
        "__weakref__",  # the registry that disables fast paths must not keep breakers alive
        "_failures_until_check",
        "_lock",
        "_recheck_at",
        "calls",
        "circuit",
        "closed_at",
        "counters",
        "fast_path_thread",
        "generation",
        "pause",
        "probing_since",
        "reopens_at",
        "settings",
        "slow",
        "wanted_at",
    )

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self.settings = settings or BreakerSettings()
        self.circuit = _CLOSED
        self.generation = 0
        self.reopens_at = 0.0
        self.closed_at = -math.inf  # the last successful probe
        self.pause = self.settings.pause  # of the next opening
        self.probing_since: float | None = None
        self.wanted_at = -math.inf  # when a call was last rejected
        # Infinity instead of None, so that the hot path needs one comparison only.
        self.slow = math.inf if self.settings.slow is None else self.settings.slow
        # Times of the latest calls, negated for failed ones. One float each, appended without a lock.
        self.calls: deque[float] = deque(maxlen=max(100, self.settings.minimum))
        # The thread whose guarded calls may skip `admit`; None while the circuit is not closed.
        self.fast_path_thread: int | None = None
        # Functions that count the calls in flight, by what they count. Called before the circuit opens.
        self.counters: dict[object, Callable[[], int]] = {}
        self._lock = Lock()
        self._reset_window()

    def admit(self, now: float) -> Permit | float:
        """Return a permit, or the seconds after which the next one may be available."""
        if self.circuit is _CLOSED:
            return Permit(self.generation, probe=False)
        with self._lock:
            return self._admit_probe(now)

    def record(self, permit: Permit | None, began: float, now: float, verdict: CallVerdict) -> None:
        """Record the end of a call; without a permit, it was made while the circuit was closed."""
        if verdict is _GOOD and now - began > self.slow:
            verdict = _BAD
        if permit is not None and permit.probe:
            with self._lock:
                self._record_probe(permit, now, verdict)
        elif verdict is _GOOD:
            self.calls.append(now)
        elif verdict is _BAD:
            self.calls.append(-now or -1e-9)
            self._failures_until_check -= 1
            if self._failures_until_check <= 0 or now >= self._recheck_at:
                with self._lock:
                    self._evaluate(now)

    def open_if_failing(self, since: float, now: float, pause: float) -> None:
        """Open the circuit for `pause` seconds if it is closed and no call has succeeded since a time."""
        with self._lock:
            has_success = self.closed_at >= since or any(at >= since for at in tuple(self.calls))
            if self.circuit is _CLOSED and self.settings.enabled and not has_success:
                self._open(now, pause)

    def postpone_probe(self, now: float, seconds: float) -> None:
        """Admit no probe for at least so many seconds, if the circuit is open: a failed call knows when to ask again."""
        with self._lock:
            if self.circuit is CircuitState.OPEN:
                self.reopens_at = max(self.reopens_at, now + seconds)

    def close(self, now: float) -> None:
        """Close the circuit after a call that succeeded without its permit."""
        with self._lock:
            if self.circuit is not _CLOSED:
                self._close(now)

    def hold_open(self, now: float, seconds: float) -> None:
        """Keep the circuit open, or open it, because of what another process has learned: no probe for so many seconds.

        A probe that is running is left alone.
        """
        with self._lock:
            if self.circuit is _CLOSED:
                if self.settings.enabled:
                    self._open(now, seconds)
            elif self.probing_since is None:
                self.circuit, self.reopens_at = CircuitState.OPEN, now + seconds

    def seconds_until_probe(self, now: float) -> float:
        """Return the seconds until an open circuit may admit a probe, if none is running; 0: now."""
        if self.circuit is _CLOSED:
            return 0.0
        reopens_at = self.reopens_at if self.circuit is CircuitState.OPEN else now
        lease_ends = now if self.probing_since is None else self.probing_since + self.settings.probe
        return max(0.0, reopens_at - now, lease_ends - now)

    def is_probed(self, now: float) -> bool:
        """Return whether a probe is running that has not taken too long."""
        return self.probing_since is not None and now < self.probing_since + self.settings.probe

    def rate(self, now: float) -> tuple[float, int]:
        """Return the share of failed calls within the window, and the number of calls in it."""
        recent = [at < 0 for at in self._recent(now)]
        return (sum(recent) / len(recent) if recent else 0.0), len(recent)

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return the state as JSON; times are relative, so that it can be restored on another clock."""
        probing = None if self.probing_since is None else now - self.probing_since
        return {
            "circuit": self.circuit.value,
            "generation": self.generation,
            "reopens_in": self.reopens_at - now if self.circuit is CircuitState.OPEN else 0.0,
            "probing_for": probing,
            "calls": [[now - abs(at), at < 0] for at in tuple(self.calls)],
        }

    def restore(self, saved: dict[str, Any], now: float) -> None:
        """Restore a state saved by `snapshot`."""
        self.circuit = CircuitState(saved["circuit"])
        self.fast_path_thread = None
        self.generation = int(saved["generation"])
        self.reopens_at = now + float(saved["reopens_in"])
        probing = saved["probing_for"]
        self.probing_since = None if probing is None else now - float(probing)
        self._reset_window()
        for age, bad in saved["calls"]:
            at = max(now - age, 1e-9)  # this clock may have started after the call
            self.calls.append(-at if bad else at)
        self._failures_until_check = 0  # evaluate at the next failed call

    def _admit_probe(self, now: float) -> Permit | float:
        self.wanted_at = now
        if self.circuit is CircuitState.OPEN:
            if now < self.reopens_at:
                return self.reopens_at - now
            self.circuit = CircuitState.HALF_OPEN
            self.probing_since = None
        if self.probing_since is not None:
            lease_ends = self.probing_since + self.settings.probe
            if now < lease_ends:
                return lease_ends - now
            self.generation += 1  # ignore a late result of the probe that timed out
        self.probing_since = now
        return Permit(self.generation, probe=True)

    def _record_probe(self, permit: Permit, now: float, verdict: CallVerdict) -> None:
        if permit.generation != self.generation:
            return
        self.probing_since = None
        # After a neutral result the next caller becomes the probe.
        if verdict is _BAD:
            if self.settings.max_pause is not None:
                self.pause = min(2 * self.pause, self.settings.max_pause)
            self._open(now, self.pause)
        elif verdict is _GOOD:
            self._close(now)

    def _evaluate(self, now: float) -> None:
        if self.circuit is not _CLOSED or not self.settings.enabled:
            return  # the call began before the circuit opened
        rate, count = self.rate(now)
        if count >= self.settings.minimum and rate >= self.settings.rate:
            missing = math.ceil(self.settings.rate * (count + self._in_flight(count)) - rate * count - 1e-9)
            if missing <= 0:
                self._open(now, self.pause)
            else:
                self._failures_until_check = missing  # fewer failures cannot outweigh the calls in flight
            return
        # The rate cannot be reached before this many more failures, or before the oldest call leaves the window.
        self._failures_until_check = self._failures_to_open(count) - round(rate * count)
        self._recheck_at = min(map(abs, self._recent(now)), default=now) + self.settings.window

    def _in_flight(self, ended: int) -> float:
        """Return the calls in flight, at most as many as leave the circuit to open if all calls that ended have failed."""
        most = ended * (1 - self.settings.rate) / self.settings.rate
        return min(most, sum(counter() for counter in tuple(self.counters.values())))

    def _open(self, now: float, pause: float) -> None:
        self.circuit = CircuitState.OPEN
        self.fast_path_thread = None
        self.generation += 1
        self.reopens_at = now + pause
        self._reset_window()

    def _close(self, now: float) -> None:
        self.circuit = _CLOSED
        self.probing_since = None
        self.closed_at = now
        self.pause = self.settings.pause
        self.generation += 1
        self._reset_window()

    def _reset_window(self) -> None:
        self.calls.clear()
        self._failures_until_check = self._failures_to_open(0)
        self._recheck_at = math.inf

    def _recent(self, now: float) -> list[float]:
        # A copy: other threads append meanwhile, and a deque must not change during iteration.
        return [at for at in tuple(self.calls) if now - abs(at) <= self.settings.window]

    def _failures_to_open(self, count: int) -> int:
        """Return how many of `count` calls must fail for the circuit to open."""
        needed = self.settings.rate * max(count, self.settings.minimum)
        return math.ceil(needed - 1e-9)  # float error: 0.07 * 100 is more than 7
