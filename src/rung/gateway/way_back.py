"""The way back from a fallback: a session that left its model because of an outage returns when the outage is over.

Only between two answers. Sessions for which the cold cache of their own model would cost more than they save, and those
that left for another reason, such as a request that was too large, stay for `sticky_seconds`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.domain.failures import INFRASTRUCTURE_KINDS
from rung.core.policy.breaker import CallVerdict, CircuitState, Permit
from rung.core.policy.call_costs import returns_at_once
from rung.core.recovery.circuit import breaker_verdict
from rung.engine.first_attempt import FirstAttempt
from rung.gateway.spending.paid_attempts import paid_attempt

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.engine.session import Session
    from rung.gateway.gateway import Gateway
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.proxied_call import ProxiedCall


def route_of(gateway: Gateway, inbound: InboundRequest) -> str:
    """Return the route that a request names: the circuit of its own model and upstream."""
    return gateway.breaker_key(inbound, inbound.model, inbound.upstream.name)


def may_return(gateway: Gateway, inbound: InboundRequest, session: Session) -> bool:
    """Return whether a session goes back to its own model before `sticky_seconds`, although its cache there is cold."""
    ledger, known = gateway.ledger, gateway.settings.prices
    targets = (gateway.upstream_table.find(model, inbound.upstream) for model in (inbound.model, session.model))
    own, fallback = (ledger.prices.price(target.model, known) for target in targets)
    return returns_at_once(ledger.averages.of(inbound.session), own, fallback)


def is_away(gateway: Gateway, inbound: InboundRequest, session: Session) -> bool:
    """Return whether a session stays on another model, or on another upstream because of an outage."""
    return session.model != inbound.model or gateway.sessions.has_left(inbound)


def begins_probe(gateway: Gateway, inbound: InboundRequest, session: Session) -> bool:
    """Return whether a request of a session that is away is to try the route it left, as the only one now."""
    route = route_of(gateway, inbound)
    return (
        gateway.sessions.has_left(inbound)
        and may_return(gateway, inbound, session)
        and gateway.fleet.may_probe(route)
        and not gateway.breakers.get(route).is_probed(gateway.clock.now())
        and gateway.route_probe.begin(route)
    )


async def try_own_model(gateway: Gateway, proxied: ProxiedCall) -> FirstAttempt | None:
    """Make the first attempt on the model that the session left, as the probe of its route.

    Return None if it was not made, or failed before any output: then the fallback serves the request.
    """
    route = route_of(gateway, proxied.inbound)
    breaker, began = gateway.breakers.get(route), gateway.clock.now()
    if breaker.circuit is CircuitState.OPEN:
        breaker.hold_open(began, 0.0)  # the route has a schedule of its own
    answer = breaker.admit(began)
    permit = answer if isinstance(answer, Permit) else None
    try:
        value = await paid_attempt(gateway, proxied, proxied.original)
    except asyncio.CancelledError:
        breaker.record(permit, began, gateway.clock.now(), CallVerdict.NEUTRAL)
        gateway.route_probe.end(route)
        raise
    except Exception as error:  # noqa: BLE001  # any failed attempt
        return _after_failure(gateway, proxied, permit, FirstAttempt(began, gateway.clock.now(), error=error))
    ended = gateway.clock.now()
    breaker.record(permit, began, ended, CallVerdict.GOOD)
    breaker.close(ended)
    gateway.route_probe.mark_healthy(route)
    gateway.metrics.add("rung_probes_total", 'result="succeeded"')
    return FirstAttempt(began, ended, value)


def _after_failure(
    gateway: Gateway, proxied: ProxiedCall, permit: Permit | None, first: FirstAttempt
) -> FirstAttempt | None:
    """Return the failed attempt if it is to be recovered: the client has a part of it, or the model is not the reason."""
    route, failure = route_of(gateway, proxied.inbound), classify(first.error)
    is_outage = failure.kind in INFRASTRUCTURE_KINDS and not failure.evidence.spare_keys
    is_recovered = proxied.has_received() or not is_outage
    verdict = (
        CallVerdict.NEUTRAL if is_recovered else breaker_verdict(failure)
    )  # the recovery records its first failure
    gateway.breakers.get(route).record(permit, first.began, first.ended, verdict)
    gateway.metrics.add("rung_probes_total", f'result="{"failed" if is_outage else "succeeded"}"')
    if is_outage:
        gateway.route_probe.end(route, first.ended - first.began)
    else:
        gateway.breakers.get(route).close(first.ended)  # it answers: what it rejects is repaired there
        gateway.route_probe.mark_healthy(route)
    return first._replace(dollars=proxied.spending.dollars) if is_recovered else None


def note_success(gateway: Gateway, inbound: InboundRequest, session: Session, incident: Incident) -> None:
    """After a successful recovery: note whether the own model served it, or was left because of an outage."""
    route, request = route_of(gateway, inbound), incident.request
    if request is not None and gateway.breaker_key(inbound, request.model, request.agent) == route:
        gateway.route_probe.mark_healthy(route)
    elif any(each.kind in INFRASTRUCTURE_KINDS for each in incident.failures):
        gateway.circuit_waits.record_rescue(route)  # calls that wait for the route can follow
        first = incident.first_request
        stays = first is not None and session.first_request(first) is not first
        if stays or session.model != inbound.model:
            gateway.sessions.mark_left(inbound)
            gateway.route_probe.mark_failed(route)
