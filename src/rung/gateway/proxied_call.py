"""Upstream attempts of one client request, and the stream that the client receives meanwhile.

The engine decides how to react to a failure (see `recovery`). This module only makes one attempt and determines
whether it succeeded.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.adapters.errors.sse import read_event
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError, RungError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stream_rules import is_cut_at_limit, is_intended, is_usable_when_broken, seen_by_client
from rung.gateway import response as responses
from rung.gateway.http.port import header_of, read_body, text_headers
from rung.gateway.phase_timeouts import FIRST_TOKEN, HEADERS, IDLE, PhaseTimer
from rung.gateway.response import GatewayResponse
from rung.gateway.response_writer import ResponseWriter
from rung.gateway.spending.attempt_meter import AttemptMeter
from rung.wires.tool_arguments import missing_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.outbound import Outbound, Upstreams
    from rung.gateway.response_writer import Send
    from rung.gateway.spending.paid_attempts import CallSpending
    from rung.wires.stream_splicer import StreamSplicer

_OK: Final = 200
_BAD_REQUEST: Final = 400
_EVENT_STREAM: Final = b"text/event-stream"


class ProxiedCall:
    """State of one client request over all its upstream attempts."""

    def __init__(
        self, upstreams: Upstreams, inbound: InboundRequest, send: Send, original: Outbound, spending: CallSpending
    ) -> None:
        self.upstreams = upstreams
        self.inbound = inbound
        self.original = original
        self.spending = spending
        self.meter = AttemptMeter()  # of the current attempt
        self.writer = ResponseWriter(send)
        self.accepted = False  # the upstream accepted the request of the last attempt
        self.stream: StreamSplicer | None = None
        self._text_before = 0  # characters of text that earlier attempts have streamed
        self.partials: list[dict[str, Any]] = []  # unstreamed responses that ended at the output limit
        self.error_responses: list[GatewayResponse] = []  # error responses of the upstreams, unchanged
        self.last_response: GatewayResponse | None = None  # response of the last attempt, if there was one
        self.native_end = b""  # upstream's own final events of a stream that ended at the output limit

    # -- attempts ----------------------------------------------------------------------------------------

    async def attempt(self, outbound: Outbound) -> GatewayResponse | None:
        """Send one upstream request; return the whole response, or None if it was streamed to the client."""
        try:
            return await self._attempt(outbound)
        except (AttemptError, OSError) as error:
            stream = self.stream
            if stream is None or not stream.started:
                raise
            if is_usable_when_broken(
                calls=stream.tool_call_count, bad_call=bool(stream.call_error), ended=stream.ended
            ):
                self.writer.notes["settled"] = "the stream broke after a complete tool call"
                await self.writer.write(stream.finish_with_tool_calls(), last=True)
                return None
            evidence = error.evidence if isinstance(error, AttemptError) else evidence_of(error)
            raise AttemptError.of(seen_by_client(evidence)) from None

    async def _attempt(self, outbound: Outbound) -> GatewayResponse | None:
        self.writer.attempts += 1
        self.accepted = False
        self.last_response = None
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # runs inside a task
        with PhaseTimer(asyncio.get_running_loop(), task) as timer:
            self.writer.timer = timer
            try:
                response = await self._open(outbound, timer)
                try:
                    if response.status == _OK and header_of(response, b"content-type").startswith(_EVENT_STREAM):
                        await self._relay(response, timer)
                        return None
                    return await self._read_whole(response, resumed=outbound.is_resume)
                finally:
                    response.close()
            except (OSError, RungError):
                raise
            except Exception as error:  # noqa: BLE001  # any error of the HTTP client is a failed attempt
                raise AttemptError.of(evidence_of(error)) from None

    async def _open(self, outbound: Outbound, timer: PhaseTimer) -> UpstreamResponse:
        timeouts = self.upstreams.settings.timeouts
        factor = timeouts.last_resort_factor if outbound.is_last_resort else 1.0
        timer.start_phase(HEADERS, factor * (timeouts.headers if self.inbound.is_stream else timeouts.total))
        response = await self.upstreams.client.send(
            outbound.upstream, "POST", self.inbound.target, outbound.headers, outbound.body
        )
        self.accepted = self.meter.accepted = response.status == _OK
        timer.start_phase(FIRST_TOKEN, factor * timeouts.first_token)
        return response

    # -- whole responses ---------------------------------------------------------------------------------

    async def _read_whole(self, response: UpstreamResponse, *, resumed: bool) -> GatewayResponse:
        data = await read_body(response)
        reply = GatewayResponse(response.status, responses.headers_for_client(response.raw_headers), data)
        if response.status >= _BAD_REQUEST:
            self.last_response = reply
            self.error_responses.append(reply)
            facts = {"status": response.status, "headers": text_headers(response), "body": data}
            raise AttemptError.of(evidence_of(facts)._replace(provider=self.inbound.wire.upstream))
        if response.status != _OK:
            return reply
        self.meter.text_size = len(data)
        body = _parse_object(data, response)
        usage = body.get("usage")
        if isinstance(usage, dict):
            self.meter.usage = usage
        evidence = self.inbound.wire.bodies.validate(body)
        if evidence is None:
            evidence = self._invalid_tool_call(body)
        if evidence is None or self._is_intended(evidence):
            return self._accept(reply, body)
        self.last_response = reply  # sent to the client if no later attempt is better
        if is_cut_at_limit(evidence):
            self.partials = [*self.partials, body] if resumed else [body]
        raise AttemptError.of(evidence)

    def _accept(self, reply: GatewayResponse, body: dict[str, Any]) -> GatewayResponse:
        if self.partials:
            body = self.inbound.wire.bodies.merge([*self.partials, body])
            self.partials = []
            reply = reply._replace(body=orjson.dumps(body))
        bodies = self.inbound.wire.bodies
        if self.upstreams.inspect is not None:
            self._inspect(bodies.text_of(body), bodies.tool_calls(body))
        return reply

    def _inspect(self, text: str, calls: Sequence[tuple[str, object]]) -> None:
        """Run detectors on a response; raise the evidence they find as the attempt's failure."""
        assert self.upstreams.inspect is not None  # noqa: S101  # callers check it
        result = self.upstreams.inspect(self.inbound, text, calls)
        if result is not None and result.warning:
            self.writer.notes["warning"] = result.warning
        if result is not None and result.evidence is not None:
            self.partials = []
            raise AttemptError.of(result.evidence)

    def _invalid_tool_call(self, body: dict[str, Any]) -> Evidence | None:
        for name, arguments in self.inbound.wire.bodies.tool_calls(body):
            problem = self._argument_error(name, arguments)
            if problem:
                return Evidence(text=problem, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
        return None

    def _argument_error(self, name: str, arguments: object) -> str:
        """Describe how a tool call violates the tool's schema in the request; empty if it does not."""
        return missing_arguments(name, arguments, self.inbound.wire.bodies.tool_schemas(self.inbound.parsed()))

    def count_received(self) -> None:
        """Give the meter what the stream of the current attempt has reported."""
        stream = self.stream
        if stream is not None and self.meter.events:
            self.meter.usage = stream.attempt_usage
            if not stream.attempt_usage:
                self.meter.started_usage = stream.started_usage()
                self.meter.text_size = len(stream.text()) - self._text_before

    def text_so_far(self) -> str:
        """Return the text of the response received so far."""
        if self.stream is not None:
            return self.stream.text()
        return self.inbound.wire.bodies.text_of(self.inbound.wire.bodies.merge(self.partials)) if self.partials else ""

    # -- streams -----------------------------------------------------------------------------------------

    async def _relay(self, response: UpstreamResponse, timer: PhaseTimer) -> None:
        """Relay a stream to the client; only its terminal event makes it a success, not the end of the data."""
        stream = self.stream
        if stream is None:
            stream = self.stream = self.inbound.wire.splice(buffer_tool_calls=self.upstreams.settings.buffer_tool_calls)
            stream.check_call = self._argument_error
            stream.hides_usage = self.inbound.hides_usage
        self.writer.headers = responses.headers_for_client(response.raw_headers)
        await self.writer.write(stream.begin_attempt())
        self._text_before = len(stream.text()) if stream.started else 0
        idle_seconds = self.upstreams.settings.timeouts.idle
        meter = self.meter
        while chunk := await response.read_chunk():
            meter.count_events(chunk)
            data = stream.feed(chunk)
            if stream.error is not None:
                await self.writer.write(data)
                raise self._error_event(stream.error)
            if stream.ended and response.ended and not stream.truncated:  # write the rest with the terminal event
                await self._finish_stream(stream, data)
                return
            if data:
                meter.content_at = monotonic()
                await self.writer.write(data)
                if timer.phase != IDLE:
                    timer.start_phase(IDLE, idle_seconds)
            timer.restart()
            if stream.truncated or stream.oversized:
                text = "stream interrupted inside an event" if stream.truncated else "stream event is too large"
                raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        await self._finish_stream(stream)

    async def _finish_stream(self, stream: StreamSplicer, rest: bytes = b"") -> None:
        """Check how a stream ended and finish the response; `rest` was not yet written to the client."""
        if stream.is_interrupted():
            text = f"stream ended without {self.inbound.wire.end_marker}"
            raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        evidence = stream.validate()
        if evidence is not None and not self._is_intended(evidence, stream.tool_call_count):
            if not stream.call_error:
                self.native_end = stream.finish()
            await self.writer.write(rest)
            raise AttemptError.of(evidence)
        if self.upstreams.inspect is not None:
            await self.writer.write(rest)
            rest = b""
            self._inspect(stream.text(), stream.tool_calls)
        await self.writer.write(rest + stream.finish(), last=True)

    def _is_intended(self, evidence: Evidence, calls: int = 0) -> bool:
        request, bodies = self.inbound.parsed(), self.inbound.wire.bodies
        return is_intended(
            evidence,
            calls=calls,
            limit=bodies.limit(request),
            small_limit=self.upstreams.settings.intentional_max_tokens,
            may_be_empty=bodies.allows_empty(request),
        )

    def _error_event(self, error: tuple[str, str]) -> AttemptError:
        name, data = error
        evidence = read_event(name, data) or Evidence(text=data[:2_000], phase=Phase.STREAM)
        evidence = evidence._replace(provider=self.inbound.wire.upstream)
        self.last_response = GatewayResponse(0, [(b"content-type", b"application/json")], data.encode())
        return AttemptError.of(evidence)

    async def ping(self) -> None:
        """Send a ping to a waiting streaming client, and the headers if they were held back."""
        stream, writer = self.stream, self.writer
        if (
            writer.finished
            or not self.inbound.is_stream
            or (writer.headers_sent and stream is not None and stream.passthrough)
        ):
            return
        await writer.write(self.inbound.wire.ping)


def _parse_object(data: bytes, response: UpstreamResponse) -> dict[str, Any]:
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        kind = header_of(response, b"content-type").decode("latin-1") or "no content type"
        text = f"response body is incomplete: {len(data)} bytes of {kind} that are not JSON"
        raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED) from None
    if not isinstance(body, dict):
        raise AttemptError("response body is not a JSON object", finding=Kind.SERVER_ERROR)
    return body
