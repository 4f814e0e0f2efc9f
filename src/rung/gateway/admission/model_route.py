"""Route of a model call: the upstream and model that its first attempt is made with.

A model name stands for itself at the first upstream of the client's API, unless it is an alias, or a model of the policy
that names its upstream. Without an upstream of that API, the first model of the policy that can serve the call does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.gateway.keys import RequestRejected
from rung.gateway.upstream.headers import headers_for_upstream
from rung.gateway.upstream.table import has_same_api
from rung.wires.registry import GEMINI

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.table import UpstreamTable


def route_model(table: UpstreamTable, settings: GatewaySettings, policy: Policy, inbound: InboundRequest) -> None:
    """Set upstream and model of a request; reject a request that no upstream can serve."""
    name = _served_by(table, settings, policy, inbound)
    if not name:
        return
    target = table.find(name, inbound.upstream)
    if not table.can_serve(target, inbound):
        text = f"model {inbound.model!r} is served by {name!r}, which cannot answer this request: "
        raise RequestRejected(404, text + _reason(inbound))
    if target.upstream is not inbound.upstream:
        inbound.upstream = target.upstream
        inbound.upstream_headers = headers_for_upstream(inbound.raw_headers, target.upstream)
    inbound.upstream_model = target.model
    if inbound.model != target.model and inbound.wire is not GEMINI:  # its path names the model
        inbound.replace_body({**inbound.parsed(), "model": target.model})


def _served_by(table: UpstreamTable, settings: GatewaySettings, policy: Policy, inbound: InboundRequest) -> str:
    """Return the name of the model that serves a request instead of the named one; empty: none does."""
    if settings.aliases and (alias := settings.alias(inbound.project, inbound.model)):
        return alias
    if "/" in inbound.model and policy.model(inbound.model) is not None:
        return inbound.model
    if has_same_api(inbound.upstream, inbound):
        return ""
    models = table.usable_models(policy.models, inbound)
    if not models:
        settings.first_upstream(inbound.wire.upstream)  # rejects the request: there is none
    return models[0].name


def _reason(inbound: InboundRequest) -> str:
    if not inbound.is_self_contained():
        return "it refers to history or files that only its own provider has"
    return "set `key_env` of that upstream, because the client's key is for another provider"
