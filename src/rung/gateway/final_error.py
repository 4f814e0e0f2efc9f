"""Response to a client whose call could not be recovered: the provider's own answer or error, not to be retried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from rung.core.domain.failures import Kind
from rung.gateway import response as answers
from rung.gateway.response import GatewayResponse

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.gateway.proxied_call import ProxiedCall

_OK: Final = 200
_JSON: Final = (b"content-type", b"application/json")
_NO_RETRY: Final = (b"x-should-retry", b"false")


async def send_final_error(exchange: ProxiedCall, failure: Failure) -> None:
    """End the response after a recovery that failed; an answer that was cut short is given as it came."""
    writer, wire = exchange.writer, exchange.call.wire
    if writer.over:
        return
    status = answers.status_of(failure.kind)
    if exchange.native_end:
        await writer.write(exchange.native_end, last=True)
    elif exchange.parts:
        await writer.reply(GatewayResponse(_OK, [_JSON], orjson.dumps(wire.bodies.merge(exchange.parts))))
    elif writer.begun:
        stream = exchange.stream or wire.splice()
        await writer.write(stream.error_event(status, failure.headline(500)), last=True)
    else:
        await writer.reply(_final(exchange, failure, status))


def _final(exchange: ProxiedCall, failure: Failure, status: int) -> GatewayResponse:
    last = exchange.last
    if failure.kind is Kind.INVALID_REQUEST and len(exchange.refused) > 1:
        last = exchange.refused[0]  # the refusal of the client's own request, not of a changed one
    if last is None:
        wait = failure.retry_after
        more = [] if wait is None else [(b"retry-after", str(int(wait) + 1).encode())]
        return answers.error(exchange.call.wire, status, failure.headline(500), *more)
    if last.status == 0:  # of an event: it had no status of its own
        last = last._replace(status=failure.evidence.status or status)
    return last._replace(headers=[*last.headers, _NO_RETRY])
