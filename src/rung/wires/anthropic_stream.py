"""Anthropic's Messages as events: a message of blocks, each started, filled and stopped."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import CHARACTERS_PER_TOKEN, StreamSplicer, data_of, name_of
from rung.wires.wire_json import are_arguments, json_object, named_event, part, summed, whole_number

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_QUIET: Final = frozenset({*_THOUGHTS, "text"})  # a start of these says nothing yet
_BLOCK: Final = re.compile(rb'"content_block"\s*:\s*\{\s*"type"\s*:\s*"(\w+)"').search
_WHOLE: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_OTHER: Final = re.compile(rb"event: (?:content_block_st|m|e)").search
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


class AnthropicStream(StreamSplicer):
    """One message; a further attempt goes on in it with the next block."""

    ping = PING
    good_stops = frozenset({"end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction"})
    output_count = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._block = ""  # the type of the block that is being written
        self._open = -1  # the index of the block the client has open
        self._next = 0  # the index of the client's next block
        self._begun: list[bytes] = []  # how each attempt began: with what it was given

    def begin(self) -> bytes:
        """Another attempt begins: the open block is closed."""
        closing = super().begin()
        self._block = ""
        if not self.started:
            self._next = 0
        return closing

    def other(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """A block's start or stop, the message's, or an error."""
        return _OTHER(events, start)

    def words(self, events: bytes) -> str:
        """The text in these events."""
        said = []
        for event in events.split(b"\n\n"):
            if b'"text' in event:
                data = json_object(data_of(event))
                delta = part(data, "delta") or part(data, "content_block")
                if delta.get("type") in ("text_delta", "text"):
                    said.append(str(delta.get("text", "")))
        return "".join(said)

    def close_open(self) -> bytes:
        """Stop the block the client has open."""
        if self._open < 0:
            return b""
        index, self._open = self._open, -1
        return named_event("content_block_stop", {"type": "content_block_stop", "index": index})

    def failed(self, status: int, message: str) -> bytes:
        """An error event, after which nothing comes."""
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
        return named_event("error", {"type": "error", "error": {"type": kind, "message": message}})

    def settle(self) -> bytes:
        """End a message whose calls are complete, so that they can be run: what else was to come is not known."""
        end = {"stop_reason": "tool_use", "stop_sequence": None}
        usage = {"output_tokens": max(1, self._counted + len(self.text()) // CHARACTERS_PER_TOKEN)}
        return (
            self.close_open()
            + named_event("message_delta", {"type": "message_delta", "delta": end, "usage": usage})
            + named_event("message_stop", {"type": "message_stop"})
        )

    def event(self, event: bytes) -> bytes:
        """What the client gets of one event."""
        name = name_of(event)
        if self.bad_call and name.startswith(b"content"):
            return b""  # the answer cannot be used as it is: what follows will be said again
        if name == b"content_block_delta":
            return self._delta(event)
        if name == b"content_block_start":
            return self._start(event)
        if name == b"content_block_stop":
            return self._stop(event)
        if name == b"ping":
            return event if self.started else b""
        if name == b"message_start":
            self._begun.append(event)  # read when somebody wants to know
            return b"" if self.resumed else self.buffer(event)
        if name == b"message_delta":
            return self._ends(event)
        if name == b"message_stop":
            self.ended = bool(self.stop)
            self._ending.append(event)
            return b""
        if name == b"error":
            self.error = ("error", data_of(event).decode("utf-8", "replace"))
            return b""
        return b"" if self.resumed else self.buffer(event)

    # -- blocks ------------------------------------------------------------------------------------------

    def _start(self, event: bytes) -> bytes:
        kind = _BLOCK(event)
        self._block = kind[1].decode() if kind is not None else ""
        if self._block in _WHOLE and self.buffer_tool_calls:
            self._tool = [event]
            return b""
        if self.resumed:
            return b"" if self._block in _QUIET else self._renumbered(json_object(data_of(event)))
        self._open, self._next = self._next, self._next + 1
        self.passthrough = False
        return self.buffer(event) if self._block in _QUIET else self.content(event)

    def _delta(self, event: bytes) -> bytes:
        if self._tool:
            self._tool.append(event)
            return b""
        if self._block in _THOUGHTS:
            return b"" if self.resumed else self.buffer(event)
        if not self.resumed:
            self.passthrough = self._block == "text"
            return self.content(event)
        data = json_object(data_of(event))
        if self._block != "text":
            return named_event("content_block_delta", {**data, "index": self._open})
        delta = part(data, "delta")
        if delta.get("type") != "text_delta":
            return b""
        return self._text(self.overlap.feed(str(delta.get("text", ""))))

    def _text(self, text: str) -> bytes:
        """Text of a further attempt, in a block of its own."""
        if not text:
            return b""
        opening = b""
        if self._open < 0:
            self._open, self._next = self._next, self._next + 1
            start = {"type": "content_block_start", "index": self._open, "content_block": {"type": "text", "text": ""}}
            opening = named_event("content_block_start", start)
        self.say(text)
        delta = {"type": "content_block_delta", "index": self._open, "delta": {"type": "text_delta", "text": text}}
        return opening + named_event("content_block_delta", delta)

    def _stop(self, event: bytes) -> bytes:
        self.passthrough = False
        if self._tool:
            return self._call_done(event)
        kind, self._block = self._block, ""
        if not self.resumed:
            self._open = -1
            return self.buffer(event)
        if kind in _THOUGHTS:
            return b""
        return (self._text(self.overlap.close()) if kind == "text" else b"") + self.close_open()

    def _call_done(self, event: bytes) -> bytes:
        events, self._tool = [*self._tool, event], []
        block, self._block = self._block, ""
        parsed = [json_object(data_of(part)) for part in events]
        written = "".join(str(part(data, "delta").get("partial_json", "")) for data in parsed)
        name = part(parsed[0], "content_block").get("name")
        made = json_object(written) if written else {}
        if written and not are_arguments(written):
            self.bad_call = f"the arguments of the call of {name} are not valid JSON"
        elif block == "tool_use":
            self.bad_call = self.check(str(name), made)
        if self.bad_call:
            return b""
        if block == "tool_use":
            self.called.append((str(name), made))
        before = self._text(self.overlap.close()) + self.close_open() if self.resumed else b""
        index, self._next = self._next, self._next + 1
        if self.resumed or parsed[0].get("index") != index:  # one before it was left out
            events = [named_event(str(data.get("type")), {**data, "index": index}) for data in parsed]
        return before + self.content(b"".join(events))

    def _renumbered(self, data: dict[str, Any]) -> bytes:
        before = self._text(self.overlap.close()) + self.close_open()
        self._open, self._next = self._next, self._next + 1
        return before + named_event("content_block_start", {**data, "index": self._open})

    # -- the end -----------------------------------------------------------------------------------------

    def _ends(self, event: bytes) -> bytes:
        data = json_object(data_of(event))
        self.stop = str(part(data, "delta").get("stop_reason") or "") or self.stop
        self.had_nontext = self.stop != "end_turn"
        usage = part(data, "usage")
        for begun in self._begun:
            self.usage = summed(self.usage, part(part(json_object(data_of(begun)), "message"), "usage"))
        self._begun = []
        self.usage = {**self.usage, **usage, "output_tokens": whole_number(usage.get("output_tokens")) + self._counted}
        if self.resumed:
            more = {**usage, "output_tokens": self.usage["output_tokens"]}
            event = named_event("message_delta", {**data, "usage": more})
            event = self._text(self.overlap.close()) + self.close_open() + event
        self._ending.append(event)
        return b""
