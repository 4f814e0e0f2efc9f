"""Upstream attempts of one client request, and the stream that the client receives meanwhile.

The engine decides how to react to a failure (see `recovery`). This module only makes one attempt and determines
whether it succeeded.
"""

from __future__ import annotations

import asyncio
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.adapters.errors.sse import read_event
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError, RungError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stream_rules import (
    MISTAKE_REPEATS,
    is_cut_at_limit,
    is_intended,
    is_mistake,
    is_repeated_mistake,
    is_usable_when_broken,
    seen_by_client,
)
from rung.gateway import response as responses
from rung.gateway.http.answer_reading import drain, parse_answer, read_rest
from rung.gateway.http.port import header_of, read_body, text_headers, too_large
from rung.gateway.phase_timeouts import FIRST_TOKEN, HEADERS, IDLE, PhaseTimer
from rung.gateway.response import GatewayResponse
from rung.gateway.response_writer import ResponseWriter
from rung.gateway.spending.attempt_meter import AttemptMeter
from rung.gateway.upstream.call_keys import CallKeys
from rung.gateway.upstream_request import send_upstream
from rung.wires.sse import KEEP_ALIVE
from rung.wires.tool_arguments import invalid_call, missing_arguments
from rung.wires.wire_json import dump_json, json_object, object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.outbound import Outbound, Upstreams
    from rung.gateway.response_writer import Send
    from rung.gateway.spending.paid_attempts import CallSpending
    from rung.gateway.upstream.translated_call import TranslatedCall
    from rung.wires.stream_splicer import StreamSplicer

_OK: Final = 200
_BAD_REQUEST: Final = 400
_BAD_GATEWAY: Final = 502
_EVENT_STREAM: Final = b"text/event-stream"
_BLANK_LINE: Final = b"\n\n"  # ends an event at the end of a transfer that lacks it
_DIVERGED: Final = "the structured answer, asked for again, does not repeat what the client has received"
_COMPLETE_SECONDS: Final = 60.0  # the timer of the attempt does not end a complete response


class OwnError(NamedTuple):
    """Error response for the model that the client asked for."""

    response: GatewayResponse
    evidence: Evidence


