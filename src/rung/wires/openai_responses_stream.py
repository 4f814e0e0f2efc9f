"""Event stream of OpenAI's Responses API: a response of items, each added, filled and done, then the whole response."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import StreamSplicer, data_of, name_of
from rung.wires.wire_json import add_usage, is_tool_arguments, json_object, named_event, object_field

_END_EVENTS: Final = frozenset({b"response.completed", b"response.incomplete"})
_ERROR_EVENTS: Final = frozenset({b"error", b"response.failed"})
_NONTEXT: Final = re.compile(rb"event: (?!response\.output_text\.delta\n)").search


class ResponsesStream(StreamSplicer):
    """Splicer for one response. Items of another attempt follow those of the earlier ones."""

    ping = b": rung\n\n"
    good_stops = frozenset({"completed"})
    output_tokens_key = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._response: dict[str, Any] = {}  # from response.created
        self._items: list[dict[str, Any]] = []  # finished items that the client has received
        self._open: dict[str, Any] | None = None  # item that the client has open
        self._open_text = ""  # text of the open item that the client has received
        self._sequence_number = -1  # last sequence number that the client has received
        self._is_in_call: bool = False
        self._is_in_reasoning = False

    def begin_attempt(self) -> bytes:
        """Start another attempt, after finishing the open item."""
        closing = super().begin_attempt()
        self._is_in_call = self._is_in_reasoning = False
        if not self.started:
            self._items, self._open, self._open_text, self._sequence_number = [], None, "", -1
        return closing

    def find_nontext(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Find an event that does not continue the open text."""
        return _NONTEXT(events, start)

    def text_in(self, events: bytes) -> str:
        """Return the text in these events, and track the last sequence number."""
        texts = []
        for event in events.split(b"\n\n"):
            if b"output_text.delta" in event or b"refusal.delta" in event:
                data = json_object(data_of(event))
                self._sequence_number = max(self._sequence_number, _number(data))
                texts.append(str(data.get("delta", "")))
        self._open_text += "".join(texts)
        return "".join(texts)

    def close_open(self) -> bytes:
        """Finish the open item with the text that the client has received."""
        self.text()
        if self._open is None:
            return b""
        item, self._open = self._open, None
        place = {"item_id": item.get("id"), "output_index": len(self._items), "content_index": 0}
        part = {"type": "output_text", "text": self._open_text, "annotations": []}
        done = {**item, "status": "completed", "content": [part]}
        out = self._build_event("response.output_text.done", {**place, "text": self._open_text, "logprobs": []})
        out += self._build_event("response.content_part.done", {**place, "part": part})
        out += self._build_event("response.output_item.done", {"output_index": len(self._items), "item": done})
        self._items.append(done)
        self._open_text = ""
        return out

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        code = "rate_limit_exceeded" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        fields = {"code": code, "message": message, "param": None}
        # The API reference has the fields in the event itself; the SDK raises only if they are under `error`.
        return self._build_event("error", {**fields, "error": {"type": code, **fields}})

    def finish_with_tool_calls(self) -> bytes:
        """End a response whose tool calls are complete, so that the client can run them."""
        closing = self.close_open()
        whole = {**self._response, "status": "completed", "output": self._items}
        return closing + self._build_event("response.completed", {"response": whole})

    def handle_event(self, event: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        name = name_of(event) or str(json_object(data_of(event)).get("type", "")).encode()
        if name in _ERROR_EVENTS:
            self.error = (name.decode(), data_of(event).decode("utf-8", "replace"))
            return b""
        if name in _END_EVENTS:
            return self._finish(name, json_object(data_of(event)), event)
        if self.call_error:
            return b""
        if name == b"response.output_text.delta" and not self.resumed:
            self.passthrough = True
            return self.release_content(event)
        if name == b"response.refusal.delta" and not self.resumed:
            return self.release_content(event)
        if not name:
            return event if self.started else b""  # a comment
        data = json_object(data_of(event))
        if name == b"response.created" and not self._response:
            self._response = object_field(data, "response")
        return (
            self._process_resumed(name.decode(), data)
            if self.resumed
            else self._process_first(name.decode(), data, event)
        )

    # -- first attempt: events are passed on unchanged ----------------------------------------------------

    def _process_first(self, name: str, data: dict[str, Any], event: bytes) -> bytes:
        self.passthrough = False
        item = object_field(data, "item")
        if name == "response.output_item.added":
            self._is_in_call = item.get("type") == "function_call" and self.buffer_tool_calls
            self._open = item if item.get("type") == "message" else None
        if self._is_in_call:
            self._tool_events.append(event)
            return self._finish_call(item) if name == "response.output_item.done" else b""
        if name == "response.output_item.done":
            self.text()
            self._items.append(item)
            self._open, self._open_text = None, ""
        out = self.buffer(event)
        if self.started:
            self.text()
            self._sequence_number = max(self._sequence_number, _number(data))
        return out

    def _finish_call(self, item: dict[str, Any]) -> bytes:
        events, self._tool_events, self._is_in_call = self._tool_events, [], False
        made = json_object(item.get("arguments"))
        bad = f"the arguments of the call of {item.get('name')} are not valid JSON"
        self.call_error = (
            self.check_call(str(item.get("name")), made) if is_tool_arguments(item.get("arguments")) else bad
        )
        if self.call_error:
            return b""
        self.tool_calls.append((str(item.get("name")), made))
        closing = self.close_open() if self.resumed else b""
        index = len(self._items)
        if self.resumed:
            parsed = (json_object(data_of(event)) for event in events)
            events = [self._build_event(str(data.get("type")), {**data, "output_index": index}) for data in parsed]
        else:
            self.text()
            self._sequence_number = max(self._sequence_number, _number(json_object(data_of(events[-1]))))
        self._items.append(item)
        return closing + self.release_content(b"".join(events))

    # -- later attempts: items and sequence numbers are rewritten ------------------------------------------

    def _process_resumed(self, name: str, data: dict[str, Any]) -> bytes:
        item = object_field(data, "item")
        if name == "response.output_item.added":
            self._is_in_call = item.get("type") == "function_call"
            self._is_in_reasoning = item.get("type") == "reasoning"
            if item.get("type") == "message":
                self._response.setdefault("output", [])
                self._next_item = item
        if self._is_in_call:
            self._tool_events.append(named_event(name, data))
            return self._finish_call(item) if name == "response.output_item.done" else b""
        if self._is_in_reasoning:
            return b""
        if name == "response.output_text.delta":
            return self._text(self.overlap.feed(str(data.get("delta", ""))))
        if name == "response.output_item.done":
            return self._text(self.overlap.close()) + self.close_open()
        return b""

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        out = b""
        if self._open is None:
            self._open = {**self._next_item, "status": "in_progress", "content": []}
            index = len(self._items)
            place = {"item_id": self._open.get("id"), "output_index": index, "content_index": 0}
            out += self._build_event("response.output_item.added", {"output_index": index, "item": self._open})
            part = {"type": "output_text", "text": "", "annotations": []}
            out += self._build_event("response.content_part.added", {**place, "part": part})
        self.record_text(text)
        self._open_text += text
        place = {"item_id": self._open.get("id"), "output_index": len(self._items), "content_index": 0}
        return out + self._build_event("response.output_text.delta", {**place, "delta": text, "logprobs": []})

    _next_item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "msg_continued"}  # noqa: RUF012  # read only

    # -- the end -----------------------------------------------------------------------------------------

    def _finish(self, name: bytes, data: dict[str, Any], event: bytes) -> bytes:
        response = object_field(data, "response")
        self.passthrough = False
        self.ended = True
        self.stop_reason = "completed"
        if name == b"response.incomplete":
            self.stop_reason = str(object_field(response, "incomplete_details").get("reason") or "incomplete")
        counted = {"output_tokens": self._earlier_output_tokens, "total_tokens": self._earlier_output_tokens}
        self.attempt_usage = object_field(response, "usage")
        self.usage = add_usage(self.attempt_usage, counted)
        if not self.resumed:
            self._end_events.append(event)
            return b""
        out = self._text(self.overlap.close()) + self.close_open()
        whole = {**response, "id": self._response.get("id", response.get("id")), "output": self._items}
        if response.get("usage"):
            whole["usage"] = self.usage
        self._end_events.append(self._build_event(name.decode(), {"response": whole}))
        return out

    def _build_event(self, name: str, data: dict[str, Any]) -> bytes:
        self._sequence_number += 1
        return named_event(name, {**data, "type": name, "sequence_number": self._sequence_number})


def _number(data: dict[str, Any]) -> int:
    value = data.get("sequence_number")
    return value if isinstance(value, int) else -1
