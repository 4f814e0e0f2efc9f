"""Event stream of Anthropic's Messages API: a message of content blocks, each started, filled and stopped."""

from __future__ import annotations

from typing import Any, Final

from rung.core.recovery.stop_reasons import ends_text
from rung.wires.sse import data_of
from rung.wires.stream_splicer import DONE, StreamSplicer
from rung.wires.stream_usage import CHARACTERS_PER_TOKEN
from rung.wires.wire_json import INCOMPLETE_MARK, named_event, object_field, parse_json

_THINKING_BLOCKS: Final = frozenset({"thinking", "redacted_thinking"})
_LEFT_OUT: Final = "left out"  # type of a block that the client does not get
_TOOL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_STOP_EVENT: Final = named_event("message_stop", {"type": "message_stop"})
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'

Event = tuple[dict[str, Any], bytes]


class AnthropicStream(StreamSplicer):
    """Splicer for one message. Another attempt continues the text in the block that the client has open."""

    ping = PING
    input_tokens_key = "input_tokens"
    output_tokens_key = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True, choices: int = 1) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls, choices=choices)
        self._block_type = ""  # type of the upstream's current block
        self._held: list[Event] = []  # events of a tool call that is not complete
        self._open_index = -1  # index of the block that the client has open
        self._open_type = ""
        self._stop_event = b""  # upstream's end of the open block, if it came
        self._next_index = 0  # index of the client's next block
        self._has_thinking = False  # the client has complete thinking
        self._has_blocks = False  # the current attempt has begun a block of text

    def begin_attempt(self) -> bytes:
        """Start another attempt. An open text stays open."""
        closing = super().begin_attempt()
        self._block_type, self._held, self._has_blocks = "", [], False
        if not (self.opened or self.started):
            self._open_index, self._next_index, self._has_thinking = -1, 0, False
        return closing

    def close_interrupted(self) -> bytes:
        """Close the open block unless it is text. Thinking that has no signature yet gets one by which it is known."""
        self._stop_event = b""
        if self._open_index >= 0 and self._open_type == "thinking":
            delta = {"type": "signature_delta", "signature": INCOMPLETE_MARK}
            data = {"type": "content_block_delta", "index": self._open_index, "delta": delta}
            return named_event("content_block_delta", data) + self.close_open()
        return b"" if self._open_type == "text" else self.close_open()

    def close_open(self) -> bytes:
        """Stop the block that the client has open."""
        if self._open_index < 0:
            return b""
        index, self._open_index = self._open_index, -1
        stop, self._stop_event = self._stop_event, b""
        return stop or named_event("content_block_stop", {"type": "content_block_stop", "index": index})

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
        return named_event("error", {"type": "error", "error": {"type": kind, "message": message}})

    def finish(self) -> bytes:
        """Return the final bytes for the client. A message_stop that did not come is added."""
        return super().finish() + (b"" if self.ended else _STOP_EVENT)

    def finish_with_tool_calls(self) -> bytes:
        """End a message whose tool calls are complete, so that the client can run them."""
        end = {"stop_reason": "tool_use", "stop_sequence": None}
        self.usage["output_tokens"] = max(1, self._characters // CHARACTERS_PER_TOKEN)
        data = {"type": "message_delta", "delta": end, "usage": self._usage_for_client()}
        return self.close_open() + named_event("message_delta", data) + _STOP_EVENT

    def handle_event(self, name: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        if name == "content_block_delta":
            return self._delta(data, raw)
        if name == "content_block_start":
            return self._start(data, raw)
        if name == "content_block_stop":
            return self._stop(data, raw)
        if name == "ping":
            return raw if self.started else b""
        if name == "message_start":
            self.usage = dict(object_field(object_field(data, "message"), "usage"))
            return b"" if self.resumed else self.buffer(raw)
        if name == "message_delta":
            return self._message_delta(data, raw)
        if name == "message_stop":
            self.ended = True
            self._end_events.append(raw)
            return b""
        if name == "error":
            self.error = ("error", data_of(raw))
            return b""
        return b"" if self.resumed or name == DONE else self.buffer(raw)

    # -- blocks ------------------------------------------------------------------------------------------

    def _start(self, data: dict[str, Any], raw: bytes) -> bytes:
        block = object_field(data, "content_block")
        kind = self._block_type = str(block.get("type"))
        if kind in _THINKING_BLOCKS:
            return self._start_thinking(kind, data, raw)
        if kind in _TOOL_BLOCKS and self.buffer_tool_calls:
            self._held = [(data, raw)]
            self.count_held(raw)
            return b""
        if kind == "text" and self.resumed:
            closing = self.close_open() if self._has_blocks else b""
            self._has_blocks = True
            return closing + self._text(self.overlap.feed(str(block.get("text") or "")))
        out = self._text(self.overlap.close()) if self.resumed else b""
        out += self._open(kind) + _numbered(data, raw, self._open_index)
        if kind != "text":
            return self.release_content(out)
        self.record_text(str(block.get("text") or ""))
        return self.buffer(out)

    def _start_thinking(self, kind: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Begin thinking, which is shown as it comes. After text or complete thinking, another attempt's is left out."""
        if self.resumed and (self.started or self._has_thinking):
            self._block_type = _LEFT_OUT
            return b""
        return self.buffer(self._open(kind) + _numbered(data, raw, self._open_index))

    def _open(self, kind: str) -> bytes:
        """Close the open block and open the next one. Return what closes."""
        closing = self.close_open()
        self._open_index, self._next_index, self._open_type = self._next_index, self._next_index + 1, kind
        return closing

    def _delta(self, data: dict[str, Any], raw: bytes) -> bytes:
        delta = object_field(data, "delta")
        if self._held:
            self._held.append((data, raw))
            self.count_held(raw)
            self._characters += sum(len(value) for value in delta.values() if isinstance(value, str))
            return b""
        if self._block_type in _THINKING_BLOCKS or self._block_type == _LEFT_OUT:
            self._characters += sum(len(value) for value in delta.values() if isinstance(value, str))
            is_shown = self._block_type != _LEFT_OUT
            return self.release_thinking(_numbered(data, raw, self._open_index)) if is_shown else b""
        if self._block_type != "text":
            return self.release_content(_numbered(data, raw, self._open_index)) if self._open_index >= 0 else b""
        text = str(delta.get("text") or "") if delta.get("type") == "text_delta" else ""
        if self.resumed:
            return self._text(self.overlap.feed(text))
        self.passthrough = True
        self.record_text(text)
        return self.release_content(_numbered(data, raw, self._open_index))

    def _text(self, text: str) -> bytes:
        """Return the events for text of another attempt, in the open block of text or in a new one."""
        if not text:
            return b""
        opening = b""
        if self._open_index < 0 or self._open_type != "text":
            opening = self._open("text")
            block = {"type": "text", "text": ""}
            start = {"type": "content_block_start", "index": self._open_index, "content_block": block}
            opening += named_event("content_block_start", start)
        self.started = True
        self.record_text(text)
        delta = {"type": "text_delta", "text": text}
        data = {"type": "content_block_delta", "index": self._open_index, "delta": delta}
        return opening + named_event("content_block_delta", data)

    def _stop(self, data: dict[str, Any], raw: bytes) -> bytes:
        self.passthrough = False
        kind = self._block_type
        if self._held:
            return self._finish_held(kind, data, raw)
        self._block_type = ""
        if kind == _LEFT_OUT:
            return b""
        if kind in _THINKING_BLOCKS:
            self._has_thinking = True
        out = self._text(self.overlap.close()) if self.resumed and kind == "text" else b""
        if self._open_index >= 0:
            self._stop_event = _numbered(data, raw, self._open_index)
        # Text is stopped before the next block or at the end: until then, another attempt can continue it.
        return out if kind == "text" else self.buffer(self.close_open())

    def _finish_held(self, kind: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Release a complete tool call."""
        block = object_field(self._held[0][0], "content_block")
        name, arguments = str(block.get("name")), self._arguments(block)
        if kind == "tool_use":
            error = self.find_call_error(name, arguments)
            if error:
                return self.reject_call(error, "content_block_stop", data, raw)
            self.tool_calls.append((name, arguments))
        events, self._held, self._held_size, self._block_type = [*self._held, (data, raw)], [], 0, ""
        out = self._text(self.overlap.close()) if self.resumed else b""
        out += self._open(kind)
        out += b"".join(_numbered(data, raw, self._open_index) for data, raw in events)
        self._open_index = -1
        return self.release_content(out)

    def _arguments(self, block: dict[str, Any]) -> object:
        written = "".join(str(object_field(data, "delta").get("partial_json") or "") for data, _ in self._held)
        return parse_json(written) if written else object_field(block, "input")

    # -- the end -----------------------------------------------------------------------------------------

    def _message_delta(self, data: dict[str, Any], raw: bytes) -> bytes:
        self.stop_reason = str(object_field(data, "delta").get("stop_reason") or "") or self.stop_reason
        self.had_nontext = self.had_nontext or not ends_text(self.stop_reason)
        self.usage |= {key: value for key, value in object_field(data, "usage").items() if value is not None}
        if not self.resumed:
            self._end_events.append(raw)
            return b""
        usage = {**object_field(data, "usage"), **self._usage_for_client()}
        self._end_events.append(named_event("message_delta", {**data, "usage": usage}))
        return self._text(self.overlap.close())

    def _usage_for_client(self) -> dict[str, Any]:
        """Return the token counts of all attempts. The client has those of the first one's input already."""
        return {key: value for key, value in self.total_usage().items() if key.endswith("_tokens")}


def _numbered(data: dict[str, Any], raw: bytes, index: int) -> bytes:
    """Return an event of a block with the client's index."""
    return raw if data.get("index") == index else named_event(str(data.get("type")), {**data, "index": index})
