"""OpenAI's Responses as events: a response of items, each added, filled and done, and the whole at its end."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import StreamSplicer, data_of, name_of
from rung.wires.wire_json import are_arguments, json_object, named_event, part, summed

_ENDS: Final = frozenset({b"response.completed", b"response.incomplete"})
_FAILS: Final = frozenset({b"error", b"response.failed"})
_OTHER: Final = re.compile(rb"event: (?!response\.output_text\.delta\n)").search


class ResponsesStream(StreamSplicer):
    """One response; items of a further attempt follow those of the one before."""

    ping = b": rung\n\n"
    good_stops = frozenset({"completed"})
    output_count = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._response: dict[str, Any] = {}  # as it was created
        self._items: list[dict[str, Any]] = []  # those the client has, done
        self._open: dict[str, Any] | None = None  # the item the client has open
        self._piece = ""  # its text, as far as the client has it
        self._number = -1  # the last sequence number the client has
        self._calling: bool = False
        self._thinking = False
        self._final: dict[str, Any] = {}

    def begin(self) -> bytes:
        """Another attempt begins: the open item is done."""
        closing = super().begin()
        self._calling = self._thinking = False
        if not self.started:
            self._items, self._open, self._piece, self._number = [], None, "", -1
        return closing

    def other(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Anything but a further piece of the open text."""
        return _OTHER(events, start)

    def words(self, events: bytes) -> str:
        """The text in these events; the last number is taken note of."""
        said = []
        for event in events.split(b"\n\n"):
            if b"output_text.delta" in event or b"refusal.delta" in event:
                data = json_object(data_of(event))
                self._number = max(self._number, _number(data))
                said.append(str(data.get("delta", "")))
        self._piece += "".join(said)
        return "".join(said)

    def close_open(self) -> bytes:
        """The open item ends with what the client has of it."""
        self.text()
        if self._open is None:
            return b""
        item, self._open = self._open, None
        place = {"item_id": item.get("id"), "output_index": len(self._items), "content_index": 0}
        part = {"type": "output_text", "text": self._piece, "annotations": []}
        done = {**item, "status": "completed", "content": [part]}
        out = self._made("response.output_text.done", {**place, "text": self._piece, "logprobs": []})
        out += self._made("response.content_part.done", {**place, "part": part})
        out += self._made("response.output_item.done", {"output_index": len(self._items), "item": done})
        self._items.append(done)
        self._piece = ""
        return out

    def failed(self, status: int, message: str) -> bytes:
        """An error event, after which nothing comes."""
        code = "rate_limit_exceeded" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        told = {"code": code, "message": message, "param": None}
        # The reference has the fields in the event itself; the SDK raises only when they stand under `error`.
        return self._made("error", {**told, "error": {"type": code, **told}})

    def settle(self) -> bytes:
        """End a response whose calls are complete, so that they can be run."""
        closing = self.close_open()
        whole = {**self._response, "status": "completed", "output": self._items}
        return closing + self._made("response.completed", {"response": whole})

    def event(self, event: bytes) -> bytes:
        """What the client gets of one event."""
        name = name_of(event) or str(json_object(data_of(event)).get("type", "")).encode()
        if name in _FAILS:
            self.error = (name.decode(), data_of(event).decode("utf-8", "replace"))
            return b""
        if name in _ENDS:
            return self._ends(name, json_object(data_of(event)), event)
        if self.bad_call:
            return b""
        if name == b"response.output_text.delta" and not self.resumed:
            self.passthrough = True
            return self.content(event)
        if name == b"response.refusal.delta" and not self.resumed:
            return self.content(event)
        if not name:
            return event if self.started else b""  # a comment
        data = json_object(data_of(event))
        if name == b"response.created" and not self._response:
            self._response = part(data, "response")
        return self._again(name.decode(), data) if self.resumed else self._first(name.decode(), data, event)

    # -- the first attempt: as it comes ------------------------------------------------------------------

    def _first(self, name: str, data: dict[str, Any], event: bytes) -> bytes:
        self.passthrough = False
        item = part(data, "item")
        if name == "response.output_item.added":
            self._calling = item.get("type") == "function_call" and self.buffer_tool_calls
            self._open = item if item.get("type") == "message" else None
        if self._calling:
            self._tool.append(event)
            return self._call_done(item) if name == "response.output_item.done" else b""
        if name == "response.output_item.done":
            self.text()
            self._items.append(item)
            self._open, self._piece = None, ""
        out = self.buffer(event)
        if self.started:
            self.text()
            self._number = max(self._number, _number(data))
        return out

    def _call_done(self, item: dict[str, Any]) -> bytes:
        events, self._tool, self._calling = self._tool, [], False
        made = json_object(item.get("arguments"))
        bad = f"the arguments of the call of {item.get('name')} are not valid JSON"
        self.bad_call = self.check(str(item.get("name")), made) if are_arguments(item.get("arguments")) else bad
        if self.bad_call:
            return b""
        self.called.append((str(item.get("name")), made))
        closing = self.close_open() if self.resumed else b""
        index = len(self._items)
        if self.resumed:
            parsed = (json_object(data_of(event)) for event in events)
            events = [self._made(str(data.get("type")), {**data, "output_index": index}) for data in parsed]
        else:
            self.text()
            self._number = max(self._number, _number(json_object(data_of(events[-1]))))
        self._items.append(item)
        return closing + self.content(b"".join(events))

    # -- a further one: in items and numbers of the client's -----------------------------------------------

    def _again(self, name: str, data: dict[str, Any]) -> bytes:
        item = part(data, "item")
        if name == "response.output_item.added":
            self._calling = item.get("type") == "function_call"
            self._thinking = item.get("type") == "reasoning"
            if item.get("type") == "message":
                self._response.setdefault("output", [])
                self._next_item = item
        if self._calling:
            self._tool.append(named_event(name, data))
            return self._call_done(item) if name == "response.output_item.done" else b""
        if self._thinking:
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
            out += self._made("response.output_item.added", {"output_index": index, "item": self._open})
            part = {"type": "output_text", "text": "", "annotations": []}
            out += self._made("response.content_part.added", {**place, "part": part})
        self.say(text)
        self._piece += text
        place = {"item_id": self._open.get("id"), "output_index": len(self._items), "content_index": 0}
        return out + self._made("response.output_text.delta", {**place, "delta": text, "logprobs": []})

    _next_item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "msg_continued"}  # noqa: RUF012  # read only

    # -- the end -----------------------------------------------------------------------------------------

    def _ends(self, name: bytes, data: dict[str, Any], event: bytes) -> bytes:
        response = part(data, "response")
        self.passthrough = False
        self.ended = True
        self.stop = "completed"
        if name == b"response.incomplete":
            self.stop = str(part(response, "incomplete_details").get("reason") or "incomplete")
        counted = {"output_tokens": self._counted, "total_tokens": self._counted}
        self.usage = summed(part(response, "usage"), counted)
        if not self.resumed:
            self._ending.append(event)
            return b""
        out = self._text(self.overlap.close()) + self.close_open()
        whole = {**response, "id": self._response.get("id", response.get("id")), "output": self._items}
        if response.get("usage"):
            whole["usage"] = self.usage
        self._ending.append(self._made(name.decode(), {"response": whole}))
        return out

    def _made(self, name: str, data: dict[str, Any]) -> bytes:
        self._number += 1
        return named_event(name, {**data, "type": name, "sequence_number": self._number})


def _number(data: dict[str, Any]) -> int:
    value = data.get("sequence_number")
    return value if isinstance(value, int) else -1
