"""Handle one request: the first attempt, and recovery by the engine on the project's ladder if it fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.conversation.compaction import SUMMARY_PROMPT, summarizable_text, with_summary
from rung.core.domain.errors import AttemptError
from rung.core.domain.events import AttemptFailed
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Kind, is_passing
from rung.core.text.printable import printable
from rung.engine.attempt_api import report_cost
from rung.engine.first_attempt import FirstAttempt, attempt_first
from rung.engine.recover import recover
from rung.engine.session import Session
from rung.gateway.body_rewriter import BodyRewriter, RungNotApplicable
from rung.gateway.client_timeout import answer_within
from rung.gateway.final_error import send_final_error
from rung.gateway.http.port import is_ok, read_body
from rung.gateway.inbound_request import NotJson
from rung.gateway.keys import RequestRejected
from rung.gateway.outbound import outbound_for
from rung.gateway.response import rejection
from rung.gateway.sessions import session_id
from rung.gateway.spending.paid_attempts import (
    book_success,
    paid_attempt,
    record_incident,
    reserve_attempt,
    settle_unpriced,
    settle_usage,
)
from rung.gateway.upstream.table import AT_OWN_PROVIDER
from rung.gateway.way_back import begins_probe, is_away, may_return, note_success, route_of, try_own_model
from rung.wires.anthropic_threads import THREAD_NOT_FOUND

if TYPE_CHECKING:
    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Model, Policy
    from rung.gateway.detector_port import DetectorResult
    from rung.gateway.gateway import Gateway
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.proxied_call import ProxiedCall
    from rung.gateway.response import GatewayResponse
    from rung.store.replay_orders import ReplayOrder

_SUMMARY_TOKENS: Final = 2_000
_MAX_LOGGED_CHARS: Final = 80  # of the name of a model


async def handle(gateway: Gateway, proxied: ProxiedCall) -> None:
    """Handle a request: most need one attempt, the others are recovered."""
    inbound, now = proxied.inbound, gateway.clock.now()
    if inbound.listed is not None:
        await _fit_first(gateway, proxied, inbound.listed)
    pinned = await gateway.pinned_models.read(inbound)
    session = Session(model=pinned, id=session_id(inbound)) if pinned else _session(gateway, inbound, now)
    if session is not None and session.model != inbound.model and _loses_history(gateway, inbound, session.model):
        session = Session(model=inbound.model, id=session_id(inbound))  # of this call; the moved one stays
    result = _inspect_request(proxied) if proxied.upstreams.inspect is not None else None
    nudge = result.nudge if result is not None else ""
    first = None
    if result is not None and result.evidence is not None:
        first = FirstAttempt(now, now, error=AttemptError.of(result.evidence))
    elif not nudge:
        if session is None or not is_away(gateway, inbound, session):
            breaker = gateway.breakers.get(route_of(gateway, inbound))
            make = partial(paid_attempt, gateway, proxied, proxied.original)
            first = await attempt_first(make, breaker, gateway.retry_budget, gateway.clock)
        elif not pinned and begins_probe(gateway, inbound, session):
            first = await try_own_model(gateway, proxied)
            if first is not None:  # the session is back, also if this request failed
                gateway.sessions.forget(inbound)
                session = None
        if first is not None and first.error is None:
            if first.value is not None:
                await proxied.reply(first.value)
            record = gateway.accounting.record_success(
                inbound,
                gateway.incident_context_for(inbound),
                first.began,
                first.ended,
                proxied.spending.tokens,
                proxied.upstreams.settings,
            )
            book_success(gateway, proxied, record)
            return
    await _recover(gateway, proxied, session or gateway.sessions.get_or_create(inbound, now), first, nudge, now)


async def _fit_first(gateway: Gateway, proxied: ProxiedCall, listed: Model) -> None:
    """Fit the first request to the limits of a listed model; leave a body that is not JSON to the upstream to reject."""
    with suppress(NotJson):
        await _rewriter(gateway, proxied, gateway.policy(proxied.inbound.project)).fit_first(listed)


def _rewriter(gateway: Gateway, proxied: ProxiedCall, policy: Policy) -> BodyRewriter:
    model = proxied.upstreams.settings.summary_model
    can_summarise = model and proxied.inbound.may_use(model)
    return BodyRewriter(proxied, policy, partial(_summarise_or_skip, gateway, proxied) if can_summarise else None)


async def _summarise_or_skip(gateway: Gateway, proxied: ProxiedCall, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with a summary. If there is none, turns are left out instead: an attempt without it may succeed."""
    try:
        return await _summarise(gateway, proxied, body)
    except (AttemptError, OSError, ValueError) as error:
        raise RungNotApplicable(f"{proxied.upstreams.settings.summary_model} returned no summary: {error}") from None


