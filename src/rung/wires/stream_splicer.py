"""Splicing of event streams: one response for the client, made from the streams of one or more attempts.

A splicer is a fold over the events of a stream. An event that need not change is passed on as it came. It buffers the
frames before the first content (an early failure stays invisible), tool calls until they are complete (an incomplete one
can be neither used nor withdrawn), the end of a text (another attempt may continue it), and the end of
the response (until it is validated). Each wire format has a subclass.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final, Self

from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stop_reasons import stop_defect
from rung.wires.overlap import OverlapFilter, RepetitionFilter
from rung.wires.sse import MAX_EVENT_BYTES, EventReader, build_event
from rung.wires.stream_usage import StreamUsage
from rung.wires.tool_arguments import invalid_call
from rung.wires.wire_json import parse_event_json, parse_quick_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.wires.sse import ServerSentEvent

MAX_BUFFERED_BYTES: Final = 512 * 1024  # buffered before the first content; more is released
DONE: Final = "[DONE]"  # name given to the marker that has no JSON
_SILENT: Final = Evidence(text="the response is empty", finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)


class StreamSplicer(StreamUsage):
    """Base class of the splicers: reads events, buffers and releases them."""

    has_names = True  # events are named after the `type` of their data
    has_comments = True  # clients of the wire ignore comments
    has_object_arguments = False  # arguments of calls are JSON objects, not texts
    has_plain_errors = False  # an error may come as JSON between the events

    def __init__(self, *, buffer_tool_calls: bool = True, choices: int = 1) -> None:
        super().__init__()
        self.buffer_tool_calls = buffer_tool_calls
        self.choices = choices  # requested alternatives; more than one cannot be spliced
        self.resumed = 0  # number of earlier attempts that sent content or thinking to the client
        self.opened = False  # the client has received thinking, and the frames before it
        self.started = False  # the client has received content
        self.tool_calls: list[tuple[str, object]] = []  # complete calls that the client has received
        self.ended = False  # the stream has sent its terminal event
        self.error: tuple[str, str] | None = None  # name and data of an error event
        self.malformed = False  # the stream has an event that is not valid JSON
        self.call_error = ""  # message about an invalid tool call
        self.invalid_tool = ""  # name of its tool
        self.accepts_invalid_calls = False
        self.check_call: Callable[[str, object], str] = _no_check  # returns a message about a complete call, or ""
        self.had_nontext = False  # the response ends with something other than text
        self.has_media = False  # the client has received audio or images, which cannot be continued
        self.hides_usage = False  # the client did not ask for usage
        self.passthrough = False  # the current events are text of a block that the client has open
        self.must_repeat = False  # another attempt answers again from the beginning
        self.overlap: OverlapFilter | RepetitionFilter = OverlapFilter("")
        self._texts: list[str] = []
        self._reader = EventReader(reads_json=self.has_plain_errors)
        self._buffered: list[bytes] = []
        self._buffered_size = 0
        self._held_size = 0
        self._end_events: list[bytes] = []
        self._with_invalid_call: StreamSplicer | None = None  # copy that passes the invalid call on
        self._invalid_part: list[bytes] = []  # what the copy would send

    @property
    def tool_call_count(self) -> int:
        """Number of complete tool calls that the client has received."""
        return len(self.tool_calls)

    # -- called by the transport ---------------------------------------------------------------------------

    def begin_attempt(self) -> bytes:
        """Start another attempt. Return the bytes that close what cannot be continued."""
        self.count_earlier_usage()
        closing = b""
        if self.opened or self.started:
            self.resumed += 1
            closing = self.close_interrupted()
            self.overlap = RepetitionFilter(self.text()) if self.must_repeat else OverlapFilter(self.text())
        self.stop_reason, self.ended, self.error, self.call_error, self.passthrough = "", False, None, "", False
        self.had_nontext = self.malformed = False
        self._reader = EventReader(reads_json=self.has_plain_errors)
        self._buffered, self._buffered_size, self._held_size, self._end_events = [], 0, 0, []
        self._with_invalid_call, self._invalid_part = None, []
        return closing

    def feed(self, chunk: bytes) -> bytes:
        """Process received bytes. Return the bytes to send to the client."""
        out = []
        try:
            for event in self._reader.feed(chunk):
                if self.ended or self.error is not None:
                    break  # whatever follows is no part of the response
                out.append(self._process(event))
        except (ValueError, RecursionError):
            self.malformed = True
        return out[0] if len(out) == 1 else b"".join(out)

    def _process(self, event: ServerSentEvent) -> bytes:
        """Process one event; raise ValueError if it is malformed."""
        name, data, raw = event
        if data[:1] not in (b"{", b"["):
            self.passthrough = False
            passes = self.started and not data and self.has_comments
            return raw if passes else b""  # a comment; other data is no JSON object
        if data.strip() == b"[DONE]":
            return self._handle(DONE, {}, raw)
        value = parse_event_json(data) if self.has_object_arguments else parse_quick_event(data)
        if isinstance(value, list) and len(value) == 1:  # some services put an error into a list
            value = value[0]
        if not isinstance(value, dict):
            return b""
        if not self.has_names:
            return self._handle("", value, raw)
        kind = value.get("type")
        if isinstance(kind, str) and (encoded := kind.encode()) != name:
            if not kind.isprintable():
                raise ValueError("the type of an event has control characters")
            name, raw = encoded, build_event(encoded, data.split(b"\n"))
        return self._handle(name.decode(), value, raw)

    def _handle(self, name: str, data: dict[str, Any], raw: bytes) -> bytes:
        fork = self._with_invalid_call
        if fork is None:
            return self.handle_event(name, data, raw)
        self._invalid_part.append(fork.handle_event(name, data, raw))
        self.ended, self.error, self.stop_reason, self.usage = fork.ended, fork.error, fork.stop_reason, fork.usage
        return b""

    @property
    def oversized(self) -> bool:
        """Whether the pending or held bytes exceed the size limit of an event."""
        return self._reader.oversized or self._held_size > MAX_EVENT_BYTES

    @property
    def has_diverged(self) -> bool:
        """Whether an answer that was asked for again is another one than the client has received in part."""
        return isinstance(self.overlap, RepetitionFilter) and self.overlap.has_diverged

    def text(self) -> str:
        """Return the text that the client has received so far."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    def finish(self) -> bytes:
        """Return the final bytes for the client."""
        return self._release() + self.close_open() + b"".join(self._end_events)

    def native_end(self) -> bytes:
        """Return the final bytes as the provider sent them, without ending the response: it may be resumed."""
        fork = self._with_invalid_call
        return self._copy().finish() if fork is None else b"".join(self._invalid_part) + fork.finish()

    def is_interrupted(self) -> bool:
        """Return whether the stream ended without a stop reason."""
        return not self.stop_reason

    # -- implemented by each wire format -------------------------------------------------------------------

    def handle_event(self, name: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        raise NotImplementedError

    def close_interrupted(self) -> bytes:
        """Prepare for another attempt: keep an open text open, close anything else."""
        raise NotImplementedError

    def close_open(self) -> bytes:
        """Close what the client has open."""
        raise NotImplementedError

    def validate(self) -> Evidence | None:
        """Return evidence of a defect in a finished response, or None if it is good."""
        if self.call_error:
            return invalid_call(self.invalid_tool, self.call_error)
        defect = stop_defect(self.stop_reason)
        return defect if defect is not None or self.started or self.had_nontext else _SILENT

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        raise NotImplementedError

    def finish_with_tool_calls(self) -> bytes:
        """End a response whose tool calls are complete, so that the client can run them."""
        raise NotImplementedError

    def references(self, request: dict[str, Any], *, is_stored: bool = True) -> dict[str, Any]:  # noqa: ARG002  # only some wires have ids
        """Return what stands for ids in this response that the provider does not have: another id, an item, or None.

        `is_stored`: the provider has the response of the last attempt. It has none that was translated.
        """
        return {}

    # -- buffering -----------------------------------------------------------------------------------------

    def buffer(self, events: bytes) -> bytes:
        """Buffer frames until there is content. If the buffer is full, release it."""
        if self.opened or self.started:
            return events
        self._buffered.append(events)
        self._buffered_size += len(events)
        if self._buffered_size < MAX_BUFFERED_BYTES:
            return b""
        self.started = True
        return self._release()

    def release_content(self, events: bytes) -> bytes:
        """Return content, after the frames buffered before it."""
        self.started = True
        return self._release() + events if self._buffered else events

    def release_thinking(self, events: bytes) -> bytes:
        """Return thinking, after the frames buffered before it. It is shown as it comes; another attempt may think again."""
        self.opened = self.had_nontext = True
        return self._release() + events if self._buffered else events

    def record_text(self, text: str) -> None:
        """Record text that the client receives."""
        self._texts.append(text)
        self._characters += len(text)

    def count_held(self, raw: bytes) -> None:
        """Count the size of a held event."""
        self._held_size += len(raw)

    def _release(self) -> bytes:
        buffered, self._buffered, self._buffered_size = b"".join(self._buffered), [], 0
        return buffered

    # -- tool calls ----------------------------------------------------------------------------------------

    def find_call_error(self, name: str, arguments: object) -> str:
        """Return a message about an invalid tool call, or an empty string. `arguments` is None if they are no JSON."""
        self.invalid_tool = name
        if self.accepts_invalid_calls:
            return ""
        if not isinstance(arguments, dict):
            return f"the arguments of the call of {name} are not valid JSON"
        return self.check_call(name, arguments)

    def reject_call(self, error: str, name: str, data: dict[str, Any], raw: bytes) -> bytes:
        """Withhold the rest of the response from this event on. A copy reads it, in case it is passed on after all."""
        self.call_error = error
        fork = self._with_invalid_call = self._copy()
        fork.accepts_invalid_calls = True
        self._invalid_part = [fork.handle_event(name, data, raw)]
        self.ended, self.stop_reason, self.usage = fork.ended, fork.stop_reason, fork.usage
        return b""

    def _copy(self) -> Self:
        fork = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict):
                setattr(fork, name, value.copy())
        return fork


def _no_check(name: str, arguments: object) -> str:  # noqa: ARG001  # the default of check_call
    return ""
