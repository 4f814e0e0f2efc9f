"""Paid attempts of one call: an estimate is reserved before each upstream request and settled with its usage."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.core.policy.model_prices import highest_price
from rung.core.policy.purses import Reservation
from rung.core.policy.spend_estimates import named_models, token_bound, unpriced_option
from rung.gateway import response as responses
from rung.gateway.keys import RequestRejected
from rung.gateway.spending.attempt_meter import AttemptMeter
from rung.gateway.spending.unpriced_calls import UnpricedCall, UnpricedUsage
from rung.wires.registry import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.usage import Usage
    from rung.core.policy.model_prices import ModelPrice
    from rung.gateway.gateway import Gateway
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.outbound import Outbound
    from rung.gateway.proxied_call import ProxiedCall
    from rung.gateway.response import GatewayResponse
    from rung.gateway.upstream.health import Route


_UNLIMITED: Final = Reservation()  # of all calls without limits


@dataclass(slots=True, kw_only=True)
class CallSpending:
    """Reserved and spent dollars of one call, over all its attempts."""

    reservation: Reservation = _UNLIMITED
    bound: tuple[int, int] | None = None  # the most tokens that the next attempt can use; None without limits
    price: ModelPrice | None = None  # of the next attempt; None without limits
    tokens: tuple[int, int] = (0, 0)
    dollars: float = 0.0
    attempt_dollars: float = 0.0  # of the last attempt
    cancelled_dollars: float = 0.0  # of the last attempt, if it was cancelled: no event has recorded them
    unpriced: list[UnpricedUsage] = field(default_factory=list)  # not in the dollars yet; empty with limits
    aside_dollars: float = 0.0  # of a probe or a summary: no attempt of the incident has them
    incident: tuple[str, int] | None = None  # id and number of events, once it has ended


async def admit(gateway: Gateway, inbound: InboundRequest) -> CallSpending:
    """Reserve the estimate of a call's first attempt; reject a call whose limits are exhausted or whose price is unknown."""
    if inbound.key_dollars is None and not gateway.ledger.limits.has_limits:
        return CallSpending()
    spending = CallSpending(reservation=await gateway.ledger.admit(inbound, gateway.clock.now()))
    if spending.reservation.limits:
        _request_usage(inbound)
        try:
            await _reserve(gateway, inbound, spending, inbound.model, inbound.body)
        except BaseException:
            gateway.ledger.purses.release(spending.reservation)
            raise
    return spending


def release(gateway: Gateway, proxied: ProxiedCall) -> None:
    """End a call: free what it still holds, and record the cost of what no event has recorded."""
    spending = proxied.spending
    gateway.ledger.purses.release(spending.reservation)
    record_unjournaled(gateway, proxied, proxied.inbound.model, spending.cancelled_dollars + spending.aside_dollars)
    if spending.unpriced and spending.incident is not None:
        _defer(gateway, proxied, 0.0, partial(gateway.accounting.charge, *spending.incident, gateway.clock.now()))
    elif spending.unpriced:
        context, upstream = gateway.incident_context_for(proxied.inbound), proxied.inbound.upstream.name
        model = spending.unpriced[-1].model
        _defer(gateway, proxied, 0.0, partial(gateway.accounting.add_unjournaled, context, model, upstream))


def book_success(gateway: Gateway, proxied: ProxiedCall, record: Callable[[float], None]) -> None:
    """Record a call that has succeeded, with its cost: at once, or when the price of its model is known."""
    proxied.spending.aside_dollars = 0.0  # the cost of the call has them
    if proxied.spending.unpriced:
        _defer(gateway, proxied, proxied.spending.dollars, record)
    else:
        record(proxied.spending.dollars)


def _defer(gateway: Gateway, proxied: ProxiedCall, dollars: float, record: Callable[[float], None]) -> None:
    spending, prices = proxied.spending, proxied.upstreams.settings.prices
    unpriced, spending.unpriced = spending.unpriced, []
    now, key_hash = gateway.clock.now(), proxied.inbound.key_hash
    gateway.unpriced_calls.add(UnpricedCall(now, unpriced, dollars, key_hash, prices, record))


def record_incident(gateway: Gateway, proxied: ProxiedCall, incident: str, events: int) -> None:
    """Note the incident of a call, which has ended after so many events, and charge it what its attempts do not have."""
    spending, now = proxied.spending, gateway.clock.now()
    if spending.aside_dollars:
        gateway.accounting.charge(incident, events, now, spending.aside_dollars)
        spending.aside_dollars, events = 0.0, events + 1
    spending.incident = (incident, events)


def record_unjournaled(gateway: Gateway, proxied: ProxiedCall, model: str, dollars: float) -> None:
    """Record a cost that no event of an incident carries."""
    if dollars:
        context = gateway.incident_context_for(proxied.inbound)
        gateway.accounting.add_unjournaled(context, model, proxied.inbound.upstream.name, dollars)


