"""Attempts of one call at upstreams, and what the client gets of them while they run.

What to do about a failure is decided by the engine (see `recovery`). Here is only what one attempt is and how its end
is read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.adapters.errors.sse import read_event
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError, RungError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stream_rules import is_cut_at_limit, is_intended, is_usable_when_broken, seen_by_client
from rung.gateway import response as answers
from rung.gateway.http.port import header_of, read_body, text_headers
from rung.gateway.phase_timeouts import FIRST, GAP, HEADERS, PhaseTimer
from rung.gateway.response import GatewayResponse
from rung.gateway.response_writer import ResponseWriter
from rung.wires.tool_arguments import missing_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.outbound import Outbound, Upstreams
    from rung.gateway.response_writer import Send
    from rung.wires.stream_splicer import StreamSplicer

_OK: Final = 200
_BAD: Final = 400
_EVENTS: Final = b"text/event-stream"


class ProxiedCall:
    """State of one call over all its attempts."""

    def __init__(self, upstreams: Upstreams, call: InboundRequest, send: Send, first: Outbound) -> None:
        self.upstreams = upstreams
        self.call = call
        self.first = first
        self.writer = ResponseWriter(send)
        self.accepted = False  # the upstream of the last attempt has accepted its request
        self.stream: StreamSplicer | None = None
        self.parts: list[dict[str, Any]] = []  # whole answers that were cut short
        self.refused: list[GatewayResponse] = []  # the upstreams' own errors, as they came
        self.last: GatewayResponse | None = None  # that of the last attempt, if it had one
        self.usage: dict[str, Any] = {}
        self.tokens = (0, 0)  # in and out, once they are counted
        self.native_end = b""  # the end of a stream that was cut short, as it came

    # -- an attempt --------------------------------------------------------------------------------------

    def attempt_first(self) -> Awaitable[GatewayResponse | None]:
        """Send the call as it came."""
        return self.attempt(self.first)

    async def attempt(self, outbound: Outbound) -> GatewayResponse | None:
        """One exchange with one upstream: a whole answer, or None when it was streamed to the client."""
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
                self.usage = stream.usage
                await self.writer.write(stream.finish_with_tool_calls(), last=True)
                return None
            evidence = error.evidence if isinstance(error, AttemptError) else evidence_of(error)
            raise AttemptError.of(seen_by_client(evidence)) from None

    async def _attempt(self, outbound: Outbound) -> GatewayResponse | None:
        self.writer.attempts += 1
        self.accepted = False
        self.last = None
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # we are in one
        with PhaseTimer(asyncio.get_running_loop(), task) as clock:
            self.writer.clock = clock
            try:
                response = await self._open(outbound, clock)
                try:
                    if response.status == _OK and header_of(response, b"content-type").startswith(_EVENTS):
                        await self._relay(response, clock)
                        return None
                    return await self._whole(response, resumed=outbound.resumes)
                finally:
                    response.close()
            except (OSError, RungError):
                raise
            except Exception as error:  # noqa: BLE001  # whatever the client library raises, the stream has broken
                raise AttemptError.of(evidence_of(error)) from None

    async def _open(self, outbound: Outbound, clock: PhaseTimer) -> UpstreamResponse:
        timeouts = self.upstreams.settings.timeouts
        grace = timeouts.last_resort_factor if outbound.last else 1.0
        clock.wait_for(HEADERS, grace * (timeouts.headers if self.call.streams else timeouts.total))
        response = await self.upstreams.client.send(
            outbound.upstream, "POST", self.call.target, outbound.headers, outbound.body
        )
        self.accepted = response.status == _OK
        clock.wait_for(FIRST, grace * timeouts.first_token)
        return response

    # -- whole answers -----------------------------------------------------------------------------------

    async def _whole(self, response: UpstreamResponse, *, resumed: bool) -> GatewayResponse:
        data = await read_body(response)
        answer = GatewayResponse(response.status, answers.passed(response.raw_headers), data)
        if response.status >= _BAD:
            self.last = answer
            self.refused.append(answer)
            facts = {"status": response.status, "headers": text_headers(response), "body": data}
            raise AttemptError.of(evidence_of(facts)._replace(provider=self.call.wire.upstream))
        if response.status != _OK:
            return answer
        found = _read(data, response)
        evidence = self.call.wire.bodies.validate(found)
        if evidence is None:
            evidence = self._bad_call(found)
        if evidence is None or self._is_intended(evidence):
            return self._good(answer, found)
        self.last = answer  # it may be the best there will be
        if is_cut_at_limit(evidence):
            self.parts = [*self.parts, found] if resumed else [found]
        raise AttemptError.of(evidence)

    def _good(self, answer: GatewayResponse, found: dict[str, Any]) -> GatewayResponse:
        if self.parts:
            found = self.call.wire.bodies.merge([*self.parts, found])
            self.parts = []
            answer = answer._replace(body=orjson.dumps(found))
        usage = found.get("usage")
        self.usage = usage if isinstance(usage, dict) else {}
        bodies = self.call.wire.bodies
        if self.upstreams.inspect is not None:
            self._inspect(bodies.text_of(found), bodies.tool_calls(found))
        return answer

    def _inspect(self, text: str, calls: Sequence[tuple[str, object]]) -> None:
        """Show detectors an answer; what they find in it is the attempt's failure."""
        assert self.upstreams.inspect is not None  # noqa: S101  # only then is it called
        notice = self.upstreams.inspect(self.call, text, calls)
        if notice is not None and notice.warning:
            self.writer.notes["warning"] = notice.warning
        if notice is not None and notice.evidence is not None:
            self.parts = []
            raise AttemptError.of(notice.evidence)

    def _bad_call(self, found: dict[str, Any]) -> Evidence | None:
        for name, arguments in self.call.wire.bodies.tool_calls(found):
            bad = self._lacking(name, arguments)
            if bad:
                return Evidence(text=bad, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
        return None

    def _lacking(self, name: str, arguments: object) -> str:
        """What a call of a tool lacks, by what the request says that it takes."""
        return missing_arguments(name, arguments, self.call.wire.bodies.tool_schemas(self.call.parsed()))

    def said(self) -> str:
        """The answer so far."""
        if self.stream is not None:
            return self.stream.text()
        return self.call.wire.bodies.text_of(self.call.wire.bodies.merge(self.parts)) if self.parts else ""

    # -- streams -----------------------------------------------------------------------------------------

    async def _relay(self, response: UpstreamResponse, clock: PhaseTimer) -> None:
        """Pass a stream on as it comes; it has ended well when it says so, not when it is over."""
        stream = self.stream
        if stream is None:
            stream = self.stream = self.call.wire.splice(buffer_tool_calls=self.upstreams.settings.buffer_tool_calls)
            stream.check_call = self._lacking
        self.writer.headers = answers.passed(response.raw_headers)
        await self.writer.write(stream.begin_attempt())
        gap = self.upstreams.settings.timeouts.idle
        while chunk := await response.piece():
            out = stream.feed(chunk)
            if stream.error is not None:
                await self.writer.write(out)
                raise self._error_event(stream.error)
            if stream.ended and response.ended and not stream.truncated:  # all is here: it goes out with its end
                await self._ended(stream, out)
                return
            if out:
                await self.writer.write(out)
                if clock.phase != GAP:
                    clock.wait_for(GAP, gap)
            clock.came()
            if stream.truncated or stream.oversized:
                text = "the stream broke off inside an event" if stream.truncated else "an event is too large"
                raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        await self._ended(stream)

    async def _ended(self, stream: StreamSplicer, rest: bytes = b"") -> None:
        """The stream is over; `rest` is what the client has yet to get of it."""
        if stream.is_interrupted():
            text = f"the stream ended without {self.call.wire.end_marker}"
            raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        evidence = stream.validate()
        if evidence is not None and not self._is_intended(evidence, stream.tool_call_count):
            if not stream.call_error:
                self.native_end = stream.finish()
            await self.writer.write(rest)
            raise AttemptError.of(evidence)
        self.usage = stream.usage
        if self.upstreams.inspect is not None:
            await self.writer.write(rest)
            rest = b""
            self._inspect(stream.text(), stream.tool_calls)
        await self.writer.write(rest + stream.finish(), last=True)

    def _is_intended(self, evidence: Evidence, calls: int = 0) -> bool:
        asked, bodies = self.call.parsed(), self.call.wire.bodies
        return is_intended(
            evidence,
            calls=calls,
            limit=bodies.limit(asked),
            small_limit=self.upstreams.settings.intentional_max_tokens,
            may_be_empty=bodies.allows_empty(asked),
        )

    def _error_event(self, error: tuple[str, str]) -> AttemptError:
        name, data = error
        evidence = read_event(name, data) or Evidence(text=data[:2_000], phase=Phase.STREAM)
        evidence = evidence._replace(provider=self.call.wire.upstream)
        self.last = GatewayResponse(0, [(b"content-type", b"application/json")], data.encode())
        return AttemptError.of(evidence)

    async def ping(self) -> None:
        """Tell a waiting client that a stream is being worked on, and send headers that were held back."""
        stream, writer = self.stream, self.writer
        if writer.over or not self.call.streams or (writer.begun and stream is not None and stream.passthrough):
            return
        await writer.write(self.call.wire.ping)


def _read(data: bytes, response: UpstreamResponse) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        kind = header_of(response, b"content-type").decode("latin-1") or "no content type"
        text = f"the answer is not whole: {len(data)} bytes of {kind} that are not JSON"
        raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED) from None
    if not isinstance(found, dict):
        raise AttemptError("the answer is not a JSON object", finding=Kind.SERVER_ERROR)
    return found
