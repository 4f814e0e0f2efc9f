"""Request and response of one attempt at an upstream of another wire format.

The gateway works on the client's wire. A request is translated after all its rewrites, a response before anything reads it.
"""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.errors.sse import read_event
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stop_reasons import stop_defect
from rung.gateway.http.answer_reading import parse_answer
from rung.gateway.http.port import header_of, read_body
from rung.wires.sse import KEEP_ALIVE
from rung.wires.translation.answer import Ended, Started, Stop, StreamFailed
from rung.wires.translation.argument_keys import ArgumentKeys
from rung.wires.translation.conversation import Family
from rung.wires.translation.dropped_names import list_names
from rung.wires.translation.tool_names import ToolNames
from rung.wires.wire_json import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.gateway.http.port import UpstreamResponse
    from rung.wires.translation.answer import AnswerEvent, Usage
    from rung.wires.translation.conversation import Conversation
    from rung.wires.translation.format import WireTranslator

    Headers = list[tuple[bytes, bytes]]

_OK: Final = 200
_EVENT_STREAM: Final = b"text/event-stream"
# Of the upstream's headers, those that say something about its limits and the request. Others describe its own API.
_KEPT_HEADERS: Final = (b"retry-after", b"retry-after-ms", b"request-id", b"x-request-id", b"date")
_MALFORMED_CALL: Final = "malformed_function_call"
_MALFORMED: Final = "upstream stream has an event that is not valid JSON"


class TranslatedCall:
    """Translation of one attempt: `body` is the request for the upstream, `dropped` what its wire cannot say.

    `validate` finds defects of a whole answer in the upstream's format.
    """

    def __init__(
        self,
        client: WireTranslator,
        upstream: WireTranslator,
        body: bytes,
        model: str,
        *,
        is_stream: bool,
        validate: Callable[[dict[str, Any]], Evidence | None],
    ) -> None:
        self._client, self._upstream, self._validate = client, upstream, validate
        # A body of Gemini's API does not say whether it asks for a stream.
        self._conversation: Conversation = replace(client.read_request(load_json(body)), is_stream=is_stream)
        self._names = ToolNames(self._conversation)
        self._keys = ArgumentKeys(self._conversation, upstream.family)
        written = upstream.write_request(self._names.sent(self._keys.sent(replace(self._conversation, model=model))))
        self.body = dump_json(written.body)
        self.dropped: set[str] = set(written.dropped)
        self.on_dropped: Callable[[str], object] = str  # called with all names when the answer adds one
        self.usage: Usage | None = None  # as the upstream reported it, at the end of the answer
        self.defect: Evidence | None = None  # that the answer ended with, if the client's wire has no word for it

    def response(self, response: UpstreamResponse, max_bytes: int, now: Callable[[], float]) -> UpstreamResponse:
        """Return a response in the client's wire format. An error response stays as the upstream sent it."""
        if response.status != _OK:
            return response
        if header_of(response, b"content-type").lower().startswith(_EVENT_STREAM):
            return TranslatedStream(response, self, now)
        return TranslatedAnswer(response, self, max_bytes, now)

    def events(self) -> tuple[Callable[[bytes], list[AnswerEvent]], Callable[[], list[AnswerEvent]]]:
        """Return the functions that read the upstream's stream: of a chunk, and of its regular end."""
        reader = self._upstream.stream_reader()

        def restored(events: list[AnswerEvent]) -> list[AnswerEvent]:
            return self._keys.events(self._names.events(events))

        return lambda chunk: restored(reader.feed(chunk)), lambda: restored(reader.finish())

    def writer(self) -> Callable[[Sequence[AnswerEvent]], bytes]:
        """Return the function that writes events for the client."""
        writer = self._client.stream_writer(self._conversation)

        def write(events: Sequence[AnswerEvent]) -> bytes:
            data = writer.write(events)
            self._drop(writer.dropped)
            return data

        return write

    def answer(self, body: dict[str, Any], now: int) -> bytes:
        """Return a whole answer in the client's wire format. Raises AttemptError for an error in place of an answer."""
        error = _error_in(body)
        if error is not None:
            raise AttemptError.of(error)
        defect = self._validate(body)
        if defect is not None and defect.finding is Kind.STREAM_INTERRUPTED:  # it is no answer, or an unfinished one
            raise AttemptError.of(defect)
        answer = self._keys.answer(self._names.answer(self._upstream.read_answer(body)))
        self.note_end(answer.stop, answer.usage)
        if defect is not None and defect.finding is Kind.MALFORMED_OUTPUT:  # the translated answer may not show it
            self.defect = defect
        answer = replace(answer, id=self.answer_id(answer.id), created=answer.created or now)
        written = self._client.write_answer(answer, self._conversation)
        self._drop(set(written.dropped))
        return dump_json(written.body)

    def note_end(self, stop: Stop, usage: Usage) -> None:
        """Note how the answer ended."""
        self.usage = usage
        self.defect = stop_defect(_MALFORMED_CALL) if stop is Stop.MALFORMED_CALL else None

    def answer_id(self, name: str) -> str:
        """Return the id of an answer. A client of Responses refers to it, and some servers repeat theirs, or have none."""
        return f"{name}_{token_hex(8)}" if self._client.family is Family.RESPONSES else name

    def dropped_names(self) -> str:
        """Return what the wires cannot say, as the value of a header."""
        return list_names(sorted(self.dropped))

    def _drop(self, names: set[str]) -> None:
        if not names <= self.dropped:
            self.dropped |= names
            self.on_dropped(self.dropped_names())


