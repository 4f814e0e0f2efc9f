"""Event stream of OpenAI's Chat Completions API: chunks of one completion, a finish reason, and [DONE]."""

from __future__ import annotations

from typing import Any, Final

from rung.core.recovery.stop_reasons import ends_text, stop_defect
from rung.wires.openai_chat_body import REASONING_FIELDS
from rung.wires.sse import KEEP_ALIVE, data_of
from rung.wires.stream_splicer import DONE, StreamSplicer
from rung.wires.wire_json import data_event, int_or_zero, object_field, object_list, parse_json

_CALL_FIELDS: Final = ("tool_calls", "function_call")
_NO_OUTPUT: Final = frozenset({"role", *REASONING_FIELDS})
_NO_ROLE: Final = frozenset({"role"})
_REASONING_DETAILS: Final = ("reasoning_details", "provider_specific_fields")
_TEXT_FIELDS: Final = _NO_OUTPUT | {"content", "refusal", "annotations", *_CALL_FIELDS}
_DONE_EVENT: Final = b"data: [DONE]\n\n"


class ChatStream(StreamSplicer):
    """Splicer for one completion. Chunks of another attempt get the id of the first."""

    ping = KEEP_ALIVE
    input_tokens_key = "prompt_tokens"
    output_tokens_key = "completion_tokens"
    has_names = False

    def __init__(self, *, buffer_tool_calls: bool = True, choices: int = 1) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls, choices=choices)
        self._chunk_fields: dict[str, Any] = {}  # fields that every chunk of a completion shares
        self._held: list[tuple[dict[str, Any], bytes]] = []  # chunks of tool calls
        self._stops: dict[int, str] = {}  # finish reasons by choice

    def begin_attempt(self) -> bytes:
        """Start another attempt."""
        if not (self.opened or self.started):
            self._chunk_fields = {}
        self._held, self._stops = [], {}
        return super().begin_attempt()

    def close_interrupted(self) -> bytes:
        """Return nothing: no block is open between chunks."""
        return b""

    def close_open(self) -> bytes:
        """Return nothing: no block is open between chunks."""
        return b""

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error chunk that ends a stream."""
        kind = "rate_limit_error" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        return data_event({"error": {"message": message, "type": kind, "param": None, "code": status}})

    def finish(self) -> bytes:
        """Return the final bytes for the client. A [DONE] that did not come is added."""
        return super().finish() + (b"" if self.ended else _DONE_EVENT)

    def finish_with_tool_calls(self) -> bytes:
        """End a completion whose tool calls are complete. They are released with their finish reason."""
        return self.finish()

    def handle_event(self, name: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Process one chunk. Return the bytes to send to the client."""
        if name == DONE:
            self.ended = True
            self._end_events.append(raw)
            return b""
        if data.get("error"):
            self.error = ("", data_of(raw))
            return b""
        choices = object_list(data, "choices")
        if not self._chunk_fields and choices:
            self._chunk_fields = {key: data[key] for key in data if key not in ("choices", "usage", "error")}
        if isinstance(data.get("usage"), dict):
            self.usage = data["usage"]
        if any(int_or_zero(choice.get("index")) for choice in choices):
            self.choices = max(self.choices, 2)
        if self.choices > 1:
            return self._pass_on(choices, raw)
        delta = object_field(choices[0], "delta") if choices else {}
        reason = str(choices[0].get("finish_reason") or "") if choices else ""
        if reason or self.stop_reason:
            return self._end(data, delta, reason, raw)
        if self.buffer_tool_calls and any(delta.get(key) for key in _CALL_FIELDS):
            self._held.append((data, raw))
            self.count_held(raw)
            self.passthrough = False
            return b""
        if self.resumed:
            return self._resumed(delta)
        if not is_output(delta):
            return self._reasoning(delta, raw)
        self.passthrough = True
        self.has_media = self.has_media or any(delta.get(key) for key in delta if key not in _TEXT_FIELDS)
        self.record_text(_text_of(delta))
        return self.release_content(raw)

    def _pass_on(self, choices: list[dict[str, Any]], raw: bytes) -> bytes:
        """Pass on a chunk of several choices. They cannot be resumed, so only the frames before them are buffered."""
        out = b"".join(held for _, held in self._held)
        self._held = []
        for choice in choices:
            if choice.get("finish_reason"):
                self._stops[int_or_zero(choice.get("index"))] = str(choice["finish_reason"])
        if len(self._stops) >= self.choices:
            cut = [reason for reason in self._stops.values() if stop_defect(reason) is not None]
            self.stop_reason = (cut or list(self._stops.values()))[0]
        if self.hides_usage and not choices:
            return b""
        has_output = out or any(is_output(object_field(choice, "delta")) for choice in choices)
        return self.release_content(out + raw) if has_output or self._stops else self.buffer(raw)

    # -- later attempts: text is rewritten -----------------------------------------------------------------

    def _reasoning(self, delta: dict[str, Any], raw: bytes) -> bytes:
        """Show reasoning as it comes. Details are buffered: they may be signed, and are worth nothing in part."""
        self.had_nontext = self.had_nontext or any(delta.get(name) for name in REASONING_FIELDS)
        is_text = any(isinstance(delta.get(name), str) and delta[name] for name in REASONING_FIELDS)
        if not is_text or any(delta.get(name) for name in _REASONING_DETAILS):
            return self.buffer(raw)
        self._characters += sum(len(value) for value in delta.values() if isinstance(value, str))
        return self.release_thinking(raw)

    def _resumed(self, delta: dict[str, Any]) -> bytes:
        out = self._text(self.overlap.feed(_text_of(delta)))
        left_out = _NO_OUTPUT if self.started else _NO_ROLE  # after text, the reasoning of another attempt is left out
        other = {key: value for key, value in delta.items() if value and key != "content" and key not in left_out}
        return out + self._chunk(other) if other else out

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        self.started = True
        self.record_text(text)
        return self._chunk({"content": text})

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return data_event({**self._chunk_fields, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    # -- the end -------------------------------------------------------------------------------------------

    def _end(self, data: dict[str, Any], delta: dict[str, Any], reason: str, raw: bytes) -> bytes:
        """Process the last chunks: the finish reason, the tool calls before it, and the usage."""
        self.passthrough = False
        if self.buffer_tool_calls and any(delta.get(key) for key in _CALL_FIELDS):
            self._held.append((data, b""))  # tool calls and finish reason in one chunk
        calls = _calls_in([held for held, _ in self._held])
        for name, arguments in calls:
            error = self.find_call_error(name, arguments)
            if error:
                if self._held[-1][0] is data:
                    self._held.pop()
                return self.reject_call(error, "", data, raw)
        self.stop_reason = reason or self.stop_reason
        self.had_nontext = self.had_nontext or is_output(delta) or not ends_text(self.stop_reason)
        out = self._release_calls(calls)
        if self.hides_usage and not object_list(data, "choices"):
            return out
        if not self.resumed:
            self.record_text(_text_of(delta))
            self._end_events.append(raw)
            return out
        out = self._text(self.overlap.feed(_text_of(delta)) + self.overlap.close()) + out
        made = {**data, **self._chunk_fields}
        made["choices"] = [_without_text(choice) for choice in object_list(data, "choices")]
        if isinstance(data.get("usage"), dict):
            made["usage"] = self.total_usage()
        self._end_events.append(data_event(made))
        return out

    def _release_calls(self, calls: list[tuple[str, object]]) -> bytes:
        held, self._held, self._held_size = [event for event in self._held if event[1]], [], 0
        self.tool_calls += calls
        if not held:
            return b""
        if self.resumed:
            self.started = True
            return b"".join(data_event({**data, **self._chunk_fields}) for data, _ in held)
        self.record_text("".join(_text_of(_delta(data)) for data, _ in held))
        return self.release_content(b"".join(raw for _, raw in held))


def is_output(delta: dict[str, Any]) -> bool:
    """Return whether a delta has output: text, a refusal, audio, images, or anything but the role and reasoning."""
    return any(value for key, value in delta.items() if key not in _NO_OUTPUT)


def _calls_in(chunks: list[dict[str, Any]]) -> list[tuple[str, object]]:
    """Return the names and arguments of the tool calls in these chunks. Arguments that are no JSON are None."""
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        delta = _delta(chunk)
        found = [
            (int_or_zero(call.get("index")), object_field(call, "function"))
            for call in object_list(delta, "tool_calls")
        ]
        legacy = object_field(delta, "function_call")
        for index, function in [*found, (-1, legacy)] if legacy else found:
            so_far = calls.setdefault(index, ["", ""])
            so_far[0] += str(function.get("name") or "")
            so_far[1] += str(function.get("arguments") or "")
    return [(name, parse_json(written) if written else {}) for name, written in calls.values()]


def _without_text(choice: dict[str, Any]) -> dict[str, Any]:
    delta = {key: value for key, value in object_field(choice, "delta").items() if key not in ("content", "role")}
    return {**choice, "delta": delta}


def _delta(data: dict[str, Any]) -> dict[str, Any]:
    choices = object_list(data, "choices")
    return object_field(choices[0], "delta") if choices else {}


def _text_of(delta: dict[str, Any]) -> str:
    """Return the text of a delta. Some services send a list of parts."""
    content = delta.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
