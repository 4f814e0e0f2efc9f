"""Event streams of the Chat Completions API: a reader for any compatible server, and a writer for strict clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Kind
from rung.core.domain.usage_formats import chat_usage
from rung.core.recovery.stop_reasons import stop_defect
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
    Stop,
    StreamFailed,
    TextDelta,
)
from rung.wires.translation.chat_answer import finish_reason, read_stop, uses_functions, write_usage
from rung.wires.translation.chat_call_deltas import ChatCallDeltas
from rung.wires.translation.chat_history_reader import reasoning_text
from rung.wires.translation.chat_history_writer import short_id
from rung.wires.wire_json import (
    data_event,
    int_or_zero,
    json_object,
    object_field,
    object_list,
    parse_event_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.wires.sse import ServerSentEvent
    from rung.wires.translation.answer import AnswerEvent
    from rung.wires.translation.conversation import Conversation

Json = dict[str, Any]

_DONE: Final = b"data: [DONE]\n\n"
_FOREIGN_FIELDS: Final = ("audio", "images", "annotations")


class ChatStreamReader:
    """Reads the chunks of one completion. The end is told when its usage or [DONE] has come, else by `finish`."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._calls = ChatCallDeltas()
        self._id = ""
        self._is_started = self._is_over = False
        self._has_refusal = False
        self._choice: Json = {}  # the choice that had a finish reason
        self._usage: Json = {}
        self._late_text: list[str] = []  # which came inside a call
        self._foreign: set[str] = set()

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Return the events that these bytes complete. Raise ValueError if a chunk is not valid JSON."""
        found: list[AnswerEvent] = []
        for event in self._events.feed(chunk):
            if event.data and not self._is_over:
                found += self._read(event)
        return found

    def finish(self) -> list[AnswerEvent]:
        """Return the end of an answer whose finish reason came, but neither its usage nor [DONE]."""
        if self._is_over or not self._choice:
            return []
        self._is_over = True
        stop, sequence = read_stop(self._choice, ())
        if stop in (Stop.END, Stop.UNKNOWN):
            stop = Stop.TOOL_CALLS if self._calls.has_calls else Stop.REFUSAL if self._has_refusal else stop
        return [Ended(stop=stop, stop_sequence=sequence, usage=chat_usage(self._usage))]

    def _read(self, event: ServerSentEvent) -> list[AnswerEvent]:
        if event.data.strip() == b"[DONE]":
            return self.finish()
        data = parse_event_json(event.data)
        if not isinstance(data, dict):
            return []
        if data.get("error") or data.get("object") == "error" or event.name == b"error":
            return self._fail(event.name.decode("utf-8", "replace") or "error", event)
        choices = [choice for choice in object_list(data, "choices") if not int_or_zero(choice.get("index"))]
        found = self._start(data) if choices else []
        if isinstance(data.get("usage"), dict):
            self._usage = data["usage"]
        for choice in choices:
            if not self._choice:
                found += self._read_choice(choice)
                if self._is_interrupted():
                    return found + self._fail(str(self._choice["finish_reason"]), event)
        return found + self.finish() if self._choice and isinstance(data.get("usage"), dict) else found

    def _start(self, data: Json) -> list[AnswerEvent]:
        if self._is_started:
            return []
        self._is_started = True
        self._id = str(data.get("id") or "")
        model, created = str(data.get("model") or ""), int_or_zero(data.get("created"))
        return [Started(id=self._id, model=model, created=created)]

    def _fail(self, name: str, event: ServerSentEvent) -> list[AnswerEvent]:
        self._is_over = True
        return [StreamFailed(name=name, data=event.data.decode("utf-8", "replace"))]

    def _is_interrupted(self) -> bool:
        """Return whether the server gave up, which some say by a finish reason."""
        defect = stop_defect(str(self._choice["finish_reason"])) if self._choice else None
        return defect is not None and defect.finding is Kind.STREAM_INTERRUPTED

    def _read_choice(self, choice: Json) -> list[AnswerEvent]:
        delta = object_field(choice, "delta")
        found = self._read_content(delta)
        for call in object_list(delta, "tool_calls"):
            found += self._calls.add(call, self._id)
        if legacy := object_field(delta, "function_call"):
            found += self._calls.add({"index": 0, "function": legacy}, self._id)
        if choice.get("finish_reason"):
            self._choice = choice
            is_cut = read_stop(choice, ())[0] is Stop.MAX_TOKENS  # the arguments of the last call may break off
            found += self._calls.end_complete(self._id) if is_cut else self._calls.end(self._id)
            found += [TextDelta(text=text) for text in self._late_text]
        return found

    def _read_content(self, delta: Json) -> list[AnswerEvent]:
        found: list[AnswerEvent] = []
        content = delta.get("content")
        items = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        if thought := reasoning_text(delta):
            found.append(ReasoningDelta(text=thought))
        for item in items:
            found += self._read_item(item) if isinstance(item, dict) else []
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            self._has_refusal = True
            found.append(RefusalDelta(text=delta["refusal"]))
        for name in _FOREIGN_FIELDS:
            if delta.get(name) and name not in self._foreign:
                self._foreign.add(name)
                found.append(ForeignBlock(kind=name))
        return found

    def _read_item(self, item: Json) -> list[AnswerEvent]:
        """Read text, or an item of the lists that Mistral sends."""
        if item.get("type") == "thinking":
            text = "".join(str(part.get("text") or "") for part in object_list(item, "thinking"))
            return [ReasoningDelta(text=text)] if text else []
        if item.get("type") != "text":
            return [ForeignBlock(kind=str(item.get("type")))]
        if not isinstance(item.get("text"), str) or not item["text"]:
            return []
        found = self._calls.end_complete(self._id)
        if self._calls.is_open:
            self._late_text.append(item["text"])
            return found
        return [*found, TextDelta(text=item["text"])]


class ChatStreamWriter:
    """Writes the chunks of one completion: the role, content, calls, the finish reason, usage if wanted, [DONE]."""

    def __init__(self, conversation: Conversation) -> None:
        self.dropped: set[str] = set()
        self._wants_usage = conversation.wants_usage
        self._is_legacy = uses_functions(conversation)
        self._head: Json = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": conversation.model}
        self._with_arguments: set[int] = set()
        self._calls = 0
        self._block = -1  # of the last text
        self._has_refusal = False
        self._is_apart = False  # whether something came after the last text

    def write(self, events: Iterable[AnswerEvent]) -> bytes:
        """Return the bytes of these events."""
        return b"".join([self._write(event) for event in events])

    def _write(self, event: AnswerEvent) -> bytes:
        match event:
            case Started():
                self._head |= {"id": event.id, "created": event.created, "model": event.model or self._head["model"]}
                return self._chunk({"role": "assistant", "content": ""})
            case TextDelta():
                return self._text(event)
            case RefusalDelta():
                self._has_refusal = self._has_refusal or bool(event.text)
                return self._chunk({"refusal": event.text})
            case CallStarted() | CallDelta() | CallEnded():
                self._is_apart = True
                return self._call(event)
            case ReasoningDelta():
                self._is_apart = True
                self.dropped.add("reasoning")
            case ForeignBlock():
                self._is_apart = True
                self.dropped.add(event.kind)
            case Ended():
                return self._end(event)
            case StreamFailed():
                return _error_chunk(event)
        return b""

    def _text(self, event: TextDelta) -> bytes:
        """Write text. A blank line parts it from earlier text if something was between them, as in whole answers."""
        is_new = self._is_apart and event.block != self._block
        text = f"\n\n{event.text}" if is_new and self._block >= 0 else event.text
        self._block, self._is_apart = event.block, False
        return self._chunk({"content": text}) if text else b""

    def _call(self, event: CallStarted | CallDelta | CallEnded) -> bytes:
        if self._is_legacy and event.index > 0:
            self.dropped.add("parallel_tool_calls")
            return b""
        if isinstance(event, CallStarted):
            self._calls += 1
            function = {"name": event.name, "arguments": ""}
            return self._call_chunk(event.index, function, {"id": short_id(event.id), "type": "function"})
        if isinstance(event, CallDelta):
            self._with_arguments.add(event.index)
            return self._call_chunk(event.index, {"arguments": event.json}, {})
        if event.index in self._with_arguments:
            return b""
        return self._call_chunk(event.index, {"arguments": "{}"}, {})  # strict clients parse the arguments

    def _call_chunk(self, index: int, function: Json, fields: Json) -> bytes:
        if self._is_legacy:
            return self._chunk({"function_call": function})
        return self._chunk({"tool_calls": [{"index": index, **fields, "function": function}]})

    def _end(self, event: Ended) -> bytes:
        reason = finish_reason(
            event.stop, has_calls=self._calls > 0, has_refusal=self._has_refusal, is_legacy=self._is_legacy
        )
        usage = (
            data_event({**self._head, "choices": [], "usage": write_usage(event.usage)}) if self._wants_usage else b""
        )
        return self._chunk({}, reason) + usage + _DONE

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return data_event({**self._head, "choices": [choice]})


def _error_chunk(event: StreamFailed) -> bytes:
    """Return the error in the form of this wire."""
    data = json_object(event.data)
    error = object_field(data, "error") or data
    message = str(error.get("message") or event.data or event.name)
    kind = str(error.get("type") or event.name or "server_error")
    return data_event({"error": {"message": message, "type": kind, "param": None, "code": error.get("code")}})
