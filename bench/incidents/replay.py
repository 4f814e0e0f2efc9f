"""Replay incidents on one route with one client, and count what became of the calls."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.incidents.clients import Client, Direct, Route
from bench.incidents.litellm_policy import LiteLLM
from bench.incidents.rung_gateway import RungGateway
from bench.incidents.virtual_time import run
from bench.incidents.world import Call, Incident, Upstream, arrivals, outages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUTES: Final = ("one model", "two models", "two providers")
BEFORE_SECONDS: Final = 60.0  # calls that find everything well, before the incident begins
SHORT_MINUTES: Final = 30.0


@dataclass(slots=True)
class Tally:
    """What became of the calls that arrived during incidents."""

    calls: int = 0
    survived: int = 0
    short_calls: int = 0  # in incidents of at most half an hour
    short_survived: int = 0
    minutes: int = 0
    minutes_survived: int = 0
    waits: list[float] = field(default_factory=list)  # beyond the time of the answer itself, of calls that survived
    requests: int = 0

    @property
    def lost(self) -> int:
        """Return the calls that were not answered."""
        return self.calls - self.survived


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    gateway: str  # none, LiteLLM or Rung
    route: str
    client: Client
    shares: Sequence[float]
    per_minute: float


def replay(
    setting: Setting, incidents: Sequence[Incident], everything: Sequence[Incident], trace: Sequence[Call]
) -> Tally:
    """Replay incidents one after the other; each begins with a new gateway. Equal seeds: every setting meets the same."""
    tally = Tally()
    for number, incident in enumerate(sorted(incidents, key=lambda incident: incident.minutes)):
        random.seed(number)
        # Every second incident, in order of length, hits both models of a provider. The status pages do not say it.
        run(_one(setting, incident, everything, trace, number, tally, is_shared=number % 2 == 0))
    return tally


async def _one(
    setting: Setting,
    incident: Incident,
    everything: Sequence[Incident],
    trace: Sequence[Call],
    seed: int,
    tally: Tally,
    *,
    is_shared: bool,
) -> None:
    seconds = 60 * incident.minutes
    calls = [*arrivals(trace, setting.per_minute, seconds + BEFORE_SECONDS, random.Random(seed))]
    began = time.monotonic() + BEFORE_SECONDS
    outages = outages_of(incident, everything, setting.shares)
    outages["other model"] = outages["first"] if is_shared else []
    upstreams = {name: Upstream(rows, random.Random(f"{name} {seed}")) for name, rows in outages.items()}
    route = _route(setting, upstreams, began)
    results = await asyncio.gather(*(_call(setting.client, route, call, began) for call in calls))
    minutes: dict[int, bool] = {}
    for call, (is_ok, took) in zip(calls, results, strict=True):
        at = call.at - BEFORE_SECONDS
        if not 0 <= at < seconds:
            continue
        tally.calls += 1
        tally.survived += is_ok
        if incident.minutes <= SHORT_MINUTES:
            tally.short_calls += 1
            tally.short_survived += is_ok
        tally.waits += [took - call.seconds] if is_ok else []
        minutes[int(at // 60)] = minutes.get(int(at // 60), True) and is_ok
    tally.minutes += len(minutes)
    tally.minutes_survived += sum(minutes.values())
    tally.requests += sum(0 <= at < seconds for each in upstreams.values() for at in each.requests)


def _route(setting: Setting, upstreams: dict[str, Upstream], began: float) -> Route:
    if setting.gateway == "none":
        return Direct(upstreams, began)
    if setting.gateway == "Rung":
        return RungGateway(setting.route, upstreams, began)
    names = {"one model": ["first"], "two models": ["first", "other model"], "two providers": ["first", "second"]}
    return LiteLLM([upstreams[name] for name in names[setting.route]], began)


async def _call(client: Client, route: Route, call: Call, began: float) -> tuple[bool, float]:
    start = began - BEFORE_SECONDS + call.at
    await asyncio.sleep(start - time.monotonic())
    is_ok = await client.call(route, call)
    return is_ok, time.monotonic() - start
