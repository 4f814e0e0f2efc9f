"""Reader of the event stream of Anthropic's Messages API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import anthropic_usage
from rung.wires.sse import EventReader
from rung.wires.translation.answer import (
    AnswerEvent,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    ForeignBlock,
    ReasoningDelta,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
)
from rung.wires.translation.anthropic_answer import STOPS
from rung.wires.translation.anthropic_block_reader import arguments_text
from rung.wires.wire_json import int_or_zero, object_field, parse_event_json

if TYPE_CHECKING:
    from rung.wires.sse import ServerSentEvent

Data = dict[str, Any]


@dataclass(slots=True)
class _OpenBlock:
    kind: str
    number: int = 0  # of the text or of the call
    input: Data | None = None  # arguments that came whole at the start
    has_json: bool = False


class AnthropicStreamReader:
    """Reads the events of one message. Pings and unknown events are ignored."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._blocks: dict[int, _OpenBlock] = {}
        self._texts = 0
        self._calls = 0
        self._usage: Data = {}
        self._stop = ""
        self._stop_sequence = ""
        self._is_ended = False

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Return the events that these bytes complete. Raise ValueError if an event is not valid JSON or is too large."""
        found = [event for raw in self._reader.feed(chunk) if raw.data for event in self._read(raw)]
        if self._reader.oversized:
            raise ValueError("an event of the stream exceeds the size limit")
        return found

    def finish(self) -> list[AnswerEvent]:
        """Return the end of a message whose stop reason came, but whose message_stop did not."""
        return self._message_stop({}) if self._stop and not self._is_ended else []

    def _read(self, event: ServerSentEvent) -> list[AnswerEvent]:
        try:
            data = parse_event_json(event.data)
        except RecursionError:
            raise ValueError("an event of the stream is nested too deeply") from None
        name = data.get("type") if isinstance(data, dict) else None
        if self._is_ended or not isinstance(name, str):
            return []
        if name == "error":
            self._is_ended = True
            return [StreamFailed(name=event.name.decode("utf-8", "replace") or name, data=event.data.decode())]
        reader = _READERS.get(name)
        return reader(self, data) if reader is not None else []

    def _message_start(self, data: Data) -> list[AnswerEvent]:
        message = object_field(data, "message")
        self._usage = dict(object_field(message, "usage"))
        usage = anthropic_usage(self._usage)
        return [Started(id=str(message.get("id") or ""), model=str(message.get("model") or ""), usage=usage)]

    def _block_start(self, data: Data) -> list[AnswerEvent]:
        content = object_field(data, "content_block")
        block = self._blocks[int_or_zero(data.get("index"))] = _OpenBlock(kind=str(content.get("type")))
        match block.kind:
            case "text":
                block.number, self._texts = self._texts, self._texts + 1
                return self._text(block, content.get("text"))
            case "tool_use":
                block.number, self._calls = self._calls, self._calls + 1
                block.input = object_field(content, "input")
                call_id, name = str(content.get("id") or ""), str(content.get("name") or "")
                return [CallStarted(index=block.number, id=call_id, name=name)]
            case "thinking":
                return self._reasoning(content.get("thinking"))
        return [ForeignBlock(kind=block.kind)]

    def _block_delta(self, data: Data) -> list[AnswerEvent]:
        block = self._blocks.get(int_or_zero(data.get("index")))
        delta = object_field(data, "delta")
        if block is None:
            return []
        match delta.get("type"), block.kind:
            case "text_delta", "text":
                return self._text(block, delta.get("text"))
            case "input_json_delta", "tool_use":
                json = delta.get("partial_json")
                block.has_json = block.has_json or bool(json)
                return [CallDelta(index=block.number, json=json)] if isinstance(json, str) and json else []
            case "thinking_delta", "thinking":
                return self._reasoning(delta.get("thinking"))
            case "citations_delta", _:
                return [ForeignBlock(kind="citations")]
        return []

    def _block_stop(self, data: Data) -> list[AnswerEvent]:
        block = self._blocks.pop(int_or_zero(data.get("index")), None)
        if block is None or block.kind != "tool_use":
            return []
        ended = CallEnded(index=block.number)
        if block.input and not block.has_json:
            return [CallDelta(index=block.number, json=arguments_text(block.input)[0]), ended]
        return [ended]

    def _message_delta(self, data: Data) -> list[AnswerEvent]:
        delta = object_field(data, "delta")
        self._stop = str(delta.get("stop_reason") or "") or self._stop
        self._stop_sequence = str(delta.get("stop_sequence") or "") or self._stop_sequence
        # The counts are totals. Those that are missing here stand in message_start.
        self._usage |= {name: value for name, value in object_field(data, "usage").items() if value is not None}
        return []

    def _message_stop(self, data: Data) -> list[AnswerEvent]:  # noqa: ARG002  # the signature of all readers
        self._is_ended = True
        stop = STOPS.get(self._stop, Stop.UNKNOWN)
        return [Ended(stop=stop, stop_sequence=self._stop_sequence, usage=anthropic_usage(self._usage))]

    def _text(self, block: _OpenBlock, text: object) -> list[AnswerEvent]:
        return [TextDelta(text=text, block=block.number)] if isinstance(text, str) and text else []

    def _reasoning(self, text: object) -> list[AnswerEvent]:
        return [ReasoningDelta(text=text)] if isinstance(text, str) and text else []


_READERS: Final = {
    "message_start": AnthropicStreamReader._message_start,  # noqa: SLF001  # a table of its methods
    "content_block_start": AnthropicStreamReader._block_start,  # noqa: SLF001
    "content_block_delta": AnthropicStreamReader._block_delta,  # noqa: SLF001
    "content_block_stop": AnthropicStreamReader._block_stop,  # noqa: SLF001
    "message_delta": AnthropicStreamReader._message_delta,  # noqa: SLF001
    "message_stop": AnthropicStreamReader._message_stop,  # noqa: SLF001
}
