"""Calls that wait for a failing upstream share the probes of its circuit.

A circuit is an upstream, a model and a credential. A call that has used its retries, while no other call succeeded,
opens the circuit. One of the waiting calls is the probe when it is due. A probe that fails says when the next one is due:
when its call, alone, would ask again. When one succeeds, the others go on, spread by the times at which they poll. Runs on
one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import random
from typing import TYPE_CHECKING, Final, TypeVar

from rung.core.policy.breaker import CircuitState

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports.recovery import ServiceWait
    from rung.gateway.response import GatewayResponse

_RELEASED_PER_SECOND: Final = 100  # calls that go on after an outage, and polls during it
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.25, 5.0
_CLAIM_SECONDS: Final = 2.0  # between a call's turn and the start of its attempt
_MAX_CIRCUITS: Final = 5_000  # clients choose the names of models; the oldest are forgotten
_MAX_ERROR_BYTES: Final = 16_384


V = TypeVar("V")


class CircuitWaits:
    """Implements the engine's port `ServiceWaits` for all calls of a gateway."""

    def __init__(self, breakers: BreakerRegistry, now: Callable[[], float]) -> None:
        self._breakers = breakers
        self._now = now
        self._waiting: Counter[str] = Counter()
        self._claims: dict[str, float] = {}  # circuits whose probe a call is about to make, until when
        self._rescues: dict[str, float] = {}  # when a call of the circuit succeeded on another route
        self._errors: dict[str, GatewayResponse] = {}  # last error response of the upstream, by circuit

    @property
    def waiting(self) -> int:
        """Return the number of calls that wait."""
        return self._waiting.total()

    def is_waited_for(self, key: str) -> bool:
        """Return whether calls wait for a circuit."""
        return key in self._waiting

    async def wait(self, waiting: ServiceWait, seconds: float) -> bool:
        """Wait at most `seconds` for the call's turn: its circuit is closed again, or the call is to be the probe.

        Return True, too, when its patience is over.
        """
        key, now = waiting.key, self._now()
        breaker, pause = self._breakers.get(key), max(0.0, waiting.due - now)
        breaker.open_if_failing(waiting.since, now, pause)
        if waiting.has_probed:
            breaker.postpone_probe(now, pause)
        ends = min(now + seconds, waiting.until)
        self._waiting[key] += 1
        try:
            while not self._is_turn(waiting):
                left = ends - self._now()
                if left <= 0:
                    return False
                await asyncio.sleep(min(left, self._poll_seconds(key)))
            return True
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    def _is_turn(self, waiting: ServiceWait) -> bool:
        key, now = waiting.key, self._now()
        breaker = self._breakers.get(key)
        if now >= waiting.until or self._rescues.get(key, 0.0) > waiting.began:
            return True
        if breaker.circuit is CircuitState.CLOSED:
            # A probe has succeeded; or other calls succeed, and this one waits alone.
            return breaker.closed_at > waiting.began or now >= waiting.due
        if breaker.seconds_until_probe(now) > 0 or self._claims.get(key, 0.0) > now:
            return False
        _put_last(self._claims, key, now + _CLAIM_SECONDS)
        return True

    def _poll_seconds(self, key: str) -> float:
        interval = self._waiting[key] / _RELEASED_PER_SECOND
        return min(_MAX_POLL_SECONDS, max(_MIN_POLL_SECONDS, interval)) * (0.5 + random())  # noqa: S311  # spreads calls

    def record_rescue(self, key: str) -> None:
        """Note that a call of a circuit succeeded on another route, which those that wait can use as well."""
        _put_last(self._rescues, key, self._now())

    def retry_after(self, key: str) -> int:
        """Return the seconds after which a client may try an open circuit again; 0 if it is closed."""
        breaker = self._breakers.get(key)
        is_closed = breaker.circuit is CircuitState.CLOSED
        return 0 if is_closed else 1 + int(breaker.seconds_until_probe(self._now()))

    def busy_seconds(self) -> int:
        """Return the seconds after which a call that found no room may come again: after the next probe, if many wait."""
        return max(1, *map(self.retry_after, self._waiting)) if self._waiting else 1

    # -- errors of the upstream --------------------------------------------------------------------------

    def record_error(self, key: str, response: GatewayResponse | None) -> None:
        """Keep the last error response of an upstream, for calls of its circuit that end without one of their own.

        An upstream that did not answer at all (None) has no last error any more.
        """
        if response is not None and len(response.body) <= _MAX_ERROR_BYTES:
            _put_last(self._errors, key, response)
        else:
            self._errors.pop(key, None)

    def last_error(self, key: str) -> GatewayResponse | None:
        """Return the last error response of a circuit's upstream."""
        return self._errors.get(key)


def _put_last(table: dict[str, V], key: str, value: V) -> None:
    """Set the value of a circuit; forget the oldest one if there are too many."""
    table.pop(key, None)
    table[key] = value
    if len(table) > _MAX_CIRCUITS:
        del table[next(iter(table))]
