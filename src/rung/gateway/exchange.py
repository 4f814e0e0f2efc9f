"""One request on its way: attempts at upstreams, and what the client gets of them.

The first attempt is made as it came. Only when it fails is there a recovery: the engine's, on the `call`
ladder. What to do is decided there; here is only what one attempt is and what its end looks like.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.adapters.sse import read_event
from rung.core.arguments import lacking
from rung.core.errors import AttemptError, RungError
from rung.core.evidence import evidence_of
from rung.core.failures import Evidence, Kind, Phase
from rung.gateway import answer as answers
from rung.gateway.answer import Answer
from rung.gateway.changes import limit_was_meant
from rung.gateway.clocks import FIRST, GAP, HEADERS, Clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rung.core.failures import Failure
    from rung.core.request import Request
    from rung.core.splice import Splice
    from rung.gateway.call import Call
    from rung.gateway.changes import Changes
    from rung.gateway.connection import Response
    from rung.gateway.gateway import Gateway
    from rung.gateway.settings import Upstream

    Headers = list[tuple[bytes, bytes]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

_OK: Final = 200
_BAD: Final = 400
_CUT: Final = frozenset({"max_tokens", "length", "max_output_tokens"})
_FIRST_TIME: Final = (b"x-rung-attempts", b"1")
_EVENTS: Final = b"text/event-stream"


class Exchange:
    """What has come of one call so far."""

    def __init__(self, gateway: Gateway, call: Call, send: Send) -> None:
        self.gateway = gateway
        self.call = call
        self._send = send
        self.changes: Changes | None = None  # when something had to change
        self.attempts = 0
        self.taken = False  # an upstream has taken it, whatever came of that
        self.begun = False  # the client has headers
        self.over = False  # the client has everything
        self.stream: Splice | None = None
        self.parts: list[dict[str, Any]] = []  # whole answers that were cut short
        self.refused: list[Answer] = []  # the upstreams' own errors, as they came
        self.last: Answer | None = None  # that of the last attempt, if it had one
        self.usage: dict[str, Any] = {}
        self.tokens = (0, 0)  # in and out, once they are counted
        self.pinned = b""  # the body for the model its session is on
        self._native_end = b""  # the end of a stream that was cut short, as it came
        self._headers: list[tuple[bytes, bytes]] = []
        self._clock: Clock | None = None
        self.notes: dict[str, Any] = {}  # what was done, for the headers

    # -- an attempt --------------------------------------------------------------------------------------

    async def attempt(self, request: Request | None) -> Answer | None:
        """One exchange with one upstream: a whole answer, or None when it has been passed on as it came."""
        try:
            return await self._attempt(request)
        except (AttemptError, OSError) as error:
            stream = self.stream
            if stream is None or not stream.started:
                raise
            if stream.calls and not stream.bad_call and not stream.ended:
                # Whole calls are with the client: they can be run, and must not be made twice.
                self.notes["settled"] = "the stream broke after a complete tool call"
                self.usage = stream.usage
                await self.write(stream.settle(), last=True)
                return None
            evidence = error.evidence if isinstance(error, AttemptError) else evidence_of(error)
            raise AttemptError.of(self._seen(evidence)) from None

    async def _attempt(self, request: Request | None) -> Answer | None:
        self.attempts += 1
        self.last = None
        call, gateway = self.call, self.gateway
        upstream, body = call.upstream, self.pinned or call.body
        headers = call.passed
        if request is not None and self.changes is not None:
            body = self.changes.bytes_of(request)
            if request.agent != upstream.name:
                upstream = gateway.upstream(request.agent)
                headers = gateway.headers_for(call, upstream)
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # we are in one
        with Clock(loop, task) as clock:
            self._clock = clock
            try:
                response = await self._open(upstream, headers, body, clock)
                try:
                    if response.status == _OK and response.header(b"content-type").startswith(_EVENTS):
                        await self._relay(response, clock)
                        return None
                    return await self._whole(response)
                finally:
                    response.close()
            except (OSError, RungError):
                raise
            except Exception as error:  # noqa: BLE001  # whatever the client library raises, the stream has broken
                raise AttemptError.of(evidence_of(error)) from None

    async def _open(self, upstream: Upstream, headers: Headers, body: bytes, clock: Clock) -> Response:
        timeouts = self.gateway.settings.timeouts
        grace = timeouts.last_resort_factor if self.gateway.is_last(self) else 1.0
        clock.wait_for(HEADERS, grace * (timeouts.headers if self.call.streams else timeouts.total))
        response = await self.gateway.pool.send(upstream, "POST", self.call.target, headers, body)
        if response.status == _OK:
            self.taken = True
            if self.changes is not None:
                self.changes.taken()
        clock.wait_for(FIRST, grace * timeouts.first_token)
        return response

    def _seen(self, evidence: Evidence) -> Evidence:
        """The same, saying whether the client has a part of the answer."""
        if self.stream is None or not self.stream.started:
            return evidence
        phase = Phase.STREAM if evidence.phase is Phase.CALL else evidence.phase
        return evidence._replace(output_started=True, phase=phase)

    # -- whole answers -----------------------------------------------------------------------------------

    async def _whole(self, response: Response) -> Answer:
        data = await response.read()
        answer = Answer(response.status, answers.passed(response.raw_headers), data)
        if response.status >= _BAD:
            self.last = answer
            self.refused.append(answer)
            facts = {"status": response.status, "headers": response.headers, "body": data}
            raise AttemptError.of(evidence_of(facts)._replace(provider=self.call.wire.upstream))
        if response.status != _OK:
            return answer
        found = self._read(data, response)
        evidence = self.call.wire.bodies.found(found)
        if evidence is None:
            evidence = self._bad_call(found)
        if evidence is None or self._as_meant(evidence):
            return self._good(answer, found)
        self._cut_short(evidence, found, answer)
        raise AttemptError.of(evidence)

    def _read(self, data: bytes, response: Response) -> dict[str, Any]:
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError:
            kind = response.header(b"content-type").decode("latin-1") or "no content type"
            text = f"the answer is not whole: {len(data)} bytes of {kind} that are not JSON"
            raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED) from None
        if not isinstance(found, dict):
            raise AttemptError("the answer is not a JSON object", finding=Kind.SERVER_ERROR)
        return found

    def _good(self, answer: Answer, found: dict[str, Any]) -> Answer:
        if self.parts:
            found = self.call.wire.bodies.joined([*self.parts, found])
            self.parts = []
            answer = answer._replace(body=orjson.dumps(found))
        usage = found.get("usage")
        self.usage = usage if isinstance(usage, dict) else {}
        bodies = self.call.wire.bodies
        if self.gateway.detectors:
            self._shown(bodies.said(found), bodies.called(found))
        return answer

    def _shown(self, text: str, calls: Sequence[tuple[str, object]]) -> None:
        """Show detectors an answer; what they find in it is the attempt's failure."""
        notice = self.gateway.look(self.call, text, calls)
        if notice is not None and notice.warning:
            self.notes["warning"] = notice.warning
        if notice is not None and notice.evidence is not None:
            self.parts = []
            raise AttemptError.of(notice.evidence)

    def _cut_short(self, evidence: Evidence, found: dict[str, Any], answer: Answer) -> None:
        """Keep what can be gone on with, and the answer as it came: it may be the best there will be."""
        self.last = answer
        if evidence.code in _CUT:
            resumed = self.changes is not None and self.changes.resuming
            self.parts = [*self.parts, found] if resumed else [found]

    def _bad_call(self, found: dict[str, Any]) -> Evidence | None:
        for name, arguments in self.call.wire.bodies.called(found):
            bad = self._lacking(name, arguments)
            if bad:
                return Evidence(text=bad, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
        return None

    def _lacking(self, name: str, arguments: object) -> str:
        """What a call of a tool lacks, by what the request says that it takes."""
        return lacking(name, arguments, self.call.wire.bodies.tools(self.call.parsed()))

    def said(self) -> str:
        """The answer so far."""
        if self.stream is not None:
            return self.stream.text()
        return self.call.wire.bodies.said(self.call.wire.bodies.joined(self.parts)) if self.parts else ""

    # -- streams -----------------------------------------------------------------------------------------

    async def _relay(self, response: Response, clock: Clock) -> None:
        """Pass a stream on as it comes; it has ended well when it says so, not when it is over."""
        stream = self.stream
        if stream is None:
            stream = self.stream = self.call.wire.splice(buffer_tool_calls=self.gateway.settings.buffer_tool_calls)
            stream.check = self._lacking
        self._headers = answers.passed(response.raw_headers)
        await self.write(stream.begin())
        gap = self.gateway.settings.timeouts.idle
        while chunk := await response.piece():
            out = stream.take(chunk)
            if stream.error is not None:
                await self.write(out)
                raise self._error_event(stream.error)
            if stream.ended and response.ended and not stream.garbled:  # all is here: it goes out with its end
                await self._ended(stream, out)
                return
            if out:
                await self.write(out)
                if clock.phase != GAP:
                    clock.wait_for(GAP, gap)
            clock.came()
            if stream.garbled or stream.overlong:
                text = "the stream broke off inside an event" if stream.garbled else "an event is too large"
                raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        await self._ended(stream)

    async def _ended(self, stream: Splice, rest: bytes = b"") -> None:
        """The stream is over; `rest` is what the client has yet to get of it."""
        if stream.interrupted():
            text = f"the stream ended without {self.call.wire.ending}"
            raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM)
        evidence = stream.found()
        if evidence is not None and not self._as_meant(evidence, stream.calls):
            if not stream.bad_call:
                self._native_end = stream.finish()
            await self.write(rest)
            raise AttemptError.of(evidence)
        self.usage = stream.usage
        if self.gateway.detectors:
            await self.write(rest)
            rest = b""
            self._shown(stream.text(), stream.called)
        await self.write(rest + stream.finish(), last=True)

    def _as_meant(self, evidence: Evidence, calls: int = 0) -> bool:
        """Is it what the client wanted, or a cut that cannot be gone on from: calls would be made twice?"""
        if evidence.finding is Kind.PARTIAL_OUTPUT:
            return self.call.wire.bodies.may_be_silent(self.call.parsed())
        return evidence.code in _CUT and (calls > 0 or limit_was_meant(self.call, self.gateway.settings))

    def _error_event(self, error: tuple[str, str]) -> AttemptError:
        name, data = error
        evidence = read_event(name, data) or Evidence(text=data[:2_000], phase=Phase.STREAM)
        evidence = evidence._replace(provider=self.call.wire.upstream)
        self.last = Answer(0, [(b"content-type", b"application/json")], data.encode())
        return AttemptError.of(evidence)

    # -- what the client gets ----------------------------------------------------------------------------

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Pass on a piece of a stream; headers first."""
        if not data and not last:
            return
        if not self.begun:
            self.begun = True
            headers = [*self._headers, *self._done()]
            await self._send({"type": "http.response.start", "status": _OK, "headers": headers})
        clock = self._clock
        if clock is not None:
            clock.writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        if clock is not None:
            clock.writing = False
        self.over = last

    async def ping(self) -> None:
        """Let a client hear that a stream is being worked on; headers are not held back for ever."""
        if self.over or not self.call.streams or (self.begun and self.stream is not None and self.stream.plain):
            return
        if not self._headers:
            self._headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await self.write(self.call.wire.ping)

    async def reply(self, answer: Answer) -> None:
        """Give a whole answer."""
        self.begun = self.over = True
        length = (b"content-length", str(len(answer.body)).encode())
        headers = [*answer.headers, *self._done(), length]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer.body})

    def _done(self) -> list[tuple[bytes, bytes]]:
        return answers.done(attempts=self.attempts, **self.notes) if self.notes else [_FIRST_TIME]

    async def surface(self, failure: Failure) -> None:
        """The ladder is spent: the provider's own answer or error, and that it is not worth trying again."""
        if self.over:
            return
        status = answers.status_of(failure.kind)
        if self._native_end:
            await self.write(self._native_end, last=True)
        elif self.parts:
            whole = self.call.wire.bodies.joined(self.parts)
            await self.reply(Answer(_OK, _json(), orjson.dumps(whole)))
        elif self.begun:
            assert self.stream is not None or self.call.streams  # noqa: S101  # only streams begin before they end
            stream = self.stream or self.call.wire.splice()
            await self.write(stream.failed(status, _words(failure)), last=True)
        else:
            await self.reply(self._final(failure, status))

    def _final(self, failure: Failure, status: int) -> Answer:
        no_more = (b"x-should-retry", b"false")
        last = self.last
        if failure.kind is Kind.INVALID_REQUEST and self.changes is not None and len(self.refused) > 1:
            last = self.refused[0]  # what the client asked for was refused so, not what we made of it
        if last is None:
            wait = failure.retry_after
            more = [] if wait is None else [(b"retry-after", str(int(wait) + 1).encode())]
            return answers.error(self.call.wire, status, _words(failure), *more)
        if last.status == 0:  # of an event: it had no status of its own
            last = last._replace(status=failure.evidence.status or status)
        return last._replace(headers=[*last.headers, no_more])


def _json() -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"application/json")]


def _words(failure: Failure) -> str:
    first = failure.message.strip().splitlines()[0][:500] if failure.message.strip() else ""
    return f"{failure.kind}: {first}" if first else str(failure.kind)
