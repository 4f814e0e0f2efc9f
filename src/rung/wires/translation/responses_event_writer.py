"""Writer of the event stream of OpenAI's Responses API, in the order that its strict parsers demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
from rung.wires.translation.responses_open_items import OpenCall, OpenMessage
from rung.wires.translation.responses_output import OutputEnd, item_base, output_status, response_object
from rung.wires.wire_json import json_object, named_event, object_field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.wires.translation.answer import AnswerEvent, Usage
    from rung.wires.translation.conversation import Conversation
    from rung.wires.translation.responses_open_items import ItemEvent

Data = dict[str, Any]

# Types and codes of errors of all wires, and the codes by which clients of this wire know them.
_ERROR_CODES: Final = {
    "rate_limit_error": "rate_limit_exceeded",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "RESOURCE_EXHAUSTED": "rate_limit_exceeded",
    "insufficient_quota": "insufficient_quota",
    "context_length_exceeded": "context_length_exceeded",
    "invalid_request_error": "invalid_prompt",
    "invalid_prompt": "invalid_prompt",
}


class ResponsesStreamWriter:
    """Writes one stream. One item is open at a time: what comes while a call is open, waits for its end."""

    def __init__(self, conversation: Conversation) -> None:
        self.dropped: set[str] = set()
        self._conversation = conversation
        self._started: Started | None = None
        self._is_ended = False
        self._has_refusal = False
        self._sequence_number = 0
        self._output: list[Data] = []  # complete items
        self._open: OpenMessage | OpenCall | None = None
        self._waiting: list[AnswerEvent] = []
        self._written: list[bytes] = []

    def write(self, events: Iterable[AnswerEvent]) -> bytes:
        """Return the bytes of these events."""
        for event in events:
            self._write(event)
        written, self._written = b"".join(self._written), []
        return written

    def _write(self, event: AnswerEvent) -> None:
        if self._is_ended:
            return
        if isinstance(event, StreamFailed):
            self._fail(event)
            return
        if self._started is None:
            self._start(event if isinstance(event, Started) else Started(id="", model=""))
        if isinstance(event, Ended):
            self._end(event)
        elif isinstance(event, ReasoningDelta | ForeignBlock):
            self.dropped.add(event.kind if isinstance(event, ForeignBlock) else "reasoning")
        elif isinstance(self._open, OpenCall) and not _is_of(self._open, event):
            self._waiting.append(event)
        else:
            self._write_content(event)

    def _write_content(self, event: AnswerEvent) -> None:
        if isinstance(event, TextDelta | RefusalDelta):
            if not isinstance(self._open, OpenMessage):
                self._open = OpenMessage(f"msg_{self._base}_{len(self._output)}", len(self._output))
                self._add(self._open.begin())
            self._has_refusal = self._has_refusal or isinstance(event, RefusalDelta)
            block = event.block if isinstance(event, TextDelta) else None
            self._add(self._open.add(event.text, block))
        elif isinstance(event, CallStarted):
            self._close()
            name = f"{self._base}_{len(self._output)}"
            self._open = OpenCall(self._conversation, name, len(self._output), event)
            self._add(self._open.begin())
        elif isinstance(event, CallDelta) and isinstance(self._open, OpenCall):
            self._add(self._open.add(event.json))
        elif isinstance(event, CallEnded) and isinstance(self._open, OpenCall):
            self._close()
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Write what waited for the end of a call. Parts of further calls may wait again."""
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._write(event)

    def _start(self, event: Started) -> None:
        self._started = event
        self._base = item_base(event.id)
        response = self._response(OutputEnd("in_progress"), None)
        self._add([("response.created", {"response": response}), ("response.in_progress", {"response": response})])

    def _end(self, event: Ended) -> None:
        end = output_status(event.stop, has_refusal=self._has_refusal)
        while self._open is not None:  # calls that are still open have no end
            self._close("incomplete" if isinstance(self._open, OpenCall) or end.status == "incomplete" else "completed")
            self._write_waiting()
        if event.stop is Stop.STOP_SEQUENCE:
            self.dropped.add("stop_sequence")
        self._add([(f"response.{end.status}", {"response": self._response(end, event.usage)})])
        self._is_ended = True

    def _fail(self, event: StreamFailed) -> None:
        """Write a failure: of the response if it has begun, else as the only event."""
        data = json_object(event.data)
        error = object_field(data, "error") or object_field(object_field(data, "response"), "error") or data
        message = str(error.get("message") or "The provider ended the stream with an error.")
        names = (str(error.get(name)) for name in ("code", "type", "status"))
        code = next((_ERROR_CODES[name] for name in names if name in _ERROR_CODES), "server_error")
        if self._started is None:
            self._add([("error", {"code": code, "message": message, "param": None})])
        else:
            end = OutputEnd("failed", error={"code": code, "message": message})
            self._add([("response.failed", {"response": self._response(end, None)})])
        self._is_ended = True

    def _close(self, status: str = "completed") -> None:
        """End the open item."""
        if self._open is not None:
            item, events = self._open.end(status)
            self._output.append(item)
            self._add(events)
            self._open = None

    def _response(self, end: OutputEnd, usage: Usage | None) -> Data:
        started = self._started or Started(id="", model="")
        return response_object(
            self._conversation,
            name=started.id,
            model=started.model,
            created=started.created,
            output=list(self._output),
            end=end,
            usage=usage,
        )

    def _add(self, events: Iterable[ItemEvent]) -> None:
        for name, data in events:
            self._written.append(named_event(name, {"type": name, "sequence_number": self._sequence_number, **data}))
            self._sequence_number += 1


def _is_of(call: OpenCall, event: AnswerEvent) -> bool:
    return isinstance(event, CallDelta | CallEnded) and event.index == call.index
