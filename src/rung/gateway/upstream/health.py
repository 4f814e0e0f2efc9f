"""Health of the upstreams from live traffic: attempts, failures, latency, translations and cost, by upstream and model.

Nothing is sent to find it out. Counts are those of this process, since its start. Runs on one event loop.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.classifier import classify
from rung.core.classify.redaction import redacted
from rung.core.domain.failures import is_passing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.core.domain.failures import Evidence
    from rung.gateway.outbound import Outbound

    Route = tuple[str, str]  # upstream and model

_MAX_ROUTES: Final = 1_000  # clients choose the names of models; the oldest are forgotten
_MAX_FIELDS: Final = 200  # of an upstream; clients choose the names of fields
_OTHER_FIELDS: Final = "other"
_LATENCIES: Final = 100  # of the latest attempts
_MESSAGE_CHARACTERS: Final = 200


class LastError(NamedTuple):
    """Latest failure, without secrets."""

    kind: str
    message: str
    at: float


@dataclass(slots=True)
class RouteHealth:
    """Health of one model of one upstream."""

    successes: int = 0
    failures: Counter[str] = field(default_factory=Counter)  # by kind
    outages_in_row: int = 0  # the latest attempts, all of which failed because of the provider
    last_error: LastError | None = None
    last_seen: float = 0.0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))  # seconds until the headers
    dollars: float = 0.0

    @property
    def latency(self) -> float | None:
        """Return the median latency of the latest successful attempts."""
        return median_of(self.latencies)


class UpstreamHealth:
    """Health of all upstreams of a gateway."""

    def __init__(self) -> None:
        self.routes: OrderedDict[Route, RouteHealth] = OrderedDict()
        self.translated: Counter[tuple[str, str, str]] = Counter()  # by upstream, client's wire and upstream's wire
        self.dropped: Counter[tuple[str, str]] = Counter()  # by upstream and field
        self._field_counts: Counter[str] = Counter()  # fields of `dropped`, by upstream

    def of(self, upstream: str) -> dict[str, RouteHealth]:
        """Return the models of an upstream, the latest last."""
        return {model: route for (name, model), route in self.routes.items() if name == upstream}

    def note_success(self, outbound: Outbound, client_wire: str, seconds: float, now: float) -> None:
        """Note a successful attempt, whose headers came after `seconds`."""
        route = self._note(outbound, client_wire, now)
        route.successes += 1
        route.outages_in_row = 0
        route.latencies.append(seconds)

    def note_failure(self, outbound: Outbound, client_wire: str, evidence: Evidence, now: float) -> None:
        """Note a failed attempt."""
        route, failure = self._note(outbound, client_wire, now), classify(evidence)
        route.failures[str(failure.kind)] += 1
        route.outages_in_row = route.outages_in_row + 1 if is_passing(failure) and not evidence.spare_keys else 0
        route.last_error = LastError(str(failure.kind), redacted(failure.headline(_MESSAGE_CHARACTERS)), now)

    def add_cost(self, route: Route, dollars: float) -> None:
        """Add the cost of an attempt."""
        if dollars:
            self._route(route).dollars += dollars

    def _note(self, outbound: Outbound, client_wire: str, now: float) -> RouteHealth:
        route = self._route(outbound.route)
        route.last_seen = now
        translated = outbound.translated
        if translated is not None:
            name = outbound.upstream.name
            self.translated[name, client_wire, outbound.wire] += 1
            for each in translated.dropped:
                self._note_dropped(name, each)
        return route

    def _note_dropped(self, upstream: str, name: str) -> None:
        """Count a field that an upstream's wire cannot say; beyond the maximum of an upstream, all others together."""
        if (upstream, name) not in self.dropped:
            if self._field_counts[upstream] >= _MAX_FIELDS:
                name = _OTHER_FIELDS
            else:
                self._field_counts[upstream] += 1
        self.dropped[upstream, name] += 1

    def _route(self, key: Route) -> RouteHealth:
        route = self.routes.get(key)
        if route is None:
            route = self.routes[key] = RouteHealth()
            if len(self.routes) > _MAX_ROUTES:
                self.routes.popitem(last=False)
        return route


def median_of(latencies: Iterable[float]) -> float | None:
    """Return the median, to the millisecond; None if there are no values."""
    values = list(latencies)
    return round(median(values), 3) if values else None
