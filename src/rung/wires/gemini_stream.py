"""Event stream of Gemini's streamGenerateContent: chunks that look like whole responses, the last with a finishReason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain.usage_formats import gemini_usage
from rung.core.recovery.stop_reasons import stop_defect
from rung.wires.gemini_answer import (
    block_reason,
    blocked,
    calls_in,
    error_body,
    finish_reason,
    is_output,
    text_in,
)
from rung.wires.gemini_messages import field_of, is_thought, parts_of
from rung.wires.stream_splicer import StreamSplicer
from rung.wires.wire_json import data_event, int_or_zero, object_field, object_list, to_json

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

    Body = dict[str, Any]


class GeminiStream(StreamSplicer):
    """Splicer for one response. Chunks of another attempt get the id of the first. Calls come whole, in one chunk."""

    ping = b"\n\n"  # Google's SDKs take blank lines, but no comments
    input_tokens_key = "promptTokenCount"
    output_tokens_key = "candidatesTokenCount"
    has_names = False
    has_comments = False
    has_object_arguments = True
    has_plain_errors = True

    def __init__(self, *, buffer_tool_calls: bool = True, choices: int = 1) -> None:
        super().__init__(buffer_tool_calls=buffer_tool_calls, choices=choices)
        self._chunk_fields: Body = {}  # fields that every chunk of a response shares
        self._stops: dict[int, str] = {}  # finish reasons by candidate
        self._block_reason = ""  # why the prompt was blocked

    def begin_attempt(self) -> bytes:
        """Start another attempt."""
        if not (self.opened or self.started):
            self._chunk_fields = {}
        self._stops, self._block_reason = {}, ""
        return super().begin_attempt()

    def close_interrupted(self) -> bytes:
        """Return nothing: no block is open between chunks."""
        return b""

    def close_open(self) -> bytes:
        """Return nothing: no block is open between chunks."""
        return b""

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error that ends a stream: a line of JSON without `data:`, which Google's SDKs raise as an error."""
        return to_json(error_body(status, message)).encode() + b"\n\n"

    def finish_with_tool_calls(self) -> bytes:
        """End a response whose calls are complete. The API has no finish reason of its own for calls."""
        usage = {"usageMetadata": self.total_usage()} if self.total_usage() else {}
        return data_event({"candidates": [_ending({"finishReason": "STOP"})], **usage, **self._chunk_fields})

    def validate(self) -> Evidence | None:
        """Return evidence of a defect in a finished response, or None if it is good."""
        return blocked(self._block_reason) if self._block_reason else super().validate()

    def handle_event(self, name: str, data: Body, raw: bytes) -> bytes:  # noqa: ARG002  # chunks have no names
        """Process one chunk. Return the bytes to send to the client."""
        if data.get("error"):
            self.error = ("", to_json(data))
            return b""
        candidates = object_list(data, "candidates")
        if not self._chunk_fields and candidates:
            self._chunk_fields = {key: data[key] for key in ("modelVersion", "responseId", "createTime") if key in data}
        if isinstance(data.get("usageMetadata"), dict):
            self.usage = data["usageMetadata"]
        if any(int_or_zero(candidate.get("index")) for candidate in candidates):
            self.choices = max(self.choices, 2)
        if self.choices > 1:
            return self._pass_on(candidates, raw)
        candidate = candidates[0] if candidates else {}
        parts, reason = parts_of(candidate.get("content")), finish_reason(candidate)
        self._block_reason = self._block_reason or block_reason(data)
        for called, arguments in calls_in(parts):
            error = self.find_call_error(called, arguments)
            if error:
                return self.reject_call(error, "", data, raw)
        if reason or self._block_reason or self.stop_reason:
            return self._end(data, parts, reason or self._block_reason, raw)
        return self._resumed(data, parts) if self.resumed else self._first(parts, raw)

    def _pass_on(self, candidates: list[Body], raw: bytes) -> bytes:
        """Pass on a chunk of several candidates. They cannot be resumed, so only the frames before them are buffered."""
        for candidate in candidates:
            if reason := finish_reason(candidate):
                self._stops[int_or_zero(candidate.get("index"))] = reason
        if len(self._stops) >= self.choices:
            cut = [reason for reason in self._stops.values() if stop_defect(reason) is not None]
            self.stop_reason = (cut or list(self._stops.values()))[0]
        has_output = any(is_output(part) for each in candidates for part in parts_of(each.get("content")))
        return self.release_content(raw) if has_output or self._stops else self.buffer(raw)

    def _first(self, parts: list[Body], raw: bytes) -> bytes:
        """Pass on a chunk of the first attempt that sends something."""
        if not any(is_output(part) for part in parts):
            if not any(is_thought(part) for part in parts):
                return self.buffer(raw)
            self._characters += sum(len(str(part.get("text") or "")) for part in parts)
            out = self.release_thinking(raw)
            self.had_nontext = False  # a response of thoughts alone is empty: Google's agent rejects it
            return out
        self._record(parts)
        return self.release_content(raw)

    def _record(self, parts: list[Body]) -> None:
        """Record the output that the client receives."""
        calls = calls_in(parts)
        self.tool_calls += calls
        self.passthrough = not calls
        self.has_media = self.has_media or any(field_of(part, "inlineData") for part in parts)
        self.record_text(text_in(parts))

    # -- later attempts: text is rewritten -----------------------------------------------------------------

    def _resumed(self, data: Body, parts: list[Body], *, last: bool = False) -> bytes:
        """Return the new parts of a chunk. After text, the thoughts of another attempt are left out."""
        new: list[Body] = []
        for part in parts:
            if is_thought(part) or not isinstance(part.get("text"), str):
                if not is_thought(part):
                    new += _text_parts(self.overlap.close())
                    new.append(part)
                elif not self.started:
                    new.append(part)
                continue
            text = self.overlap.feed(part["text"])
            if text or len(part) > 1:  # a signature
                new.append({**part, "text": text})
        new += _text_parts(self.overlap.close()) if last else []
        if not new:
            return b""
        self.started = self.started or any(is_output(part) for part in new)
        self._record(new)
        return data_event(self._chunk(data, [{"content": {"role": "model", "parts": new}, "index": 0}]))

    def _chunk(self, data: Body, candidates: list[Body]) -> Body:
        made = {**data, **self._chunk_fields, "candidates": candidates}
        if isinstance(data.get("usageMetadata"), dict):
            made["usageMetadata"] = self.total_usage()
        return made

    # -- the end -------------------------------------------------------------------------------------------

    def _end(self, data: Body, parts: list[Body], reason: str, raw: bytes) -> bytes:
        """Process the last chunks. They often have output, which is sent at once if the response may be resumed."""
        self.passthrough = False
        self.stop_reason = reason or self.stop_reason
        has_output = any(is_output(part) for part in parts)
        if not self.resumed and (not has_output or stop_defect(self.stop_reason) is None):
            self.had_nontext = self.had_nontext or has_output
            self._record(parts)
            self._end_events.append(raw)
            return b""
        if self.resumed:
            out = self._resumed(data, parts, last=True)
        else:
            self._record(parts)
            out = self.release_content(
                data_event({**data, "candidates": [_without_reason(each) for each in object_list(data, "candidates")]})
            )
        self.passthrough = False
        candidates = [_ending(each) for each in object_list(data, "candidates")]
        self._end_events.append(data_event(self._chunk(data, candidates)))
        return out

    # -- usage: each chunk has that of the attempt so far --------------------------------------------------

    def reported_usage(self) -> Body:
        """Return the usage that the current attempt has reported so far."""
        return self.usage

    def total_usage(self) -> Body:
        """Return the usage of all attempts."""
        total = super().total_usage()
        if "totalTokenCount" in total:
            usage = gemini_usage(total)
            total["totalTokenCount"] = usage.prompt + usage.output
        return total


def _text_parts(text: str) -> list[Body]:
    return [{"text": text}] if text else []


def _without_reason(candidate: Body) -> Body:
    return {name: value for name, value in candidate.items() if name not in ("finishReason", "finishMessage")}


def _ending(candidate: Body) -> Body:
    """Return a candidate without output. Its content has an empty text, as that of the API has."""
    content = {**object_field(candidate, "content"), "role": "model", "parts": [{"text": ""}]}
    return {**candidate, "content": content, "index": 0}
