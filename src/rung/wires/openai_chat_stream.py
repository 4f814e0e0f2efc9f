"""OpenAI's Chat Completions as events: chunks of one completion, a finish reason, and [DONE]."""

from __future__ import annotations

import re
from typing import Any, Final

from rung.wires.stream_splicer import StreamSplicer, data_of
from rung.wires.wire_json import data_event, json_object, parsed, part, parts, summed, whole_number

_FINISHED: Final = re.compile(rb'"finish_reason"\s*:\s*"').search
_OTHERS: Final = re.compile(rb'"index"\s*:\s*[1-9][0-9]*\s*,\s*"delta"').search
_SAYS: Final = re.compile(rb'"(?:content|refusal)"\s*:\s*"(?!")').search
_OTHER: Final = re.compile(rb'"tool_calls"|"error"|\[DONE\]|"finish_reason"\s*:\s*"').search


class ChatStream(StreamSplicer):
    """One completion; chunks of a further attempt have the first one's id."""

    ping = b": rung\n\n"
    good_stops = frozenset({"stop", "tool_calls", "function_call"})
    output_count = "completion_tokens"

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls)
        self._head: dict[str, Any] = {}  # what every chunk says of its completion
        self._first = b""

    def begin(self) -> bytes:
        """Another attempt begins."""
        if self.started and not self._head:
            data = json_object(data_of(self._first))
            self._head = {key: data[key] for key in data if key not in ("choices", "usage", "error")}
        return super().begin()

    def other(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """A tool call, an end, or an error."""
        return _OTHER(events, start)

    def words(self, events: bytes) -> str:
        """The text in these events."""
        said = []
        for event in events.split(b"\n\n"):
            if b'"content"' in event:
                content = _delta(json_object(data_of(event))).get("content")
                if isinstance(content, str):
                    said.append(content)
        return "".join(said)

    def close_open(self) -> bytes:
        """Nothing is open between chunks."""
        return b""

    def interrupted(self) -> bool:
        """Over without a finish reason; some services leave [DONE] out."""
        return not self.stop

    def failed(self, status: int, message: str) -> bytes:
        """An error chunk, after which nothing comes."""
        kind = "rate_limit_error" if status == 429 else "server_error"  # noqa: PLR2004  # HTTP
        return data_event({"error": {"message": message, "type": kind, "param": None, "code": status}})

    def settle(self) -> bytes:
        """Calls are let go with their finish reason: only what follows it can be missing."""
        return b"".join(self._ending) + b"data: [DONE]\n\n"

    def event(self, event: bytes) -> bytes:
        """What the client gets of one event."""
        if not self._first and b'"choices"' in event:
            self._first = event
        if b"[DONE]" in event and data_of(event).strip() == b"[DONE]":
            self.ended = True
            self._ending.append(event)
            return b""
        if b'"error"' in event and json_object(data_of(event)).get("error"):
            self.error = ("", data_of(event).decode("utf-8", "replace"))
            return b""
        if not event.startswith(b"data") and b"\ndata" not in event:
            return event if self.started else b""  # a comment
        if self.stop or _FINISHED(event):
            return self._end(event)
        if _OTHERS(event):
            self.single_choice = False
        if (
            b'"tool_calls"' in event
            and self.buffer_tool_calls
            and self.single_choice
            and _delta(json_object(data_of(event))).get("tool_calls")
        ):
            self._tool.append(event)
            return b""
        if self.resumed:
            text = _delta(json_object(data_of(event))).get("content")
            return self._text(self.overlap.feed(text)) if isinstance(text, str) else b""
        if _SAYS(event) or b'"tool_calls"' in event:
            self.passthrough = self.single_choice
            return self.content(event)
        return self.buffer(event)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        self.say(text)
        return data_event({**self._head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})

    def _end(self, event: bytes) -> bytes:
        """The last chunks: the finish reason, with the calls before it, and the usage."""
        data = json_object(data_of(event))
        self.passthrough = False
        reason = next((c.get("finish_reason") for c in parts(data, "choices") if c.get("finish_reason")), "")
        out = b""
        delta = _delta(data)
        if delta.get("tool_calls") and self.buffer_tool_calls and self.single_choice:
            self._tool.append(event)  # calls and their end in one chunk
            self.stop = str(reason) or self.stop
            return self._calls_done() if reason else b""
        if delta.get("content") and not self.resumed:
            self._keep(event)
        if reason:
            self.stop = str(reason)
            out = self._calls_done()
            self.had_nontext = self.had_nontext or bool(delta.get("content")) or self.stop != "stop"
        usage = data.get("usage")
        if isinstance(usage, dict):
            self.usage = summed(usage, {"completion_tokens": self._counted, "total_tokens": self._counted})
        self._ending.append(self._last(data, delta) if self.resumed else event)
        return out

    def _last(self, data: dict[str, Any], delta: dict[str, Any]) -> bytes:
        text = self.overlap.feed(str(delta.get("content") or "")) + self.overlap.close()
        made = {**data, **self._head}
        if isinstance(data.get("usage"), dict):
            made["usage"] = self.usage
        return self._text(text) + data_event(made | ({"choices": [_silent(c) for c in parts(data, "choices")]}))

    def _calls_done(self) -> bytes:
        """Let the calls go when all of them are whole."""
        events, self._tool = self._tool, []
        if not events:
            return b""
        calls: dict[int, list[str]] = {}
        for event in events:
            for call in parts(_delta(json_object(data_of(event))), "tool_calls"):
                function = part(call, "function")
                so_far = calls.setdefault(whole_number(call.get("index")), ["", ""])
                so_far[0] += str(function.get("name") or "")
                so_far[1] += str(function.get("arguments") or "")
        for name, written in calls.values():
            made = parsed(written) if written else {}
            bad = f"the arguments of the call of {name} are not valid JSON"
            self.bad_call = self.check(name, made) if isinstance(made, dict) else bad
            if self.bad_call:
                return b""
        self.called += [(name, parsed(written) if written else {}) for name, written in calls.values()]
        if self.resumed:
            events = [data_event({**json_object(data_of(event)), **self._head}) for event in events]
        return self.content(b"".join(events))


def _silent(choice: dict[str, Any]) -> dict[str, Any]:
    return {
        **choice,
        "delta": {key: v for key, v in part(choice, "delta").items() if key not in ("content", "role")},
    }


def _delta(data: dict[str, Any]) -> dict[str, Any]:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, dict) else None
    return delta if isinstance(delta, dict) else {}
