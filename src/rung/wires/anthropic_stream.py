"""Event stream of Anthropic's Messages API: a message of content blocks, each started, filled and stopped."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import CHARACTERS_PER_TOKEN, StreamSplicer, data_of, name_of
from rung.wires.wire_json import add_usage, int_or_zero, is_tool_arguments, json_object, named_event, object_field

_THINKING_BLOCKS: Final = frozenset({"thinking", "redacted_thinking"})
_EMPTY_STARTS: Final = frozenset({*_THINKING_BLOCKS, "text"})  # the start of such a block has no content
_BLOCK_TYPE: Final = re.compile(rb'"content_block"\s*:\s*\{\s*"type"\s*:\s*"(\w+)"').search
_TOOL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_NONTEXT: Final = re.compile(rb"event: (?:content_block_st|m|e)").search
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


class AnthropicStream(StreamSplicer):
    """Splicer for one message. Another attempt continues it in the next block."""

    ping = PING
    good_stops = frozenset({"end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction"})
    output_tokens_key = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._block_type = ""  # type of the current block
        self._open_index = -1  # index of the block that the client has open
        self._next_index = 0  # index of the client's next block
        self._message_start = b""  # of the current attempt
        self._start_events: list[bytes] = []  # message_start of each attempt, with its input usage

    def begin_attempt(self) -> bytes:
        """Start another attempt, after closing the open block."""
        closing = super().begin_attempt()
        self._block_type, self._message_start = "", b""
        if not self.started:
            self._next_index = 0
        return closing

    def started_usage(self) -> dict[str, Any]:
        """Return the usage of the current attempt's message_start."""
        return object_field(object_field(json_object(data_of(self._message_start)), "message"), "usage")

    def find_nontext(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Find a start or stop of a block, an event of the message, or an error."""
        return _NONTEXT(events, start)

    def text_in(self, events: bytes) -> str:
        """Return the text in these events."""
        texts = []
        for event in events.split(b"\n\n"):
            if b'"text' in event:
                data = json_object(data_of(event))
                delta = object_field(data, "delta") or object_field(data, "content_block")
                if delta.get("type") in ("text_delta", "text"):
                    texts.append(str(delta.get("text", "")))
        return "".join(texts)

    def close_open(self) -> bytes:
        """Stop the block that the client has open."""
        if self._open_index < 0:
            return b""
        index, self._open_index = self._open_index, -1
        return named_event("content_block_stop", {"type": "content_block_stop", "index": index})

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
        return named_event("error", {"type": "error", "error": {"type": kind, "message": message}})

    def finish_with_tool_calls(self) -> bytes:
        """End a message whose tool calls are complete, so that the client can run them."""
        end = {"stop_reason": "tool_use", "stop_sequence": None}
        usage = {"output_tokens": max(1, self._earlier_output_tokens + len(self.text()) // CHARACTERS_PER_TOKEN)}
        return (
            self.close_open()
            + named_event("message_delta", {"type": "message_delta", "delta": end, "usage": usage})
            + named_event("message_stop", {"type": "message_stop"})
        )

    def handle_event(self, event: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        name = name_of(event)
        if self.call_error and name.startswith(b"content"):
            return b""  # the response is invalid: another attempt repeats the rest
        if name == b"content_block_delta":
            return self._delta(event)
        if name == b"content_block_start":
            return self._start(event)
        if name == b"content_block_stop":
            return self._stop(event)
        if name == b"ping":
            return event if self.started else b""
        if name == b"message_start":
            self._message_start = event  # parsed only if the usage is needed
            self._start_events.append(event)
            return b"" if self.resumed else self.buffer(event)
        if name == b"message_delta":
            return self._message_delta(event)
        if name == b"message_stop":
            self.ended = bool(self.stop_reason)
            self._end_events.append(event)
            return b""
        if name == b"error":
            self.error = ("error", data_of(event).decode("utf-8", "replace"))
            return b""
        return b"" if self.resumed else self.buffer(event)

    # -- blocks ------------------------------------------------------------------------------------------

    def _start(self, event: bytes) -> bytes:
        kind = _BLOCK_TYPE(event)
        self._block_type = kind[1].decode() if kind is not None else ""
        if self._block_type in _TOOL_BLOCKS and self.buffer_tool_calls:
            self._tool_events = [event]
            return b""
        if self.resumed:
            return b"" if self._block_type in _EMPTY_STARTS else self._renumbered(json_object(data_of(event)))
        self._open_index, self._next_index = self._next_index, self._next_index + 1
        self.passthrough = False
        return self.buffer(event) if self._block_type in _EMPTY_STARTS else self.release_content(event)

    def _delta(self, event: bytes) -> bytes:
        if self._tool_events:
            self._tool_events.append(event)
            return b""
        if self._block_type in _THINKING_BLOCKS:
            return b"" if self.resumed else self.buffer(event)
        if not self.resumed:
            self.passthrough = self._block_type == "text"
            return self.release_content(event)
        data = json_object(data_of(event))
        if self._block_type != "text":
            return named_event("content_block_delta", {**data, "index": self._open_index})
        delta = object_field(data, "delta")
        if delta.get("type") != "text_delta":
            return b""
        return self._text(self.overlap.feed(str(delta.get("text", ""))))

    def _text(self, text: str) -> bytes:
        """Return the events for text of another attempt, in its own block."""
        if not text:
            return b""
        opening = b""
        if self._open_index < 0:
            self._open_index, self._next_index = self._next_index, self._next_index + 1
            start = {
                "type": "content_block_start",
                "index": self._open_index,
                "content_block": {"type": "text", "text": ""},
            }
            opening = named_event("content_block_start", start)
        self.record_text(text)
        delta = {
            "type": "content_block_delta",
            "index": self._open_index,
            "delta": {"type": "text_delta", "text": text},
        }
        return opening + named_event("content_block_delta", delta)

    def _stop(self, event: bytes) -> bytes:
        self.passthrough = False
        if self._tool_events:
            return self._finish_call(event)
        kind, self._block_type = self._block_type, ""
        if not self.resumed:
            self._open_index = -1
            return self.buffer(event)
        if kind in _THINKING_BLOCKS:
            return b""
        return (self._text(self.overlap.close()) if kind == "text" else b"") + self.close_open()

    def _finish_call(self, event: bytes) -> bytes:
        events, self._tool_events = [*self._tool_events, event], []
        block, self._block_type = self._block_type, ""
        parsed = [json_object(data_of(part)) for part in events]
        written = "".join(str(object_field(data, "delta").get("partial_json", "")) for data in parsed)
        name = object_field(parsed[0], "content_block").get("name")
        made = json_object(written) if written else {}
        if written and not is_tool_arguments(written):
            self.call_error = f"the arguments of the call of {name} are not valid JSON"
        elif block == "tool_use":
            self.call_error = self.check_call(str(name), made)
        if self.call_error:
            return b""
        if block == "tool_use":
            self.tool_calls.append((str(name), made))
        before = self._text(self.overlap.close()) + self.close_open() if self.resumed else b""
        index, self._next_index = self._next_index, self._next_index + 1
        if self.resumed or parsed[0].get("index") != index:  # an earlier block was dropped
            events = [named_event(str(data.get("type")), {**data, "index": index}) for data in parsed]
        return before + self.release_content(b"".join(events))

    def _renumbered(self, data: dict[str, Any]) -> bytes:
        before = self._text(self.overlap.close()) + self.close_open()
        self._open_index, self._next_index = self._next_index, self._next_index + 1
        return before + named_event("content_block_start", {**data, "index": self._open_index})

    # -- the end -----------------------------------------------------------------------------------------

    def _message_delta(self, event: bytes) -> bytes:
        data = json_object(data_of(event))
        self.stop_reason = str(object_field(data, "delta").get("stop_reason") or "") or self.stop_reason
        self.had_nontext = self.stop_reason != "end_turn"
        usage = object_field(data, "usage")
        self.attempt_usage = {**self.started_usage(), **usage}
        for start in self._start_events:
            self.usage = add_usage(
                self.usage, object_field(object_field(json_object(data_of(start)), "message"), "usage")
            )
        self._start_events = []
        self.usage = {
            **self.usage,
            **usage,
            "output_tokens": int_or_zero(usage.get("output_tokens")) + self._earlier_output_tokens,
        }
        if self.resumed:
            more = {**usage, "output_tokens": self.usage["output_tokens"]}
            event = named_event("message_delta", {**data, "usage": more})
            event = self._text(self.overlap.close()) + self.close_open() + event
        self._end_events.append(event)
        return b""