def _session(gateway: Gateway, inbound: InboundRequest, now: float) -> Session | None:
    """Return the session of a request, if it is known; one whose own model is back from an outage returns to it."""
    session = gateway.sessions.find(inbound, now)
    if session is None or not gateway.sessions.has_left(inbound):
        return session
    if not gateway.route_probe.is_healthy(route_of(gateway, inbound)) or not may_return(gateway, inbound, session):
        return session
    gateway.sessions.forget(inbound)
    return None


def _loses_history(gateway: Gateway, inbound: InboundRequest, model: str) -> bool:
    """Return whether a request would lose its history on another model."""
    table = gateway.upstream_table
    return table.loses_history(table.find(model, inbound.upstream), inbound)


def _inspect_request(proxied: ProxiedCall) -> DetectorResult | None:
    """Run detectors on a request and note their warning; leave a body that is not JSON to the upstream to reject."""
    assert proxied.upstreams.inspect is not None  # noqa: S101  # the caller checks it
    try:
        result = proxied.upstreams.inspect(proxied.inbound, None, ())
    except NotJson:
        return None
    if result is not None and result.warning:
        proxied.writer.notes["warning"] = result.warning
    return result


async def recover_ordered(gateway: Gateway, proxied: ProxiedCall, order: ReplayOrder, *, is_prompt: bool) -> bool:
    """Make a call again that an operator orders; return whether it succeeded.

    `is_prompt`: the request consists of the order's prompt, so that nothing is added to it.
    """
    if is_prompt:
        order = order._replace(intervention=order.intervention._replace(prompt=""))
    session = Session(proxied.inbound.model, order.session)
    return await _recover(gateway, proxied, session, None, "", gateway.clock.now(), order)


