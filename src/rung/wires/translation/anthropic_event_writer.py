"""Writer of the event stream of Anthropic's Messages API: content blocks one after the other, never interleaved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never

from rung.wires.translation.answer import (
    AnswerEvent,
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
    Usage,
)
from rung.wires.translation.anthropic_answer import write_stop, write_usage
from rung.wires.translation.anthropic_messages import CallIds
from rung.wires.wire_json import json_object, named_event, object_field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.wires.translation.conversation import Conversation

_REFUSAL: Final = -1  # stands for the text block of a refusal
_STOP_EVENT: Final = named_event("message_stop", {"type": "message_stop"})
# Words in the errors of other providers, and the error type of this API that clients retry or report in the same way.
_ERROR_TYPES: Final = {
    "rate_limit": "rate_limit_error",
    "resource_exhausted": "rate_limit_error",
    "429": "rate_limit_error",
    "overloaded": "overloaded_error",
    "unavailable": "overloaded_error",
    "503": "overloaded_error",
    "invalid": "invalid_request_error",
    "400": "invalid_request_error",
}


@dataclass(slots=True)
class _Block:
    content: dict[str, Any]  # as content_block_start has it
    text: int | None = None  # number of a text; None for a call
    pieces: list[str] = field(default_factory=list)  # not written yet
    is_open: bool = False
    is_ended: bool = False


class AnthropicStreamWriter:
    """Writes the events of one answer. Content for another block than the open one waits until that is complete."""

    def __init__(self, conversation: Conversation) -> None:
        self.dropped: set[str] = set()
        self._model = conversation.model
        self._ids = CallIds()
        self._blocks: list[_Block] = []  # the open block, and those that wait
        self._calls: dict[int, _Block] = {}
        self._index = 0  # of the open block
        self._is_started = False
        self._is_refused = False

    def write(self, events: Iterable[AnswerEvent]) -> bytes:
        """Return the bytes of these events."""
        return b"".join([self._write(event) for event in events])

    def _write(self, event: AnswerEvent) -> bytes:
        if isinstance(event, StreamFailed):
            return _error(event)
        if isinstance(event, Started):
            return self._start(event)
        start = b"" if self._is_started else self._start(Started(id="msg", model=self._model))
        if isinstance(event, Ended):
            return start + self._end(event)
        self._take(event)
        return start + self._flush()

    def _start(self, event: Started) -> bytes:
        if self._is_started:
            return b""
        self._is_started = True
        self._ids = CallIds(event.id)
        message: dict[str, Any] = {
            "id": event.id or "msg",
            "type": "message",
            "role": "assistant",
            "model": event.model or self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": write_usage(event.usage or Usage()),
        }
        return named_event("message_start", {"type": "message_start", "message": message})

    def _take(
        self, event: TextDelta | RefusalDelta | ReasoningDelta | CallStarted | CallDelta | CallEnded | ForeignBlock
    ) -> None:
        """Put content to its block."""
        if isinstance(event, TextDelta):
            self._take_text(event.text, event.block)
        elif isinstance(event, RefusalDelta):
            self._is_refused = True
            self._take_text(event.text, _REFUSAL)
        elif isinstance(event, CallDelta):
            if event.index in self._calls:
                self._calls[event.index].pieces.append(event.json)
        elif isinstance(event, CallStarted):
            content = {"type": "tool_use", "id": self._ids.assign(event.id), "name": event.name, "input": {}}
            self._calls[event.index] = self._add(_Block(content))
        elif isinstance(event, CallEnded):
            if event.index in self._calls:
                self._calls[event.index].is_ended = True
        elif isinstance(event, ReasoningDelta):
            self.dropped.add("reasoning")
        elif isinstance(event, ForeignBlock):
            self.dropped.add(event.kind)
        else:
            assert_never(event)

    def _take_text(self, text: str, number: int) -> None:
        if not text:
            return
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.text != number:
            last = self._add(_Block({"type": "text", "text": ""}, text=number))
        last.pieces.append(text)

    def _add(self, block: _Block) -> _Block:
        """Add a block. It ends a text before it; a call ends by its own event."""
        if self._blocks and self._blocks[-1].text is not None:
            self._blocks[-1].is_ended = True
        self._blocks.append(block)
        return block

    def _flush(self) -> bytes:
        """Write what the open block has, and the next blocks as far as those before them are complete."""
        out = []
        while self._blocks:
            block = self._blocks[0]
            out += self._written(block)
            if not block.is_ended:
                break
            out.append(named_event("content_block_stop", {"type": "content_block_stop", "index": self._index}))
            self._index += 1
            del self._blocks[0]
        return b"".join(out)

    def _written(self, block: _Block) -> list[bytes]:
        out = []
        if not block.is_open:
            block.is_open = True
            data = {"type": "content_block_start", "index": self._index, "content_block": block.content}
            out.append(named_event("content_block_start", data))
        content = "".join(block.pieces)
        block.pieces.clear()
        if content:
            is_text = block.text is not None
            delta = {"type": "text_delta", "text": content} if is_text else _json_delta(content)
            data = {"type": "content_block_delta", "index": self._index, "delta": delta}
            out.append(named_event("content_block_delta", data))
        return out

    def _end(self, event: Ended) -> bytes:
        for block in self._blocks:  # a call that was cut off by the token limit has no end of its own
            block.is_ended = True
        content = self._flush()
        reason = write_stop(event.stop, has_calls=bool(self._calls), is_refused=self._is_refused, dropped=self.dropped)
        delta = {"stop_reason": reason, "stop_sequence": event.stop_sequence or None}
        usage = {name: value for name, value in write_usage(event.usage).items() if name != "cache_creation"}
        data = {"type": "message_delta", "delta": delta, "usage": usage}
        return content + named_event("message_delta", data) + _STOP_EVENT


def _json_delta(content: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": content}


def _error(event: StreamFailed) -> bytes:
    """Write an error. One of this API is written as it is."""
    data = json_object(event.data)
    error = object_field(data, "error") or data
    if data.get("type") == "error" and error is not data:
        return named_event("error", data)
    words = " ".join(str(error.get(name)) for name in ("type", "code", "status")).lower()
    kind = next((kind for word, kind in _ERROR_TYPES.items() if word in words), "api_error")
    message = str(error.get("message") or event.data or event.name)
    return named_event("error", {"type": "error", "error": {"type": kind, "message": message}})
