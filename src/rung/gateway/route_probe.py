"""Probes of routes that calls were handed away from: one call at a time tries the route, for all that wait for it.

A route is a circuit: upstream, model and credential. A probe is a real call that somebody makes anyway, so it costs
nothing; its result serves every session of the route. Runs on one event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ROUTES: Final = 5_000  # clients choose the names of models; the oldest are forgotten, which means healthy
_MAX_PAUSE_FACTOR: Final = 3  # of the shortest pause: sessions are back soon after an outage, however long it was
_DURATION_FACTOR: Final = 10  # a probe that fails slowly delays its caller: it is made in a tenth of the time at most


@dataclass(slots=True)
class _Outage:
    """A route that is not healthy."""

    pause: float
    due_at: float
    is_probed: bool = False


class RouteProbe:
    """Outages by route: when each may be tried again."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self.seconds = seconds  # shortest pause before a probe
        self._now = now
        self._outages: OrderedDict[str, _Outage] = OrderedDict()

    def is_healthy(self, route: str) -> bool:
        """Return whether nothing is known against a route."""
        return route not in self._outages

    def due_times(self) -> dict[str, float]:
        """Return the routes that are not healthy, and when each may be tried again."""
        return {route: outage.due_at for route, outage in self._outages.items()}

    def mark_failed(self, route: str) -> None:
        """Record that a call was handed away from a route."""
        if route in self._outages:
            return
        self._outages[route] = _Outage(self.seconds, self._now() + self.seconds)
        while len(self._outages) > MAX_ROUTES:
            self._outages.popitem(last=False)

    def mark_healthy(self, route: str) -> None:
        """Record that a call on a route succeeded: every session that left it may go back."""
        self._outages.pop(route, None)

    def begin(self, route: str) -> bool:
        """Return whether the caller is to try a route now. It must then call `mark_healthy`, or `end` in any case."""
        outage = self._outages.get(route)
        if outage is None or outage.is_probed or self._now() < outage.due_at:
            return False
        outage.is_probed = True
        return True

    def end(self, route: str, seconds: float = 0.0) -> None:
        """End a probe that did not succeed; `seconds`: how long it took. A probe that was cancelled took none."""
        outage = self._outages.get(route)
        if outage is None or not outage.is_probed:
            return
        outage.is_probed = False
        outage.due_at = self._now() + max(outage.pause, _DURATION_FACTOR * seconds)
        outage.pause = min(2 * outage.pause, _MAX_PAUSE_FACTOR * self.seconds)
