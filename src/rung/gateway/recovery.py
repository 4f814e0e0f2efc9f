"""One request from its first attempt to its end: what goes wrong is recovered by the engine, on the project's ladder."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.conversation.compaction import SUMMARY_PROMPT, summarizable_text, with_summary
from rung.core.domain.errors import AttemptError
from rung.engine.attempt_api import report_cost
from rung.engine.first_attempt import FirstAttempt, attempt_first
from rung.engine.recover import recover
from rung.gateway.body_rewriter import BodyRewriter, RungNotApplicable
from rung.gateway.final_error import send_final_error
from rung.gateway.http.port import is_ok, read_body
from rung.gateway.inbound_request import NotJson

if TYPE_CHECKING:
    from rung.core.domain.events import Event
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.session import Session
    from rung.gateway.detector_port import DetectorResult
    from rung.gateway.gateway import Gateway
    from rung.gateway.proxied_call import ProxiedCall
    from rung.gateway.response import GatewayResponse

_SUMMARY_TOKENS: Final = 2_000


async def handle(gateway: Gateway, exchange: ProxiedCall) -> None:
    """Take a call to its end: one attempt for most, a recovery for the others."""
    call, now = exchange.call, gateway.clock.now()
    session = gateway.sessions.known(call, now)
    notice = _inspect_request(exchange) if exchange.upstreams.inspect is not None else None
    nudge = notice.nudge if notice is not None else ""
    first = None
    if notice is not None and notice.evidence is not None:
        first = FirstAttempt(now, now, error=AttemptError.of(notice.evidence))
    elif not nudge and (session is None or session.model == call.model):
        breaker = gateway.breakers.get(gateway.breaker_key(call, call.model, call.upstream.name))
        first = await attempt_first(exchange.attempt_first, breaker, gateway.retry_budget, gateway.clock)
        if first is not None and first.error is None:
            if first.value is not None:
                await exchange.writer.reply(first.value)
            dollars = _account(gateway, exchange, call.model)
            gateway.books.record_success(
                call,
                gateway.terms_of(call),
                first.began,
                first.ended,
                exchange.tokens,
                dollars,
                exchange.upstreams.settings,
            )
            return
    await _recover(gateway, exchange, session or gateway.sessions.get(call, now), first, nudge)


def _inspect_request(exchange: ProxiedCall) -> DetectorResult | None:
    """What the detectors find in a request, its warning noted; a body that is not JSON is the upstream's to refuse."""
    assert exchange.upstreams.inspect is not None  # noqa: S101  # the caller has looked
    try:
        notice = exchange.upstreams.inspect(exchange.call, None, ())
    except NotJson:
        return None
    if notice is not None and notice.warning:
        exchange.writer.notes["warning"] = notice.warning
    return notice


async def _recover(
    gateway: Gateway, exchange: ProxiedCall, session: Session, first: FirstAttempt | None, nudge: str
) -> None:
    """Recover a call from the failure of its first attempt, or from its beginning."""
    call, policy = exchange.call, gateway.policy_for(exchange.call, exchange.upstreams.settings)
    summarise = partial(_summarise, exchange) if exchange.upstreams.settings.summary_model else None
    changes = BodyRewriter(exchange, policy, summarise)
    progress = _Progress(exchange, policy)
    request = changes.first
    if session.model and session.model != call.model:
        request = changes.on_model(session.model)
    if nudge:
        request = changes.nudged(request, nudge)

    async def attempt(request: Request) -> GatewayResponse | None:
        progress.note()
        outbound = changes.outbound(request)
        try:
            answer = await exchange.attempt(outbound)
        finally:
            if exchange.accepted:
                changes.taken()
        report_cost(_account(gateway, exchange, request.model))
        return answer

    outcome: Outcome[GatewayResponse | None] = await recover(
        attempt,
        request,
        policy=policy,
        first=first,
        rung_handlers=changes.by_action(),
        listeners=(progress,),
        session=session,
        journal=gateway.journal_of(call),
        breakers=gateway.breakers,
        retry_budget=gateway.retry_budget,
        key=lambda made: gateway.breaker_key(call, made.model, made.agent) if made is not None else "",
    )
    progress.note()
    exchange.writer.notes["outcome"] = str(outcome.status)
    gateway.books.record_recovery(
        exchange.call, progress.incident, outcome, policy, exchange.writer.attempts, exchange.tokens
    )
    if not outcome.ok:
        assert outcome.failure is not None  # noqa: S101  # what did not end well has failed
        await send_final_error(exchange, outcome.failure)
    elif outcome.value is not None and not exchange.writer.over:
        await exchange.writer.reply(outcome.value)


class _Progress:
    """Listener of a recovery: the headers of the response say what has been done so far."""

    incident: Incident

    def __init__(self, exchange: ProxiedCall, policy: Policy) -> None:
        self._exchange = exchange
        self._rungs = policy.ladder.rungs

    def __call__(self, event: Event, incident: Incident) -> None:  # noqa: ARG002  # a listener's signature
        self.incident = incident
        self.note()

    def note(self) -> None:
        """Write it down for the headers; a change of the request is told after the attempt that it was made for."""
        incident = self.incident
        model = incident.request.model if incident.request is not None else ""
        self._exchange.writer.notes |= {
            "incident": incident.id,
            "path": ",".join(self._rungs[rung].name for rung in incident.path),
            "failure": str(incident.failure.kind) if incident.failure is not None else "",
            "model": model if model != self._exchange.call.model else "",
        }


def _account(gateway: Gateway, exchange: ProxiedCall, model: str) -> float:
    """Count the tokens of an answer, once; US dollars they cost."""
    usage, exchange.usage = exchange.usage, {}
    if not usage:
        return 0.0
    exchange.tokens = exchange.call.wire.bodies.token_counts(usage)
    return gateway.books.record_usage(
        exchange.call, model, exchange.tokens, exchange.upstreams.settings, gateway.clock.now()
    )


async def _summarise(exchange: ProxiedCall, body: dict[str, Any]) -> dict[str, Any]:
    """The body with its middle summarised by the model that the settings name for that."""
    call, upstreams = exchange.call, exchange.upstreams
    bodies, settings = call.wire.bodies, upstreams.settings
    messages = bodies.history(body)
    asked = orjson.dumps(
        bodies.build_request(settings.summary_model, SUMMARY_PROMPT + summarizable_text(messages), _SUMMARY_TOKENS)
    )
    async with asyncio.timeout(settings.timeouts.total):
        response = await upstreams.client.send(call.upstream, "POST", call.target.partition("?")[0], call.passed, asked)
        try:
            said = bodies.text_of(orjson.loads(await read_body(response))) if is_ok(response) else ""
        finally:
            response.close()
    if not said:
        raise RungNotApplicable(f"{settings.summary_model} gave no summary")
    return bodies.with_history(body, with_summary(messages, said))
