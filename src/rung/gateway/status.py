"""Status of a gateway as a JSON document: providers, keys, health, circuits, translations and cost. No secrets are in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.breaker import CircuitState
from rung.gateway.http.url import parse_url
from rung.gateway.model_listing import COUNT_TOKENS, MODELS
from rung.gateway.upstream.health import median_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.gateway.gateway import Gateway
    from rung.gateway.upstream.health import RouteHealth
    from rung.gateway.upstream.settings import UpstreamSettings

VERSION: Final = 1
_MAX_MODELS: Final = 20  # of an upstream, the latest
_OUTAGES: Final = 3  # failures of a provider in a row, after which it counts as failing
_FAMILIES: Final = ("", "claude", "gemini")  # names of models by which a provider chooses its wires


def gateway_status(gateway: Gateway, *, is_detailed: bool = True) -> dict[str, Any]:
    """Return the status. Without details it names no models and quotes no errors: they may be those of other clients."""
    now = gateway.clock.now()
    return {
        "v": VERSION,
        "at": now,
        "started_at": gateway.started_at,
        "running": gateway.active_requests,
        "fleet": gateway.fleet.status(),
        "upstreams": [_upstream(gateway, each, now, is_detailed) for each in gateway.settings.upstreams],
    }


def _upstream(gateway: Gateway, upstream: UpstreamSettings, now: float, is_detailed: bool) -> dict[str, Any]:  # noqa: FBT001
    health, name = gateway.health, upstream.name
    routes = health.of(name)
    keys, circuits = key_rows(gateway, upstream, now), _circuits(gateway, name, now)
    errors = [route.last_error for route in routes.values() if route.last_error is not None]
    last = max(errors, key=lambda error: error.at, default=None)
    failures: dict[str, int] = {}
    for route in routes.values():
        for kind, number in route.failures.items():
            failures[kind] = failures.get(kind, 0) + number
    return {
        "name": name,
        "type": upstream.type or upstream.wire,
        "host": parse_url(upstream.url).authority,
        "wires": _wires(gateway, upstream),
        "state": _state(routes, keys, circuits),
        "keys": keys,
        "successes": sum(route.successes for route in routes.values()),
        "failures": failures,
        "last_error": None if last is None else {**last._asdict(), "message": last.message if is_detailed else ""},
        "latency_p50": median_of(second for route in routes.values() for second in route.latencies),
        "last_seen": max((route.last_seen for route in routes.values()), default=None),
        "circuits": circuits if is_detailed else [{**circuit, "model": ""} for circuit in circuits],
        "probes": _probes(gateway, name) if is_detailed else [],
        "models": [_model(model, route) for model, route in list(routes.items())[-_MAX_MODELS:]] if is_detailed else [],
        "translated": [
            {"client": client, "upstream": wire, "calls": calls}
            for (each, client, wire), calls in health.translated.items()
            if each == name
        ],
        "dropped": {field: calls for (each, field), calls in health.dropped.items() if each == name},
        "dollars": round(sum(route.dollars for route in routes.values()), 6),
    }


def _model(model: str, route: RouteHealth) -> dict[str, Any]:
    return {
        "model": model,
        "successes": route.successes,
        "failures": dict(route.failures),
        "latency_p50": route.latency,
        "last_seen": route.last_seen,
        "dollars": round(route.dollars, 6),
    }


def _wires(gateway: Gateway, upstream: UpstreamSettings) -> list[str]:
    provider = gateway.upstream_table.provider(upstream)
    return list(dict.fromkeys(wire for family in _FAMILIES for wire in provider.wires_for(family)))


def key_rows(gateway: Gateway, upstream: UpstreamSettings, now: float) -> list[dict[str, Any]]:
    """Return the keys of an upstream by the names of their variables, with their states."""
    if not upstream.key_names:
        return []
    pool = gateway.upstream_table.key_pool(upstream)
    found = []
    for name in upstream.key_names:
        status, limited = pool.overall(name, now), pool.limited_models(name, now)
        state = "limited" if limited and status.is_usable(now) else str(status.state)
        until = status.until or max(limited.values(), default=None)
        found.append({"name": name, "state": state, "until": until, "models": sorted(limited)})
    return found


def _circuits(gateway: Gateway, upstream: str, now: float) -> list[dict[str, Any]]:
    """Return the circuits that are not closed. Those of one model are one, whoever its callers are."""
    found: dict[str, dict[str, Any]] = {}
    for key, breaker in gateway.breakers.items():
        name, _, rest = key.partition("/")
        if name != upstream or breaker.circuit is CircuitState.CLOSED or key.endswith((MODELS, COUNT_TOKENS)):
            continue
        model = rest.rpartition("/")[0]
        probe_in = round(breaker.seconds_until_probe(now), 1)
        found[model] = {"model": model, "state": str(breaker.circuit), "probe_in": max(0.0, probe_in)}
    return list(found.values())


def _probes(gateway: Gateway, upstream: str) -> list[dict[str, Any]]:
    """Return the models that calls were handed away from, and when one of them tries each again."""
    return [
        {"model": rest.rpartition("/")[0], "due_at": due_at}
        for route, due_at in gateway.route_probe.due_times().items()
        for name, _, rest in [route.partition("/")]
        if name == upstream
    ]


def _state(routes: Mapping[str, RouteHealth], keys: list[dict[str, Any]], circuits: list[dict[str, Any]]) -> str:
    """Return `failing` if calls fail now, `ok` if they do not, `unused` if there was none."""
    all_rest = bool(keys) and all(key["state"] != "usable" for key in keys)
    if circuits or all_rest or any(route.outages_in_row >= _OUTAGES for route in routes.values()):
        return "failing"
    return "ok" if routes else "unused"