async def _recover(
    gateway: Gateway,
    proxied: ProxiedCall,
    session: Session,
    first: FirstAttempt | None,
    nudge: str,
    began: float,
    order: ReplayOrder | None = None,
) -> bool:
    """Recover a request whose first attempt failed or was not made. It was received when it `began`."""
    inbound, spending = proxied.inbound, proxied.spending
    inbound.session = inbound.session or session.id
    await gateway.policies.refresh()
    await _find_prices(gateway, proxied)
    settle_unpriced(gateway, proxied)
    if first is not None:
        first = first._replace(dollars=spending.dollars)
    else:  # a probe of the model that the session left may have failed
        spending.aside_dollars += spending.dollars
    pinned = await gateway.pinned_models.read(inbound)  # once more: the first attempt may have taken long
    policy = _as_patient_as_client(gateway, proxied, began)
    proxied.attempt_seconds = policy.attempt_seconds
    rewriter = _rewriter(gateway, proxied, policy)
    progress = _Progress(gateway, proxied, policy)
    request = rewriter.first
    was_attempted = first is not None and first.ended > first.began
    if session.model and session.model != inbound.model and not was_attempted:
        request = await rewriter.on_model(session.model)  # a call in flight during a switch follows it when it fails
    if nudge:
        request = rewriter.with_nudge(request, nudge)

    async def attempt(request: Request) -> GatewayResponse | None:
        progress.note()
        outbound = rewriter.outbound(request)
        if not inbound.may_use(request.model) and not inbound.may_use(
            outbound.model
        ):  # an operator may order any model
            raise AttemptError(f"model {request.model!r} is not allowed for this key", finding=Kind.PERMISSION_DENIED)
        if outbound.translated is not None and not inbound.is_self_contained():
            raise AttemptError(
                f"{request.model} cannot answer this request: {AT_OWN_PROVIDER}", finding=Kind.INVALID_REQUEST
            )
        await reserve_attempt(gateway, proxied, outbound.model, outbound.body)
        try:
            return await paid_attempt(gateway, proxied, outbound)
        finally:
            settle_unpriced(gateway, proxied)
            if proxied.accepted:
                rewriter.mark_accepted()
            report_cost(spending.attempt_dollars)

    attempt.__module__, attempt.__qualname__ = "gateway", printable(inbound.model[:_MAX_LOGGED_CHARS])  # for the log
    outcome: Outcome[GatewayResponse | None] = await recover(
        attempt,
        request,
        policy=policy.replace(attempt_seconds=None),  # held by the attempt itself, which knows what the client received
        first=first,
        rung_handlers=rewriter.rung_handlers(),
        listeners=(progress,),
        session=session,
        journal=gateway.journal_for(inbound, pinned),
        breakers=gateway.breakers,
        retry_budget=gateway.retry_budget,
        service_waits=gateway.circuit_waits,
        key=lambda changed: gateway.breaker_key(inbound, changed.model, changed.agent) if changed is not None else "",
        incident_id="" if order is None else order.id,
        intervention=None if order is None else order.intervention,
    )
    record_incident(gateway, proxied, progress.incident.id, len(outcome.events))
    progress.note()
    proxied.writer.notes["outcome"] = str(outcome.status)
    gateway.accounting.record_recovery(
        proxied.inbound, progress.incident, outcome, policy, proxied.writer.attempts, spending.tokens
    )
    if outcome.ok:
        note_success(gateway, inbound, session, progress.incident)
    if not outcome.ok:
        assert outcome.failure is not None  # noqa: S101  # an outcome that is not ok has a failure
        await _send_failure(gateway, proxied, outcome.failure)
    elif outcome.value is not None and not proxied.writer.finished:
        await proxied.reply(outcome.value)
    return outcome.ok


async def _find_prices(gateway: Gateway, proxied: ProxiedCall) -> None:
    """Look up the prices and context windows that a recovery needs; wait for them where a limit in dollars judges a fallback by its cost."""
    inbound, prices = proxied.inbound, gateway.ledger.prices
    policy = gateway.policy(inbound.project)
    for model in (inbound.model, *(each.name for each in policy.models)):
        name = gateway.upstream_table.find(model, inbound.upstream).model
        prices.request(name, inbound.key_hash, gateway.clock.now())
    prices.start()
    if policy.budget.dollars is not None or proxied.spending.reservation.limits:
        await prices.look_up()


async def _send_failure(gateway: Gateway, proxied: ProxiedCall, failure: Failure) -> None:
    """End the response after a failed recovery: by asking for the turns of a thread, if another provider can answer then."""
    inbound = proxied.inbound
    if (failure.kind in INFRASTRUCTURE_KINDS or failure.kind is Kind.AUTH_ERROR) and _needs_whole_thread(
        gateway, proxied
    ):
        text = "the provider that has this thread is unavailable: send the whole conversation, for another provider"
        await proxied.writer.reply(rejection(inbound.wire, RequestRejected(404, text, code=THREAD_NOT_FOUND)))
        return
    await send_final_error(proxied, failure, gateway.circuit_waits, route_of(gateway, inbound))


def _as_patient_as_client(gateway: Gateway, proxied: ProxiedCall, began: float) -> Policy:
    """Return the policy of a request. It waits for a failing upstream no longer than the client waits for an answer."""
    inbound, settings = proxied.inbound, proxied.upstreams.settings
    policy = gateway.policy_for(inbound, settings, proxied.spending.dollars)
    if _needs_whole_thread(gateway, proxied):
        return policy.replace(patience=0.0)
    answer_by = began + answer_within(inbound.headers, settings.client_timeout_seconds)
    return policy.replace(patience=max(0.0, min(policy.patience, answer_by - gateway.clock.now())))