async def reserve_attempt(gateway: Gateway, proxied: ProxiedCall, model: str, body: bytes) -> None:
    """Reserve the estimate of a further attempt; raise the failure of an attempt that its limits forbid."""
    if not proxied.spending.reservation.limits:
        return
    try:
        await _reserve(gateway, proxied.inbound, proxied.spending, model, body)
    except RequestRejected as error:
        proxied.last_response = responses.rejection(proxied.inbound.wire, error)
        raise AttemptError(str(error), finding=Kind.BUDGET_EXHAUSTED) from None


async def paid_attempt(gateway: Gateway, proxied: ProxiedCall, outbound: Outbound) -> GatewayResponse | None:
    """Make one attempt whose estimate is reserved, and settle it however it ends."""
    proxied.meter = AttemptMeter(len(outbound.body))
    cancelled = abandoned = False
    try:
        return await proxied.attempt(outbound)
    except asyncio.CancelledError:
        cancelled = abandoned = True
        raise
    except AttemptError as error:
        abandoned = error.evidence.finding is Kind.TIMEOUT
        raise
    finally:
        _settle(gateway, proxied, outbound, abandoned=abandoned, cancelled=cancelled)
        gateway.health.add_cost(outbound.route, proxied.spending.attempt_dollars)


def settle_unpriced(gateway: Gateway, proxied: ProxiedCall) -> None:
    """Add the cost of what a call has used to the last attempt, where the price has become known."""
    spending, prices = proxied.spending, gateway.ledger.prices
    unpriced, spending.unpriced = spending.unpriced, []
    for each in unpriced:
        price = prices.price(each.model, proxied.upstreams.settings.prices)
        if price is None:
            spending.unpriced.append(each)
            continue
        dollars = gateway.unpriced_calls.charge(each, price, proxied.inbound.key_hash)
        spending.dollars += dollars
        spending.attempt_dollars += dollars


def _settle(gateway: Gateway, proxied: ProxiedCall, outbound: Outbound, *, abandoned: bool, cancelled: bool) -> None:
    inbound, spending = proxied.inbound, proxied.spending
    proxied.count_received()
    meter, wire = proxied.meter, inbound.wire
    reported = outbound.translated.usage if outbound.translated is not None else None
    if reported is not None:  # the client's wire may not say all that the upstream charges for
        usage = reported
    elif meter.usage:
        usage = wire.read_usage(meter.usage)
    else:
        usage = meter.estimated(wire, spending.bound, abandoned=abandoned, streamed=inbound.is_stream)
    dollars = settle_usage(gateway, proxied, outbound.route, outbound.model, usage)
    spending.attempt_dollars = dollars
    spending.cancelled_dollars = dollars if cancelled else 0.0


def settle_usage(gateway: Gateway, proxied: ProxiedCall, route: Route, model: str, usage: Usage) -> float:
    """Count the tokens that an attempt of a call has used; return their cost in US dollars.

    Where the price is still looked up, it is 0, and the call keeps the usage until then.
    """
    tokens = (usage.prompt, usage.output)
    if tokens == (0, 0):
        return 0.0
    spending = proxied.spending
    price = spending.price or gateway.ledger.prices.price(model, proxied.upstreams.settings.prices)
    dollars = gateway.ledger.settle(spending.reservation, proxied.inbound, model, price, usage, gateway.clock.now())
    if price is None and gateway.ledger.prices.is_awaited(model):
        spending.unpriced.append(UnpricedUsage(model, usage, route))
    elif price is None:
        gateway.unpriced_calls.report(model)
    gateway.accounting.count_usage(tokens, dollars)
    spending.tokens = (spending.tokens[0] + tokens[0], spending.tokens[1] + tokens[1])
    spending.dollars += dollars
    return dollars


async def _reserve(gateway: Gateway, inbound: InboundRequest, spending: CallSpending, model: str, body: bytes) -> None:
    ledger, now = gateway.ledger, gateway.clock.now()
    parsed: dict[str, Any] = inbound.parsed() if body is inbound.body else orjson.loads(body)
    if option := unpriced_option(parsed):
        raise RequestRejected(403, f"the price of `{option}` is unknown, and this call has a spend limit: leave it out")
    known, prices = gateway.settings.prices, []
    for each in named_models(model, parsed):
        price = ledger.prices.price(each, known)
        prices.append(price if price is not None else await ledger.find_price(inbound, each, known, now))
    price = spending.price = highest_price(prices)
    listed = gateway.policy(inbound.project).model(model)
    limit = inbound.wire.bodies.limit(parsed)
    max_output = listed.max_tokens if listed is not None else None
    betas = inbound.headers.get(b"anthropic-beta", b"").decode("latin-1")
    spending.bound = token_bound(parsed, len(body), limit, price, max_output, betas)
    await ledger.reserve(spending.reservation, price.highest_cost(spending.bound), now)


def _request_usage(inbound: InboundRequest) -> None:
    """Have a streamed chat completion report its usage, which is optional; the client does not see it."""
    body = inbound.parsed()
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    if inbound.wire is CHAT and body.get("stream") is True and options.get("include_usage") is not True:
        inbound.replace_body({**body, "stream_options": {**options, "include_usage": True}})
        inbound.hides_usage = True
