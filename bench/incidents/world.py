"""The recorded world: incidents of providers with their severity, and arrivals of calls.

An incident is a stretch of time in which an upstream fails a share of its requests. The status pages say how severe it
was, not which share failed. `full` takes every incident as a total outage. `partial` maps the impact that the page
shows: none 10 %, minor 30 %, major 60 %, critical 100 %.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FULL: Final = (1.0, 1.0, 1.0, 1.0)
PARTIAL: Final = (0.1, 0.3, 0.6, 1.0)  # by impact: none, minor, major, critical
SERVICES: Final = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
TOKEN_SECONDS: Final = 0.02
FIRST_TOKEN_SECONDS: Final = 0.8


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident of an API. Times are minutes since the epoch."""

    provider: str
    start: float
    minutes: float
    impact: int


@dataclass(frozen=True, slots=True)
class Outage:
    """Stretch of simulated seconds in which an upstream fails a share of its requests."""

    start: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class Call:
    """One call: when it arrives and how long its answer takes, in seconds."""

    at: float
    seconds: float


def read_incidents(path: Path) -> list[Incident]:
    """Return the timed incidents of the two APIs; those without a duration, and maintenance, are left out."""
    found = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        service = SERVICES.get(row["provider"])
        if service in row["services"] and row["minutes"] and row["impact"] < len(FULL):
            start = datetime.fromisoformat(row["start"]).timestamp() / 60
            found.append(Incident(row["provider"], start, row["minutes"], row["impact"]))
    return found


def read_arrivals(path: Path) -> list[Call]:
    """Return the recorded hour of calls of coding assistants."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return [Call(row["t"], FIRST_TOKEN_SECONDS + TOKEN_SECONDS * row["out"]) for row in rows if row["k"] == "code"]


def arrivals(trace: Sequence[Call], per_minute: float, seconds: float, chance: random.Random) -> Iterator[Call]:
    """Yield calls for so many seconds: the trace from a random place, thinned to the rate; bursts stay bursts."""
    length = trace[-1].at + 1.0
    share = min(1.0, per_minute * length / 60 / len(trace))
    offset = chance.uniform(0, length)
    index = bisect_left(trace, offset, key=lambda call: call.at)
    base = -offset
    while True:
        for call in trace[index:]:
            if base + call.at >= seconds:
                return
            if chance.random() < share:
                yield Call(base + call.at, call.seconds)
        index, base = 0, base + length


def outages_of(incident: Incident, others: Sequence[Incident], shares: Sequence[float]) -> dict[str, list[Outage]]:
    """Return the outages by provider while an incident lasts: of its own provider, and of the other one at that time."""
    other = next(name for name in SERVICES if name != incident.provider)
    return {
        "first": [Outage(0.0, 60 * incident.minutes, shares[incident.impact])],
        "second": [
            Outage(
                60 * (each.start - incident.start),
                60 * (each.start + each.minutes - incident.start),
                shares[each.impact],
            )
            for each in others
            if each.provider == other
            and each.start < incident.start + incident.minutes
            and each.start + each.minutes > incident.start
        ],
    }


class Upstream:
    """A provider's model: fails a share of its requests while it has an outage, and counts them."""

    def __init__(self, outages: Sequence[Outage], chance: random.Random) -> None:
        self._outages = outages
        self._chance = chance
        self.requests: list[float] = []

    def fails(self, now: float) -> bool:
        """Return whether a request at this time fails."""
        self.requests.append(now)
        share = max((each.share for each in self._outages if each.start <= now < each.end), default=0.0)
        return self._chance.random() < share