class _Progress:
    """Recovery listener: keeps the x-rung-* response headers, and the last error of each circuit, up to date."""

    incident: Incident

    def __init__(self, gateway: Gateway, proxied: ProxiedCall, policy: Policy) -> None:
        self._gateway = gateway
        self._proxied = proxied
        self._rungs = policy.ladder.rungs
        self._is_recorded = False

    def __call__(self, event: Event, incident: Incident) -> None:
        self.incident = incident
        if isinstance(event, AttemptFailed):
            if not self._is_recorded:
                self._is_recorded = True
                recording = self._proxied.upstreams.settings.recording
                self._gateway.call_recording.begin(self._proxied.inbound, incident, recording)
            self._proxied.spending.cancelled_dollars = 0.0  # the event has recorded them
            response = self._proxied.last_response
            if event.made and is_passing(event.failure):
                self._gateway.circuit_waits.record_error(circuit_of(self._gateway, self._proxied, incident), response)
        self.note()

    def note(self) -> None:
        """Update the headers from the incident, before each attempt and after each event."""
        incident = self.incident
        model = incident.request.model if incident.request is not None else ""
        self._proxied.writer.notes |= {
            "incident": incident.id,
            "path": ",".join(self._rungs[rung].name for rung in incident.path),
            "failure": str(incident.failure.kind) if incident.failure is not None else "",
            "model": model if model != self._proxied.inbound.model else "",
        }


def circuit_of(gateway: Gateway, proxied: ProxiedCall, incident: Incident) -> str:
    """Return the circuit of the attempt that was made last."""
    request = incident.request
    return "" if request is None else gateway.breaker_key(proxied.inbound, request.model, request.agent)


async def _summarise(gateway: Gateway, proxied: ProxiedCall, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the middle of its history summarised by `summary_model`; the call pays for it."""
    inbound, settings = proxied.inbound, proxied.upstreams.settings
    bodies = inbound.wire.bodies
    messages = bodies.history(body)
    table = proxied.upstreams.table
    target = table.find(settings.summary_model, inbound.upstream)
    body_bytes = orjson.dumps(
        bodies.build_request(target.model, SUMMARY_PROMPT + summarizable_text(messages), _SUMMARY_TOKENS)
    )
    outbound = outbound_for(table, inbound, target, body_bytes, is_last_resort=True, is_stream=False)
    await reserve_attempt(gateway, proxied, target.model, body_bytes)
    async with asyncio.timeout(settings.timeouts.total):
        response = await proxied.send(outbound._replace(target=outbound.target.partition("?")[0]))
        try:
            answer = orjson.loads(await read_body(response, settings.limits.answer)) if is_ok(response) else {}
        finally:
            response.close()
    usage = inbound.wire.read_usage(answer.get(inbound.wire.usage_key) or {})
    dollars = settle_usage(gateway, proxied, outbound.route, target.model, usage)
    proxied.spending.aside_dollars += dollars
    gateway.health.add_cost(outbound.route, dollars)
    summary = bodies.text_of(answer)
    if not summary:
        raise RungNotApplicable(f"{settings.summary_model} returned no summary")
    return bodies.with_history(body, with_summary(messages, summary))


def _needs_whole_thread(gateway: Gateway, proxied: ProxiedCall) -> bool:
    """Return whether another provider could answer a request if its client sent the turns of the thread as well."""
    inbound, writer = proxied.inbound, proxied.writer
    if writer.headers_sent or writer.finished or not inbound.continues_thread():
        return False
    policy, table = gateway.policy(inbound.project), gateway.upstream_table
    usable = {(model.provider, model.name) for model in table.usable_models(policy.models, inbound)}
    whole = replace(inbound, _is_self_contained=True)
    return any((model.provider, model.name) not in usable for model in table.usable_models(policy.models, whole))
