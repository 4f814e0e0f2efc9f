"""Streams of Gemini's streamGenerateContent: each event is a whole answer with the next parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import gemini_usage
from rung.wires.sse import EventReader
from rung.wires.translation.answer import (
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    ForeignBlock,
    ReasoningDelta,
    RefusalDelta,
    Started,
    StreamFailed,
    TextDelta,
)
from rung.wires.translation.conversation import (
    ForeignPart,
    MediaPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from rung.wires.translation.gemini_answer import (
    FINISH_REASONS,
    AnswerCalls,
    blocked_text,
    first_candidate,
    head,
    malformed_call,
    stop_of,
    written_usage,
)
from rung.wires.translation.gemini_contents import signed_call
from rung.wires.translation.gemini_fields import spelled
from rung.wires.translation.gemini_parts import object_of
from rung.wires.wire_json import data_event, json_object, object_field, object_list, parse_event_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rung.wires.translation.answer import AnswerEvent
    from rung.wires.translation.conversation import Conversation

# Errors of other wires, in Google's words. Any other error is INTERNAL.
_ERRORS: Final = {
    "overloaded_error": (503, "UNAVAILABLE"),
    "rate_limit_error": (429, "RESOURCE_EXHAUSTED"),
    "rate_limit_exceeded": (429, "RESOURCE_EXHAUSTED"),
    "insufficient_quota": (429, "RESOURCE_EXHAUSTED"),
    "timeout_error": (504, "DEADLINE_EXCEEDED"),
    "invalid_request_error": (400, "INVALID_ARGUMENT"),
}


class GeminiStreamReader:
    """Reader of one stream. The usage comes with each event; the last one counts."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._calls: AnswerCalls | None = None  # None: no event yet
        self._usage: Mapping[str, Any] = {}
        self._block = 0
        self._is_in_text = False
        self._held: Ended | None = None  # an end without usage, which may follow
        self._is_over = False

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Return the events that these bytes complete. Raise ValueError if an event is not valid JSON."""
        found: list[AnswerEvent] = []
        for event in self._events.feed(chunk):
            if not event.data:
                continue
            for item in _objects(event.data):
                found.extend(self._read(item))
        return found

    def finish(self) -> list[AnswerEvent]:
        """Return the end of the answer if it was given without usage, and the transfer has ended."""
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _read(self, data: dict[str, Any]) -> list[AnswerEvent]:
        if "error" in data and not self._is_over:
            self._is_over, self._held = True, None
            return [StreamFailed(name="error", data=to_json(data))]
        fields = spelled(data)
        usage = spelled(object_field(fields, "usageMetadata"))
        self._usage = usage or self._usage
        if self._held is not None and usage:
            held, self._held = self._held, None
            return [Ended(stop=held.stop, usage=gemini_usage(usage))]
        if self._is_over:
            return []
        return [*self._start(fields), *self._content(fields), *self._end(fields, has_usage=bool(usage))]

    def _start(self, fields: Mapping[str, Any]) -> list[AnswerEvent]:
        if self._calls is not None:
            return []
        self._calls = AnswerCalls(fields)
        answer_id, model = fields.get("responseId"), fields.get("modelVersion")
        return [
            Started(
                id=answer_id if isinstance(answer_id, str) else "",
                model=model if isinstance(model, str) else "",
                usage=gemini_usage(self._usage) if self._usage else None,
            )
        ]

    def _content(self, fields: Mapping[str, Any]) -> list[AnswerEvent]:
        content = spelled(object_field(first_candidate(fields), "content"))
        return [event for part in object_list(content, "parts") for event in self._part(part)]

    def _part(self, raw: Mapping[str, Any]) -> list[AnswerEvent]:
        assert self._calls is not None  # noqa: S101  # the first event has set it
        index = self._calls.count
        part = self._calls.part(raw)
        if isinstance(part, TextPart):
            self._is_in_text = True
            return [TextDelta(text=part.text, block=self._block)] if part.text else []
        if isinstance(part, ReasoningPart):
            return [ReasoningDelta(text=part.text)] if part.text else []
        if self._is_in_text:
            self._block, self._is_in_text = self._block + 1, False
        if isinstance(part, ToolCallPart):
            started = CallStarted(index=index, id=part.id, name=part.name)
            return [started, CallDelta(index=index, json=part.arguments), CallEnded(index=index)]
        kind = part.kind if isinstance(part, ForeignPart | MediaPart) else "function_response"
        return [ForeignBlock(kind=str(kind))]

    def _end(self, fields: Mapping[str, Any], *, has_usage: bool) -> list[AnswerEvent]:
        reason, blocked = first_candidate(fields).get("finishReason"), blocked_text(fields)
        if not reason and blocked is None:
            return []
        assert self._calls is not None  # noqa: S101  # the first event has set it
        self._is_over = True
        stop = stop_of(reason, has_calls=self._calls.count > 0, is_blocked=blocked is not None)
        ended = Ended(stop=stop, usage=gemini_usage(self._usage))
        refusal: list[AnswerEvent] = [RefusalDelta(text=blocked)] if blocked else []
        if has_usage:
            return [*refusal, ended]
        self._held = ended
        return refusal


def _objects(data: bytes) -> list[dict[str, Any]]:
    """Return the objects of an event: one, or a list of them, as Google gives some errors."""
    try:
        found = parse_event_json(data)
    except RecursionError as error:
        raise ValueError("an event of the stream is nested too deeply") from error
    items = found if isinstance(found, list) else [found]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError("an event of the stream is not an object")
    return items


class GeminiStreamWriter:
    """Writer of one stream. A call is written when its arguments are complete: Gemini has no pieces of calls."""

    def __init__(self, conversation: Conversation) -> None:
        self.dropped: set[str] = set()
        self._model = conversation.model
        self._head: dict[str, Any] = head("", self._model, 0)
        self._open: dict[int, tuple[CallStarted, list[str]]] = {}
        self._ending: dict[str, Any] = {}  # of a malformed call
        self._has_call = False
        self._is_over = False

    def write(self, events: Iterable[AnswerEvent]) -> bytes:
        """Return the bytes of these events."""
        return b"".join([self._write(event) for event in events if not self._is_over])

    def _write(self, event: AnswerEvent) -> bytes:
        match event:
            case TextDelta(text=text) | RefusalDelta(text=text):
                return self._chunk({"text": text}) if text else b""
            case CallStarted():
                self._open[event.index] = (event, [])
            case CallDelta():
                if event.index in self._open:
                    self._open[event.index][1].append(event.json)
            case CallEnded():
                return self._write_call(event.index)
            case Started():
                self._head = head(event.id, event.model or self._model, event.created)
            case ReasoningDelta():
                self.dropped.add("reasoning")
            case ForeignBlock():
                self.dropped.add(event.kind)
            case Ended():
                return self._write_end(event)
            case StreamFailed():
                self._is_over = True
                return data_event(_error_of(event.data))
        return b""

    def _write_call(self, index: int) -> bytes:
        started, pieces = self._open.pop(index, (None, []))
        if started is None:
            return b""
        part = ToolCallPart(id=started.id, name=started.name, arguments="".join(pieces))
        if object_of(part.arguments) is None:
            self._ending = malformed_call(part)
            return b""
        is_first, self._has_call = not self._has_call, True
        return self._chunk(signed_call(part, is_first=is_first))

    def _write_end(self, event: Ended) -> bytes:
        self._is_over = True
        if self._open:
            self.dropped.add("incomplete_call")
        if event.stop_sequence:
            self.dropped.add("stop_sequence")
        ending = {"finishReason": FINISH_REASONS[event.stop], **self._ending}
        return self._chunk({"text": ""}, ending, {"usageMetadata": written_usage(event.usage)})

    def _chunk(
        self, part: dict[str, Any], ending: Mapping[str, Any] | None = None, usage: Mapping[str, Any] | None = None
    ) -> bytes:
        candidate = {"content": {"parts": [part], "role": "model"}, **(ending or {}), "index": 0}
        return data_event({"candidates": [candidate], **(usage or {}), **self._head})


def _error_of(data: str) -> dict[str, Any]:
    """Return an error in Google's format."""
    found = json_object(data)
    error = object_field(found, "error") or object_field(object_field(found, "response"), "error") or found
    if isinstance(error.get("code"), int) and isinstance(error.get("status"), str):
        return {"error": error}
    name = next(
        (each for each in (error.get("code"), error.get("type")) if isinstance(each, str) and each in _ERRORS), ""
    )
    code, status = _ERRORS.get(name, (500, "INTERNAL"))
    message = error.get("message")
    return {"error": {"code": code, "message": message if isinstance(message, str) else data, "status": status}}
