"""Route of a model call: the upstream and model that its first attempt is made with.

A model name stands for itself at the first upstream of the client's API, unless it is an alias, or a model of the policy
that names its upstream. Without an upstream of that API, the first model of the policy that can serve the call does. A
call that refers to history or files at its provider goes to an upstream that speaks the client's wire, or is rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.gateway.keys import RequestRejected
from rung.gateway.upstream.headers import headers_for_upstream
from rung.gateway.upstream.table import AT_OWN_PROVIDER, Target, has_same_api
from rung.wires.anthropic_threads import THREAD_NOT_FOUND
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
        _reject_empty(inbound)
        text = f"model {inbound.model!r} is served by {name!r}, which cannot answer this request: "
        raise RequestRejected(404, text + _reason(inbound), code=_code(inbound))
    inbound.listed = table.listed_model(policy.models, target, inbound.upstream)
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
    own = Target(inbound.upstream, inbound.upstream_model)
    if has_same_api(inbound.upstream, inbound) and not table.loses_history(own, inbound):
        return ""
    models = table.usable_models(policy.models, inbound)
    if models:
        return models[0].name
    if not inbound.is_self_contained():
        return _with_history(table, settings, policy, inbound)
    settings.first_upstream(inbound.wire.upstream)  # rejects the request: there is none
    return ""


def _with_history(table: UpstreamTable, settings: GatewaySettings, policy: Policy, inbound: InboundRequest) -> str:
    """Return the client's model at an upstream that can look the history of a request up; reject it if there is none."""
    _reject_empty(inbound)
    listed = {model.provider or model.name.partition("/")[0] for model in policy.models}
    for upstream in settings.of_wire(inbound.wire.upstream):
        if upstream.name not in listed and table.can_serve(Target(upstream, inbound.upstream_model), inbound):
            return f"{upstream.name}/{inbound.upstream_model}"
    text = (
        f"no upstream can answer this request: {AT_OWN_PROVIDER}, and no upstream speaks its API ({inbound.wire.name})"
    )
    raise RequestRejected(404, text, code=_code(inbound))


def _reject_empty(inbound: InboundRequest) -> None:
    """Reject a request without a conversation, such as one whose messages are no list, and a body that is not JSON."""
    if inbound.is_empty():
        field = {"responses": "input", "gemini": "contents"}.get(inbound.wire.name, "messages")
        raise RequestRejected(400, f"the request has no conversation: `{field}` must be a list that is not empty")


def _code(inbound: InboundRequest) -> str:
    """Return the code by which a client sends its whole conversation instead; empty if its API has none."""
    return THREAD_NOT_FOUND if inbound.continues_thread() else ""


def _reason(inbound: InboundRequest) -> str:
    if not inbound.is_self_contained():
        return AT_OWN_PROVIDER
    return "set `key_env` of that upstream, because the client's key is for another provider"