class ProxiedCall:
    """State of one client request over all its upstream attempts."""

    def __init__(
        self, upstreams: Upstreams, inbound: InboundRequest, send: Send, original: Outbound, spending: CallSpending
    ) -> None:
        self.upstreams = upstreams
        self.inbound = inbound
        self.original = original
        self.spending = spending
        self.attempt_seconds: float | None = None  # time limit of one attempt, by the policy
        self.meter = AttemptMeter()  # of the current attempt
        self.keys = CallKeys(upstreams.table, inbound, time)
        self.writer = ResponseWriter(send, has_comments=inbound.wire.has_comments)
        self.accepted = False  # the upstream accepted the request of the last attempt
        self.fitted: dict[str, Any] | None = None  # first body, if a listed model needs another one than the client's
        self.stream: StreamSplicer | None = None
        self.partials: list[dict[str, Any]] = []  # unstreamed responses that ended at the output limit
        self.error_responses: list[GatewayResponse] = []  # error responses of the upstreams, unchanged
        self.own_error: OwnError | None = None  # last error of the model that the client asked for
        self.last_response: GatewayResponse | None = None  # response of the last attempt, if there was one
        self.mistakes = 0  # answers that were rejected because of a mistake of the model
        self.native_end = b""  # rest of a rejected stream as the upstream sent it, if nothing was sent since
        self._translated: TranslatedCall | None = None  # of the current attempt
        self._opened_at = 0.0  # when the headers of the current attempt came
        self._heard_at = 0.0  # when the current attempt received something last, or began

    # -- attempts ----------------------------------------------------------------------------------------

    async def attempt(self, outbound: Outbound) -> GatewayResponse | None:
        """Send one upstream request; return the whole response, or None if it was streamed to the client."""
        before, began = self._received(), monotonic()
        self._heard_at = began
        health, wire = self.upstreams.health, self.inbound.wire.name
        try:
            reply = await self._attempt(outbound)
        except (AttemptError, OSError) as error:
            given = error.evidence if isinstance(error, AttemptError) else evidence_of(error)
            evidence = self.keys.note_failure(given)
            health.note_failure(outbound, wire, given._replace(spare_keys=evidence.spare_keys), time())
            if evidence.key != self.keys.used:
                self.last_response = None  # it is about another key than the failure
            if self.inbound.is_stream or evidence.finding is Kind.TIMEOUT:
                evidence = evidence._replace(silence=round(monotonic() - self._heard_at, 1))
            stream = self.stream
            if stream is None or not stream.started:
                raise AttemptError.of(evidence) from None
            if is_usable_when_broken(
                calls=stream.tool_call_count, bad_call=bool(stream.call_error), ended=not stream.is_interrupted()
            ):
                self.writer.notes["settled"] = "the stream broke after a complete tool call"
                ending = stream.finish_with_tool_calls()
                await self._remember(stream.references(self.inbound.parsed()))
                await self.writer.write(ending, last=True)
                return None
            marked = seen_by_client(
                evidence,
                constrained=stream.must_repeat,
                diverged=stream.has_diverged,
                progress=self._received() > before,
            )
            raise AttemptError.of(marked) from None
        self.keys.note_success()
        health.note_success(outbound, wire, self._opened_at - began, time())
        return reply

    def _received(self) -> tuple[int, int]:
        """Return how much of the answer the client has received: complete tool calls, and characters of text."""
        return (0, 0) if self.stream is None else (self.stream.tool_call_count, len(self.stream.text()))

    async def _attempt(self, outbound: Outbound) -> GatewayResponse | None:
        self.writer.attempts += 1
        self.accepted = False
        self.last_response = None
        self._translated = outbound.translated
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # runs inside a task
        with PhaseTimer(asyncio.get_running_loop(), task, self.attempt_seconds) as timer:
            self.writer.timer = timer
            try:
                response = await self._open(outbound, timer)
                try:
                    if response.status == _OK and self._is_event_stream(response):
                        await self._relay(response, timer, outbound.route)
                        return None
                    return await self._read_whole(response, outbound)
                finally:
                    response.close()
            except asyncio.CancelledError:
                if timer.expired and timer.phase == FIRST_TOKEN:
                    self.upstreams.first_tokens.note_timeout(outbound.route, timer.seconds)
                raise
            except (OSError, RungError):
                raise
            except Exception as error:  # noqa: BLE001  # any error of the HTTP client is a failed attempt
                raise AttemptError.of(evidence_of(error)) from None

    async def _open(self, outbound: Outbound, timer: PhaseTimer) -> UpstreamResponse:
        timeouts = self.upstreams.settings.timeouts
        factor = timeouts.last_resort_factor if outbound.is_last_resort else 1.0
        timer.start_phase(HEADERS, factor * (timeouts.headers if self.inbound.is_stream else timeouts.total))
        response = await self.send(outbound)
        self.accepted = self.meter.accepted = response.status == _OK
        timer.start_phase(FIRST_TOKEN, self._first_token_seconds(outbound))
        self._opened_at = self._heard_at = monotonic()
        return response

    async def send(self, outbound: Outbound) -> UpstreamResponse:
        """Send a request; return its response in the client's wire format once its headers are received."""
        keyed = self.keys.with_key(outbound)
        return await send_upstream(self.upstreams, outbound, keyed.upstream, keyed.headers, self.writer.notes)

    def _first_token_seconds(self, outbound: Outbound) -> float:
        timeouts = self.upstreams.settings.timeouts
        if outbound.is_last_resort:
            return timeouts.last_resort_factor * timeouts.first_token
        if not self.inbound.is_stream:
            return timeouts.first_token
        return self.upstreams.first_tokens.seconds(outbound.route, self.inbound, timeouts)

    # -- whole responses ---------------------------------------------------------------------------------

    async def _read_whole(self, response: UpstreamResponse, outbound: Outbound) -> GatewayResponse:
        data = await read_body(response, self.upstreams.settings.limits.answer)
        reply = GatewayResponse(response.status, responses.headers_for_client(response.raw_headers), data)
        if response.status >= _BAD_REQUEST:
            raise self._refusal(response, outbound, reply)
        if response.status != _OK:
            return reply
        self.meter.text_size = len(data)
        body = parse_answer(data, response)
        self.meter.usage = object_field(body, self.inbound.wire.usage_key)
        evidence = self._stop_defect() or self.inbound.wire.bodies.validate(body) or self._invalid_tool_call(body)
        if evidence is None or self._is_accepted(evidence):
            if not outbound.is_resume:
                self.partials = []  # the answer was asked for again whole
            return await self._accept(reply, body)
        self.last_response = reply  # sent to the client if no later attempt is better
        self.mistakes += is_mistake(evidence)
        if is_cut_at_limit(evidence):
            self.partials = [*self.partials, body] if outbound.is_resume else [body]
        raise AttemptError.of(evidence)

    def _refusal(self, response: UpstreamResponse, outbound: Outbound, reply: GatewayResponse) -> AttemptError:
        """Return the failure of an error response, and keep the response for the client, in its own wire format."""
        facts = {"status": response.status, "headers": text_headers(response), "body": reply.body}
        refusal = evidence_of(facts)._replace(provider=outbound.upstream.type)
        if outbound.translated is not None:
            reply = responses.translated_error(self.inbound.wire, reply, refusal)
        self.last_response = reply
        self.error_responses.append(reply)
        if outbound.upstream is self.inbound.upstream and outbound.model == self.inbound.upstream_model:
            self.own_error = OwnError(reply, refusal)
        return AttemptError.of(refusal)

    async def _accept(self, reply: GatewayResponse, body: dict[str, Any]) -> GatewayResponse:
        bodies = self.inbound.wire.bodies
        if self.partials:
            self.writer.notes["spliced"] = len(self.partials)
            last = body
            body = bodies.merge([*self.partials, body])
            await self._remember(
                {} if self._translated is not None else bodies.references(object_list(body, "output"), last)
            )
            self.partials = []
            reply = reply._replace(body=dump_json(body))
        if self.upstreams.inspect is not None:
            self._inspect(bodies.text_of(body), bodies.tool_calls(body))
        if self._translated is not None:
            await self._remember(bodies.unstored_references(self.inbound.parsed(), body))
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

    def _stop_defect(self) -> Evidence | None:
        """Return evidence of a defect that the upstream told by its stop reason, in words which the client's wire lacks."""
        return None if self._translated is None else self._translated.defect

    def _invalid_tool_call(self, body: dict[str, Any]) -> Evidence | None:
        for name, arguments in self.inbound.wire.bodies.tool_calls(body):
            problem = self._argument_error(name, arguments)
            if problem:
                return invalid_call(name, problem)
        return None

    def _argument_error(self, name: str, arguments: object) -> str:
        """Describe how a tool call violates the tool's schema in the request; empty if it does not."""
        return missing_arguments(name, arguments, self.inbound.wire.bodies.tool_schemas(self.inbound.parsed()))

    def has_received(self) -> bool:
        """Return whether a part of the response was received that another attempt can continue."""
        return bool(self.partials) or (self.stream is not None and self.stream.started)

    def count_received(self) -> None:
        """Give the meter what the stream of the current attempt has reported."""
        stream = self.stream
        if stream is not None and self.meter.events:
            self.meter.usage = stream.attempt_usage
            if not stream.attempt_usage:
                self.meter.started_usage = stream.started_usage()
                self.meter.text_size = stream.output_characters

    def text_so_far(self) -> str:
        """Return the text of the response received so far."""
        if self.stream is not None:
            return self.stream.text()
        return self.inbound.wire.bodies.text_of(self.inbound.wire.bodies.merge(self.partials)) if self.partials else ""

    async def reply(self, response: GatewayResponse) -> None:
        """Send a whole response; as events if the client asked for a stream, which not every upstream sends.

        A client that is already receiving a stream gets anything else as an error event.
        """
        writer, is_answer = self.writer, response.status == _OK
        if not writer.headers_sent and not (is_answer and self.inbound.is_stream):
            await writer.reply(response)
            return
        stream = self._splicer()
        stream.accepts_invalid_calls = True
        out = stream.begin_attempt()
        if is_answer:
            out += stream.feed(self.inbound.wire.replay(json_object(response.body)))
        if not writer.headers_sent:
            if stream.is_interrupted():
                await writer.reply(response)
                return
            writer.headers = responses.stream_headers(response)
        if stream.is_interrupted():
            out += stream.error_event(
                _BAD_GATEWAY, f"upstream sent no stream, but a response of status {response.status}"
            )
        else:
            out += stream.finish()
        await self.writer.write(out, last=True)

    # -- streams -----------------------------------------------------------------------------------------

    def _is_event_stream(self, response: UpstreamResponse) -> bool:
        """Return whether a response is a stream; without a content type, whether one was requested."""
        kind = header_of(response, b"content-type").lower()
        return kind.startswith(_EVENT_STREAM) or (not kind and self.inbound.is_stream)

    def _splicer(self) -> StreamSplicer:
        if self.stream is None:
            wire, settings = self.inbound.wire, self.upstreams.settings
            choices = wire.bodies.choices(self.inbound.parsed())
            self.stream = wire.splice(buffer_tool_calls=settings.buffer_tool_calls, choices=choices)
            self.stream.check_call = self._argument_error
            self.stream.must_repeat = wire.bodies.is_constrained(self.inbound.parsed())
            self.stream.hides_usage = self.inbound.hides_usage
        return self.stream

    async def _relay(self, response: UpstreamResponse, timer: PhaseTimer, route: tuple[str, str]) -> None:
        """Relay a stream to the client; only its stop reason makes it a success, not the end of the data."""
        stream = self._splicer()
        stream.accepts_invalid_calls = self.mistakes >= MISTAKE_REPEATS
        self.writer.headers = responses.headers_for_client(response.raw_headers)
        await self._write(stream.begin_attempt())
        rest = await self._read_events(response, stream, timer, route)
        timer.complete(_COMPLETE_SECONDS)
        await self._finish_stream(stream, rest)
        await drain(response)

    async def _read_events(
        self, response: UpstreamResponse, stream: StreamSplicer, timer: PhaseTimer, route: tuple[str, str]
    ) -> bytes:
        """Relay events until the terminal one, or the end of the transfer; return what was not yet written."""
        idle_seconds = self.upstreams.settings.timeouts.idle
        max_bytes, received = self.upstreams.settings.limits.answer, 0
        while True:
            chunk = await (response.read_chunk() if stream.is_interrupted() else read_rest(response))
            received += len(chunk)
            if received > max_bytes:
                raise too_large(max_bytes)
            data = stream.feed(chunk or _BLANK_LINE)
            self._note_received(chunk, data, timer, route)
            if not stream.is_interrupted() and (
                stream.ended or stream.error is not None or stream.malformed or not chunk
            ):
                return data  # the response is complete, whatever else comes
            await self._write(data)
            if stream.error is not None:
                raise self._error_event(stream.error)
            if stream.malformed or stream.oversized:
                text = "stream has an event that is not valid JSON" if stream.malformed else "stream event is too large"
                raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
            if stream.has_diverged:
                raise AttemptError(_DIVERGED, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
            if stream.ended or not chunk:
                text = f"stream ended without {self.inbound.wire.end_marker}"
                raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
            if not stream.is_interrupted():
                timer.complete(_COMPLETE_SECONDS)
            elif data and timer.phase != IDLE:
                timer.start_phase(IDLE, idle_seconds)
            timer.restart()

    def _note_received(self, chunk: bytes, data: bytes, timer: PhaseTimer, route: tuple[str, str]) -> None:
        """Note received bytes, and what they became for the client: nothing, while a tool call is not complete."""
        self.meter.count_events(chunk)
        now = monotonic()
        if chunk:
            self._heard_at = now
        if data and chunk != KEEP_ALIVE:
            self.meter.content_at = now
            if timer.phase == FIRST_TOKEN:
                self.upstreams.first_tokens.note_content(route, now - self._opened_at)

    async def _write(self, data: bytes) -> None:
        if data:
            self.native_end = b""  # it would no longer fit
            await self.writer.write(data)

    async def _finish_stream(self, stream: StreamSplicer, rest: bytes) -> None:
        """Check how a stream ended and finish the response; `rest` was not yet written to the client."""
        if stream.has_diverged:
            raise AttemptError(_DIVERGED, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        if stream.resumed:
            self.writer.notes["spliced"] = stream.resumed
        evidence = self._stop_defect() or stream.validate()
        if evidence is not None and not self._is_accepted(evidence, stream.tool_call_count):
            self.mistakes += is_mistake(evidence)
            await self._write(rest)
            self.native_end = stream.native_end()
            raise AttemptError.of(evidence)
        if self.upstreams.inspect is not None:
            await self._write(rest)
            rest = b""
            self._inspect(stream.text(), stream.tool_calls)
        ending = stream.finish()
        if stream.resumed or self._translated is not None:
            await self._remember(stream.references(self.inbound.parsed(), is_stored=self._translated is None))
        await self.writer.write(rest + ending, last=True)

    async def _remember(self, references: Mapping[str, Any]) -> None:
        if references:
            await self.upstreams.references.record(self.inbound.caller, references)

    def _is_accepted(self, evidence: Evidence, calls: int = 0) -> bool:
        """Return whether an answer is passed on in spite of this evidence."""
        return self._is_intended(evidence, calls) or is_repeated_mistake(evidence, mistakes=self.mistakes)

    def _is_intended(self, evidence: Evidence, calls: int) -> bool:
        request, bodies = self.inbound.parsed(), self.inbound.wire.bodies
        return is_intended(
            evidence,
            calls=calls,
            limit=bodies.limit(request),
            small_limit=self.upstreams.settings.intentional_max_tokens,
            may_be_empty=bodies.allows_empty(request),
            mistakes=self.mistakes,
            choices=bodies.choices(request),
            fixed=self.stream is not None and self.stream.started and self.stream.must_repeat,
        )

    def _error_event(self, error: tuple[str, str]) -> AttemptError:
        name, data = error
        evidence = self._stop_defect() or read_event(name, data) or Evidence(text=data[:2_000], phase=Phase.STREAM)
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
