"""Event stream of OpenAI's Chat Completions API: chunks of one completion, a finish reason, and [DONE]."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import StreamSplicer, data_of
from rung.wires.wire_json import add_usage, data_event, int_or_zero, json_object, object_field, object_list, parse_json

_FINISHED: Final = re.compile(rb'"finish_reason"\s*:\s*"').search
_OTHER_CHOICE: Final = re.compile(rb'"index"\s*:\s*[1-9][0-9]*\s*,\s*"delta"').search
_HAS_TEXT: Final = re.compile(rb'"(?:content|refusal)"\s*:\s*"(?!")').search
_NONTEXT: Final = re.compile(rb'"tool_calls"|"error"|\[DONE\]|"finish_reason"\s*:\s*"').search


class ChatStream(StreamSplicer):
    """Splicer for one completion. Chunks of another attempt get the id of the first."""

    ping = b": rung\n\n"
    good_stops = frozenset({"stop", "tool_calls", "function_call"})
    output_tokens_key = "completion_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._chunk_fields: dict[str, Any] = {}  # fields that every chunk of a completion shares
        self._first_chunk = b""

    def begin_attempt(self) -> bytes:
        """Start another attempt."""
        if self.started and not self._chunk_fields:
            data = json_object(data_of(self._first_chunk))
            self._chunk_fields = {key: data[key] for key in data if key not in ("choices", "usage", "error")}
        return super().begin_attempt()

    def find_nontext(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Find a tool call, a finish reason, an error, or [DONE]."""
        return _NONTEXT(events, start)

    def text_in(self, events: bytes) -> str:
        """Return the text in these events."""
        texts = []
        for event in events.split(b"\n\n"):
            if b'"content"' in event:
                content = _delta(json_object(data_of(event))).get("content")
                if isinstance(content, str):
                    texts.append(content)
        return "".join(texts)

    def close_open(self) -> bytes:
        """Return nothing: no block is open between chunks."""
        return b""

    def is_interrupted(self) -> bool:
        """Return whether the stream ended without a finish reason. Some services omit [DONE]."""
        return not self.stop_reason

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error chunk that ends a stream."""
        kind = "rate_limit_error" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        return data_event({"error": {"message": message, "type": kind, "param": None, "code": status}})

    def finish_with_tool_calls(self) -> bytes:
        """End a completion whose tool calls are complete. They are released with their finish reason, so only the end is due."""
        return b"".join(self._end_events) + b"data: [DONE]\n\n"

    def handle_event(self, event: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        if not self._first_chunk and b'"choices"' in event:
            self._first_chunk = event
        if b"[DONE]" in event and data_of(event).strip() == b"[DONE]":
            self.ended = True
            self._end_events.append(event)
            return b""
        if b'"error"' in event and json_object(data_of(event)).get("error"):
            self.error = ("", data_of(event).decode("utf-8", "replace"))
            return b""
        if not event.startswith(b"data") and b"\ndata" not in event:
            return event if self.started else b""  # a comment
        if self.stop_reason or _FINISHED(event):
            return self._end(event)
        if _OTHER_CHOICE(event):
            self.single_choice = False
        if (
            b'"tool_calls"' in event
            and self.buffer_tool_calls
            and self.single_choice
            and _delta(json_object(data_of(event))).get("tool_calls")
        ):
            self._tool_events.append(event)
            return b""
        if self.resumed:
            text = _delta(json_object(data_of(event))).get("content")
            return self._text(self.overlap.feed(text)) if isinstance(text, str) else b""
        if _HAS_TEXT(event) or b'"tool_calls"' in event:
            self.passthrough = self.single_choice
            return self.release_content(event)
        return self.buffer(event)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        self.record_text(text)
        return data_event(
            {**self._chunk_fields, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        )

    def _end(self, event: bytes) -> bytes:
        """Process the last chunks: the finish reason, the tool calls before it, and the usage."""
        data = json_object(data_of(event))
        self.passthrough = False
        reason = next((c.get("finish_reason") for c in object_list(data, "choices") if c.get("finish_reason")), "")
        out = b""
        delta = _delta(data)
        if delta.get("tool_calls") and self.buffer_tool_calls and self.single_choice:
            self._tool_events.append(event)  # tool calls and finish reason in one chunk
            self.stop_reason = str(reason) or self.stop_reason
            return self._release_calls() if reason else b""
        if delta.get("content") and not self.resumed:
            self._keep_text(event)
        if reason:
            self.stop_reason = str(reason)
            out = self._release_calls()
            self.had_nontext = self.had_nontext or bool(delta.get("content")) or self.stop_reason != "stop"
        usage = data.get("usage")
        if isinstance(usage, dict):
            self.attempt_usage = usage
            self.usage = add_usage(
                usage, {"completion_tokens": self._earlier_output_tokens, "total_tokens": self._earlier_output_tokens}
            )
        if not (self.hides_usage and isinstance(usage, dict) and not data.get("choices")):
            self._end_events.append(self._final_chunk(data, delta) if self.resumed else event)
        return out

    def _final_chunk(self, data: dict[str, Any], delta: dict[str, Any]) -> bytes:
        text = self.overlap.feed(str(delta.get("content") or "")) + self.overlap.close()
        made = {**data, **self._chunk_fields}
        if isinstance(data.get("usage"), dict):
            made["usage"] = self.usage
        return self._text(text) + data_event(
            made | ({"choices": [_without_text(c) for c in object_list(data, "choices")]})
        )

    def _release_calls(self) -> bytes:
        """Release the buffered tool calls if all of them are valid."""
        events, self._tool_events = self._tool_events, []
        if not events:
            return b""
        calls: dict[int, list[str]] = {}
        for event in events:
            for call in object_list(_delta(json_object(data_of(event))), "tool_calls"):
                function = object_field(call, "function")
                so_far = calls.setdefault(int_or_zero(call.get("index")), ["", ""])
                so_far[0] += str(function.get("name") or "")
                so_far[1] += str(function.get("arguments") or "")
        for name, written in calls.values():
            made = parse_json(written) if written else {}
            bad = f"the arguments of the call of {name} are not valid JSON"
            self.call_error = self.check_call(name, made) if isinstance(made, dict) else bad
            if self.call_error:
                return b""
        self.tool_calls += [(name, parse_json(written) if written else {}) for name, written in calls.values()]
        if self.resumed:
            events = [data_event({**json_object(data_of(event)), **self._chunk_fields}) for event in events]
        return self.release_content(b"".join(events))


def _without_text(choice: dict[str, Any]) -> dict[str, Any]:
    return {
        **choice,
        "delta": {key: v for key, v in object_field(choice, "delta").items() if key not in ("content", "role")},
    }


def _delta(data: dict[str, Any]) -> dict[str, Any]:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, dict) else None
    return delta if isinstance(delta, dict) else {}
