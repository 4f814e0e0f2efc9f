"""`GET /status`: who may read the status of a gateway, and its part of the Prometheus metrics."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.policy.key_pool import KeyState
from rung.gateway.keys import RequestRejected, authenticate
from rung.gateway.response import GatewayResponse
from rung.gateway.status import gateway_status, key_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.gateway.gateway import Gateway

STATUS_PATH: Final = "/status"
_JSON: Final = (b"content-type", b"application/json")
_NO_STORE: Final = (b"cache-control", b"no-store")
_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")  # a proxy on this machine passes it on
_HELP: Final = "# HELP rung_{0} {1}\n# TYPE rung_{0} {2}\n"


def answer_status(gateway: Gateway, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> GatewayResponse:
    """Return the status for a client of this machine, or, without details, for one with a key of the gateway."""
    is_local = _is_local(scope, headers)
    if not is_local:
        if not gateway.settings.keys:
            raise RequestRejected(403, "the status is served to clients on this machine only")
        authenticate(gateway.settings.keys, headers, gateway.clock.now(), gateway.ledger.spent)
    body = orjson.dumps(gateway_status(gateway, is_detailed=is_local))
    return GatewayResponse(200, [_JSON, _NO_STORE], body)


def _is_local(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    client = scope.get("client")
    if not client or any(name in headers for name in _FORWARDED):
        return False
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def upstream_metrics(gateway: Gateway) -> str:
    """Return the metrics of translations and keys in the Prometheus text format."""
    text = _HELP.format("translated_total", "Attempts at an upstream of another wire.", "counter")
    for (upstream, client, wire), calls in sorted(gateway.health.translated.items()):
        labels = f'upstream="{_escaped(upstream)}",client_wire="{client}",upstream_wire="{wire}"'
        text += f"rung_translated_total{{{labels}}} {calls}\n"
    text += _HELP.format("key_state", "1 for the state that a key of an upstream is in.", "gauge")
    for settings in gateway.settings.upstreams:
        for key in key_rows(gateway, settings, gateway.clock.now()):
            for state in KeyState:
                labels = f'upstream="{_escaped(settings.name)}",key="{_escaped(key["name"])}",state="{state}"'
                text += f"rung_key_state{{{labels}}} {int(key['state'] == state)}\n"
    return text


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