class TranslatedStream:
    """Event stream of an upstream, in the client's wire format."""

    status = _OK

    def __init__(self, response: UpstreamResponse, call: TranslatedCall, now: Callable[[], float]) -> None:
        self._response, self._call, self._now = response, call, now
        self._read, self._finish = call.events()
        self._write = call.writer()
        self._is_finished = False
        self.raw_headers: Headers = [(b"content-type", _EVENT_STREAM), *_passed_headers(response)]
        self.close = response.close

    @property
    def ended(self) -> bool:
        """Return whether the whole body was read."""
        return self._is_finished

    async def read_chunk(self) -> bytes:
        """Return the next bytes; empty at the end. Raises AttemptError for an error event of the upstream.

        Bytes that say nothing to the client, such as reasoning, are a comment: the upstream is at work.
        """
        if self._is_finished:
            return b""
        chunk = await self._response.read_chunk()
        try:
            events = self._read(chunk) if chunk else self._finish()
        except ValueError:
            raise AttemptError(_MALFORMED, finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM) from None
        self._is_finished = not chunk
        return self._translate(events) or (KEEP_ALIVE if chunk else b"")

    def _translate(self, events: list[AnswerEvent]) -> bytes:
        for position, event in enumerate(events):
            if isinstance(event, StreamFailed):
                raise _failure(event)
            if isinstance(event, Started):
                created = event.created or int(self._now())
                events[position] = replace(event, id=self._call.answer_id(event.id), created=created)
            if isinstance(event, Ended):
                self._call.note_end(event.stop, event.usage)
        return self._write(events)


class TranslatedAnswer:
    """Whole answer of an upstream, in the client's wire format."""

    status = _OK

    def __init__(
        self, response: UpstreamResponse, call: TranslatedCall, max_bytes: int, now: Callable[[], float]
    ) -> None:
        self._response, self._call, self._max_bytes, self._now = response, call, max_bytes, now
        self.ended = False
        self.raw_headers: Headers = [(b"content-type", b"application/json"), *_passed_headers(response)]
        self.close = response.close

    async def read_chunk(self) -> bytes:
        """Return the whole answer at once, then nothing."""
        if self.ended:
            return b""
        data = await read_body(self._response, self._max_bytes)
        self.ended = True
        return self._call.answer(parse_answer(data, self._response), int(self._now()))


def _passed_headers(response: UpstreamResponse) -> Headers:
    return [header for header in response.raw_headers if header[0] in _KEPT_HEADERS]


def _error_in(body: dict[str, Any]) -> Evidence | None:
    """Return the error that an upstream sent with status 200, as OpenRouter does; None for an answer."""
    found = read_event("error", dump_json(body).decode()) if body.get("error") else None
    return found and found._replace(phase=Phase.RESULT)


def _failure(event: StreamFailed) -> AttemptError:
    evidence = read_event(event.name, event.data) or Evidence(text=event.data[:2_000], phase=Phase.STREAM)
    return AttemptError.of(evidence)
