"""Final response to a request that could not be recovered: the provider's own partial answer or error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from rung.core.classify.classifier import classify
from rung.core.domain.failures import CIRCUIT_OPEN, Kind
from rung.gateway import response as responses
from rung.gateway.response import GatewayResponse
from rung.wires.context_limit import context_limit_message

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.gateway.circuit_waits import CircuitWaits
    from rung.gateway.proxied_call import ProxiedCall

_OK: Final = 200
_REFUSALS: Final = frozenset({401, 403})  # both may be an auth_error: the client gets the one that the provider sent
_JSON: Final = (b"content-type", b"application/json")


async def send_final_error(proxied: ProxiedCall, failure: Failure, waits: CircuitWaits, circuit: str) -> None:
    """End the client response after a failed recovery; prefer a partial answer over an error.

    `circuit` is that of the model that the client asked for.
    """
    writer, wire = proxied.writer, proxied.inbound.wire
    if writer.finished:
        return
    failure = _own_failure(proxied, failure)
    if failure.evidence.code == CIRCUIT_OPEN and proxied.last_response is None:
        proxied.last_response = waits.last_error(circuit)
    sent = failure.evidence.status
    status = sent if sent in _REFUSALS else responses.status_for(failure.kind)
    if proxied.native_end:
        await writer.write(proxied.native_end, last=True)
    elif proxied.partials:
        await proxied.reply(GatewayResponse(_OK, [_JSON], orjson.dumps(wire.bodies.merge(proxied.partials))))
    elif (answer := _last_answer(proxied)) is not None:
        await proxied.reply(answer)
    elif writer.headers_sent:
        stream = proxied.stream or wire.splice()
        text = _headline(failure, waits.retry_after(circuit))
        if failure.kind is Kind.CONTEXT_LIMIT:
            text = context_limit_message(wire.name, failure.message, failure.tokens)
        await writer.write(stream.error_event(status, text), last=True)
    else:
        await writer.reply(_final_response(proxied, failure, status, waits.retry_after(circuit)))


def _last_answer(proxied: ProxiedCall) -> GatewayResponse | None:
    """Return the whole answer of the last attempt to a client that asked for a stream; None if there is none."""
    last = proxied.last_response
    is_stream = proxied.writer.headers_sent or proxied.inbound.is_stream
    return last if is_stream and last is not None and last.status == _OK else None


def _own_failure(proxied: ProxiedCall, failure: Failure) -> Failure:
    """Return the failure of the model that the client asked for, if the last one is that of another model."""
    own = proxied.own_error
    if own is not None and failure.evidence.code == CIRCUIT_OPEN:
        proxied.last_response = own.response
        return classify(own.evidence)
    if own is None or proxied.last_response in (None, own.response):
        return failure
    if proxied.error_responses and proxied.last_response is not proxied.error_responses[-1]:
        return failure  # the last attempt got a response, which is better than an error
    proxied.last_response = own.response
    return classify(own.evidence)


def _headline(failure: Failure, wait: int) -> str:
    """Return the failure in one line. The name of a circuit is no business of a client: it has a digest of its key."""
    if failure.evidence.code != CIRCUIT_OPEN:
        return failure.headline(500)
    return f"{failure.kind}: the upstream is failing; it is tried again in {max(wait, 1)} s"


def _final_response(proxied: ProxiedCall, failure: Failure, status: int, wait: int) -> GatewayResponse:
    last = proxied.last_response
    if failure.kind is Kind.INVALID_REQUEST and len(proxied.error_responses) > 1:
        last = proxied.error_responses[0]  # report the error for the client's own request, not for a rewritten one
    if last is None and failure.kind is Kind.CONTEXT_LIMIT:
        last = responses.context_limit_error(proxied.inbound.wire, failure)
    elif last is None:
        last = responses.upstream_error(proxied.inbound.wire, status, _headline(failure, wait))
    if last.status == 0:  # from an error event, which has no status
        last = last._replace(status=failure.evidence.status or status)
    return responses.with_retry_advice(last, failure, wait)
