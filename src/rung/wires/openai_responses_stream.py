"""Event stream of OpenAI's Responses API: a response of items, each added, filled and done, then the whole response."""

from __future__ import annotations

from typing import Any, Final

from rung.wires.openai_responses_body import has_output, references, unstored_references
from rung.wires.sse import KEEP_ALIVE, data_of
from rung.wires.stream_splicer import DONE, StreamSplicer
from rung.wires.wire_json import INCOMPLETE_MARK, named_event, object_field, parse_json

_END_EVENTS: Final = frozenset({"response.completed", "response.incomplete"})
_ERROR_EVENTS: Final = frozenset({"error", "response.failed"})
_DELTAS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
# Ends of parts of a message: held back, because another attempt may continue the text.
_DONE_EVENTS: Final = frozenset(
    {"response.output_text.done", "response.refusal.done", "response.content_part.done", "response.output_item.done"}
)
# Items that the provider runs itself. Any other item but a message is a call that the client runs.
_SERVER_ITEMS: Final = frozenset(
    {
        "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
        "mcp_list_tools",
    }
)  # fmt: skip

Data = dict[str, Any]
Event = tuple[str, Data, bytes]


class ResponsesStream(StreamSplicer):
    """Splicer for one response. Another attempt continues the text in the message that the client has open."""

    ping = KEEP_ALIVE
    input_tokens_key = "input_tokens"
    output_tokens_key = "output_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True, choices: int = 1) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls, choices=choices)
        self._response: Data = {}  # from response.created
        self._items: list[Data] = []  # finished items that the client has received
        self._open: Data | None = None  # message that the client has open
        self._parts: list[Data] = []  # finished parts of the open message
        self._part: Data | None = None  # part of the open message that is not finished, without its text
        self._part_texts: list[str] = []
        self._done_events: list[Event] = []  # end of the open message, not yet sent
        self._sequence_number = -1  # last one that the client has received
        self._held: dict[int | None, list[Event]] = {}  # incomplete items by output index
        self._thinking: Data | None = None  # reasoning item that the client has open
        self._thoughts: list[str] = []  # its summary so far, by part
        self._has_thinking = False  # the client has complete reasoning
        self._next_message: Data = {}  # message of the current attempt, opened with its first text
        self._has_message = False  # the current attempt has begun a message

    def begin_attempt(self) -> bytes:
        """Start another attempt. An open message stays open."""
        closing = super().begin_attempt()
        self._held, self._next_message, self._has_message = {}, {}, False
        if not (self.opened or self.started):
            self._thinking, self._has_thinking = None, False
            self._response, self._items, self._sequence_number = {}, [], -1
            self._open, self._part, self._parts, self._done_events = None, None, [], []
        return closing

    def close_interrupted(self) -> bytes:
        """Take back the end of a message that was not yet sent. Reasoning that broke off is closed, and marked."""
        self._done_events = []
        if self._thinking is None:
            return b""
        summary = [{"type": "summary_text", "text": text} for text in self._thoughts]
        item = {**self._thinking, "summary": summary, "encrypted_content": INCOMPLETE_MARK, "status": "incomplete"}
        self._thinking = None
        out = self._build_event("response.output_item.done", {"output_index": len(self._items), "item": item})
        self._items.append(item)
        return out

    def close_open(self) -> bytes:
        """Finish the open message: as the upstream did, or with the text that the client has received."""
        if self._open is None:
            return b""
        item, events = self._open, self._done_events
        if events and events[-1][0] == "response.output_item.done":
            out = self._release_done()
            self._items.append(object_field(events[-1][1], "item"))
        else:
            index = len(self._items)
            out = self._release_done() + self._close_part()
            item = {**item, "status": "completed", "content": self._parts}
            out += self._build_event("response.output_item.done", {"output_index": index, "item": item})
            self._items.append(item)
        self._open, self._part, self._parts = None, None, []
        return out

    def _close_part(self) -> bytes:
        part, self._part = self._part, None
        if part is None:
            return b""
        kind = str(part.get("type"))
        key = "refusal" if kind == "refusal" else "text"
        place = self._place()
        extra: Data = {"logprobs": []} if key == "text" else {}
        part = {**part, key: "".join(self._part_texts)}
        self._parts = [*self._parts, part]
        out = self._build_event(f"response.{kind}.done", {**place, key: part.get(key), **extra})
        return out + self._build_event("response.content_part.done", {**place, "part": part})

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        code = "rate_limit_exceeded" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        fields = {"code": code, "message": message, "param": None}
        # The API reference has the fields in the event itself; the SDK raises only if they are under `error`.
        return self._build_event("error", {**fields, "error": {"type": code, **fields}})

    def finish_with_tool_calls(self) -> bytes:
        """End a response whose tool calls are complete, so that the client can run them."""
        closing = self.close_open()
        self._end = ("response.completed", {})  # the provider has no such response
        self._is_settled = True
        whole = {**self._response, "status": "completed", "output": self._items}
        return closing + self._build_event("response.completed", {"response": whole})

    def finish(self) -> bytes:
        """Return the final bytes for the client."""
        closing = self._release() + self.close_open()
        return closing + b"".join(self._end_events) if not self.resumed else closing + self._build_end()

    def handle_event(self, name: str, data: Data, raw: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        if name in _ERROR_EVENTS:
            self.error = (name, data_of(raw))
            return b""
        if name in _END_EVENTS:
            return self._finish(name, data, raw)
        if name == "response.created" and not self._response:
            self._response = object_field(data, "response")
        kind = str(object_field(data, "item").get("type")) if name.startswith("response.output_item.") else ""
        index = data.get("output_index")
        place = index if isinstance(index, int) else None
        if name == "response.output_item.added":
            if kind == "reasoning" and not (self.started or self._has_thinking):
                self._thinking, self._thoughts, self._place_of_thinking = object_field(data, "item"), [], place
            elif kind == "reasoning" or (kind != "message" and (self.buffer_tool_calls or self.resumed > 0)):
                self._held[place] = []
        if self._thinking is not None and place == self._place_of_thinking:
            return self._think(name, data, raw)
        if place in self._held:
            return self._hold(place, name, data, raw)
        if name == DONE:
            return b""
        return self._process_resumed(name, data) if self.resumed else self._process_first(name, kind, data, raw)

    # -- reasoning is passed on as it comes ------------------------------------------------------------------

    def _think(self, name: str, data: Data, raw: bytes) -> bytes:
        """Pass on an event of a reasoning item."""
        out = self.close_open() + self._renumbered((name, data, raw), len(self._items))
        delta = data.get("delta")
        if name == "response.output_item.done":
            self._items.append(object_field(data, "item"))
            self._thinking, self._has_thinking = None, True
        elif name == "response.reasoning_summary_part.added":
            self._thoughts.append("")
        elif isinstance(delta, str):
            self._characters += len(delta)
            if name == "response.reasoning_summary_text.delta":
                self._thoughts = [*self._thoughts[:-1], "".join(self._thoughts[-1:]) + delta]
            return self.release_thinking(out)
        return self.buffer(out)

    _place_of_thinking: int | None = None

    # -- items that are passed on when they are complete ----------------------------------------------------

    def _hold(self, place: int | None, name: str, data: Data, raw: bytes) -> bytes:
        """Hold an event of an item other than a message, and release the item when it is done."""
        self.count_held(raw)
        delta = data.get("delta")
        self._characters += len(delta) if isinstance(delta, str) else 0
        item = object_field(data, "item")
        if name != "response.output_item.done":
            self._held[place].append((name, data, raw))
            return b""
        kind = str(item.get("type"))
        if kind == "function_call":
            arguments = parse_json(item.get("arguments")) if item.get("arguments") else {}
            error = self.find_call_error(str(item.get("name")), arguments)
            if error:
                return self.reject_call(error, name, data, raw)
            self.tool_calls.append((str(item.get("name")), arguments))
        elif kind not in _SERVER_ITEMS:
            self.tool_calls.append((str(item.get("name") or kind), item.get("input") or item.get("action")))
        events = [*self._held.pop(place), (name, data, raw)]
        self._held_size = 0
        if kind == "reasoning":
            return b""  # after text or complete reasoning, that of another attempt is left out
        out = self._text(self.overlap.close()) if self.resumed else b""
        out += self.close_open()
        out += b"".join(self._renumbered(event, len(self._items)) for event in events)
        self._items.append(item)
        return self.release_content(out)

    def _renumbered(self, event: Event, index: int) -> bytes:
        """Return an event with the client's output index and sequence number; unchanged if they are the same."""
        name, data, raw = event
        if not self.resumed and data.get("output_index") == index:
            return self._sent(data, raw)
        return self._build_event(name, {**data, "output_index": index})

    # -- first attempt: events are passed on as they come -----------------------------------------------------

    def _process_first(self, name: str, kind: str, data: Data, raw: bytes) -> bytes:
        self.passthrough = name in _DELTAS
        if name in _DELTAS:
            text = str(data.get("delta") or "")
            self._add_text(text, "refusal" if name == "response.refusal.delta" else "output_text")
            return self.release_content(self._release_done() + self._sent(data, raw))
        if name in _DONE_EVENTS and self._open is not None:
            self._done_events.append((name, data, raw))
            return b""
        out = b""
        if name == "response.output_item.added":
            out = self.close_open()
            self._open = object_field(data, "item") if kind == "message" else None
        elif name == "response.output_item.done":
            self._items.append(object_field(data, "item"))
        elif name == "response.content_part.added":
            out = self._release_done()
            self._part, self._part_texts = object_field(data, "part"), []
        elif name == "response.output_text.annotation.added" and self._part is not None:
            self._part = {**self._part, "annotations": [*(self._part.get("annotations") or ()), data.get("annotation")]}
        out += self._sent(data, raw)
        return self.buffer(out) if kind in ("", "message") else self.release_content(out)

    def _release_done(self) -> bytes:
        """Return the ends that were held back, because the message goes on."""
        events, self._done_events = self._done_events, []
        for name, data, _ in events:
            if name == "response.content_part.done":
                self._parts, self._part = [*self._parts, object_field(data, "part")], None
        return b"".join(self._sent(data, raw) for _, data, raw in events)

    def _add_text(self, text: str, kind: str) -> None:
        self.record_text(text)
        if self._part is None:
            self._part, self._part_texts = {"type": "refusal"} if kind == "refusal" else _EMPTY_TEXT, []
        self._part_texts.append(text)

    # -- later attempts: items and sequence numbers are rewritten -----------------------------------------------

    def _process_resumed(self, name: str, data: Data) -> bytes:
        if name == "response.output_item.added":
            closing = self.close_open() if self._has_message else b""
            self._has_message, self._next_message = True, object_field(data, "item")
            return closing
        if name in _DELTAS:
            return self._text(self.overlap.feed(str(data.get("delta") or "")))
        return self._text(self.overlap.close()) if name == "response.output_item.done" else b""

    def _text(self, text: str) -> bytes:
        """Return the events for text of another attempt, in the open part, or in a new part or message."""
        if not text:
            return b""
        out = b""
        if self._open is None:
            made = {"type": "message", "role": "assistant", "id": "msg_continued", **self._next_message}
            self._open = {**made, "status": "in_progress", "content": []}
            out += self._build_event(
                "response.output_item.added", {"output_index": len(self._items), "item": self._open}
            )
        if self._part is None or self._part.get("type") != "output_text":
            out += self._close_part()
            self._part, self._part_texts = _EMPTY_TEXT, []
            out += self._build_event("response.content_part.added", {**self._place(), "part": self._part})
        self.started = True
        self._add_text(text, "output_text")
        return out + self._build_event("response.output_text.delta", {**self._place(), "delta": text, "logprobs": []})

    def _place(self) -> Data:
        item = self._open or {}
        return {"item_id": item.get("id"), "output_index": len(self._items), "content_index": len(self._parts)}

    # -- the end -----------------------------------------------------------------------------------------

    def _finish(self, name: str, data: Data, raw: bytes) -> bytes:
        response = object_field(data, "response")
        self.passthrough, self.ended, self.stop_reason = False, True, "completed"
        if name == "response.incomplete":
            self.stop_reason = str(object_field(response, "incomplete_details").get("reason") or "incomplete")
        self.had_nontext = has_output(response)
        self.usage = object_field(response, "usage")
        self._end_events, self._end = [raw], (name, response)
        return self._text(self.overlap.close()) if self.resumed else b""

    def _build_end(self) -> bytes:
        """Build the end of a response that is made from several attempts."""
        name, response = self._end
        whole = {**response, "id": self._response.get("id", response.get("id")), "output": self._items}
        if response.get("usage"):
            whole["usage"] = self.total_usage()
        return self._build_event(name, {"response": whole})

    _end: tuple[str, Data] = ("response.completed", {})
    _is_settled = False  # ended after a tool call, although the stream broke

    def references(self, request: Data, *, is_stored: bool = True) -> dict[str, Any]:
        """Return what stands for ids of this response that the provider does not have; `is_stored`: it has the last one."""
        own, final = str(self._response.get("id") or ""), self._end[1]
        if self._is_settled or not is_stored:
            unstored = unstored_references(request, {"id": own, "output": self._items})
            return references(self._items, final) if self._is_settled and not unstored else unstored
        if not self.resumed:
            return {}
        found = references(self._items, final)
        if own and final.get("id") not in (None, own):
            found[own] = final["id"]
        return found

    def _sent(self, data: Data, raw: bytes) -> bytes:
        """Note the sequence number of an event that is passed on unchanged."""
        number = data.get("sequence_number")
        if isinstance(number, int):
            self._sequence_number = max(self._sequence_number, number)
        return raw

    def _build_event(self, name: str, data: Data) -> bytes:
        self._sequence_number += 1
        return named_event(name, {**data, "type": name, "sequence_number": self._sequence_number})


_EMPTY_TEXT: Final[Data] = {"type": "output_text", "text": "", "annotations": []}
