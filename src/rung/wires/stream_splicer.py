"""Splicing of event streams: one response for the client, made from the streams of one or more attempts.

A splicer is a fold over the bytes of a stream. It parses nothing that need not change: an event is recognised by its
first bytes and passed on unchanged. It buffers the frames before the first content (an early failure stays invisible), a
tool call until it is complete (an incomplete one can be neither used nor withdrawn), and the end (until it is validated).
Each wire format has a subclass.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.overlap import OverlapFilter
from rung.wires.wire_json import int_or_zero

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

MAX_BUFFERED_BYTES: Final = 512 * 1024  # buffered before the first content; more is released
MAX_EVENT_BYTES: Final = 32 * 1024 * 1024  # of one event
MAX_UNPARSED_BYTES: Final = 256 * 1024  # released, with text that is not extracted yet

CHARACTERS_PER_TOKEN: Final = 4
_SILENT: Final = Evidence(text="the response is empty", finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)

# The scanner inside json.loads, without its overhead: it is called for every chunk.
_scan: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # undocumented


class StreamSplicer:
    """Base class of the splicers: splits bytes into events, buffers and releases them."""

    good_stops: frozenset[str]  # stop reasons of a complete response
    output_tokens_key: str  # key of the output tokens in the usage object

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        self.buffer_tool_calls = buffer_tool_calls
        self.resumed = 0  # number of earlier attempts that sent content to the client
        self.started = False  # the client has received content
        self.tool_calls: list[
            tuple[str, object]
        ] = []  # names and arguments of the complete calls that the client has received
        self.stop_reason = ""  # reported by the model
        self.ended = False  # the stream has sent its end marker
        self.error: tuple[str, str] | None = None  # name and data of an error event
        self.truncated = False  # the stream ended inside an event
        self.call_error = ""  # message about an invalid tool call
        self.check_call: Callable[[str, object], str] = _no_check  # returns a message about a complete call, or ""
        self.single_choice = True  # the response has one choice
        self.had_nontext = False  # the response ends with something other than text
        self.passthrough = False  # the current events are text of a block that the client has open
        self.usage: dict[str, Any] = {}  # of all attempts, as the client receives it
        self.attempt_usage: dict[str, Any] = {}  # reported at the end of the current attempt
        self.hides_usage = False  # the client did not ask for usage
        self._sent_text = ""
        self._unparsed: list[bytes] = []
        self._unparsed_size = 0
        self._tail = b""
        self._buffered: list[bytes] = []
        self._buffered_size = 0
        self._tool_events: list[bytes] = []
        self._end_events: list[bytes] = []
        self._earlier_output_tokens = 0  # output tokens of earlier attempts
        self.overlap = OverlapFilter("")

    @property
    def tool_call_count(self) -> int:
        """Number of complete tool calls that the client has received."""
        return len(self.tool_calls)

    # -- called by the transport ---------------------------------------------------------------------------

    def begin_attempt(self) -> bytes:
        """Start another attempt. Return the bytes that close the part which the client has received."""
        closing = b""
        if self.started:
            # An interrupted attempt has not reported its usage.
            reported = int_or_zero(self.usage.get(self.output_tokens_key)) if self.stop_reason else 0
            self._earlier_output_tokens = reported or max(
                self._earlier_output_tokens, len(self.text()) // CHARACTERS_PER_TOKEN
            )
            self.resumed += 1
            closing = self.close_open()
            self.overlap = OverlapFilter(self.text())
        self.stop_reason, self.ended, self.error, self.call_error, self.passthrough = "", False, None, "", False
        self._tail, self.truncated, self.attempt_usage = b"", False, {}
        self._buffered, self._buffered_size, self._tool_events, self._end_events = [], 0, [], []
        return closing

    def feed(self, chunk: bytes) -> bytes:
        """Process received bytes. Return the bytes to send to the client."""
        if self._tail:
            chunk = self._tail + chunk
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n")
        end = chunk.rfind(b"\n\n")
        if end < 0:
            self._tail = chunk
            return b""
        end += 2
        self._tail = chunk[end:]
        whole = chunk[:end] if self._tail else chunk
        before = whole.rfind(b"\n\n", 0, -2)
        last = before + 2 if before >= 0 else 0
        if not _is_complete(whole[last:]):
            self.truncated = True
            whole = whole[:last]
            if not whole:
                return b""
        return self._process(whole)

    def _process(self, events: bytes) -> bytes:
        """Process complete events: runs of text are passed on unchanged, other events one by one."""
        out = []
        at, end = 0, len(events)
        while at < end:
            if self.passthrough and not self.resumed:
                other = self.find_nontext(events, at)
                before = -1 if other is None else events.rfind(b"\n\n", at, other.start())
                until = end if other is None else before + 2
                if other is None or before >= 0:
                    out.append(self._keep_text(events[at:until]))
                    at = until
                    continue
            found = events.find(b"\n\n", at)
            until = end if found < 0 else found + 2  # of three line ends the last one remains
            event = events[at:until]
            at = until
            if len(event) > 2:  # noqa: PLR2004  # more than an empty line
                out.append(self.handle_event(event))
        return out[0] if len(out) == 1 else b"".join(out)

    @property
    def oversized(self) -> bool:
        """Whether the pending bytes exceed the size limit of an event."""
        return len(self._tail) > MAX_EVENT_BYTES

    def text(self) -> str:
        """Return the text that the client has received so far."""
        if self._unparsed:
            self._sent_text += self.text_in(b"".join(self._unparsed))
            self._unparsed, self._unparsed_size = [], 0
        return self._sent_text

    def finish(self) -> bytes:
        """Return the final bytes for the client."""
        return self._release() + b"".join(self._end_events)

    def started_usage(self) -> dict[str, Any]:
        """Return the usage that the current attempt has reported at its beginning."""
        return {}

    def is_interrupted(self) -> bool:
        """Return whether the stream ended without its end marker."""
        return not self.ended

    # -- implemented by each wire format -------------------------------------------------------------------

    def handle_event(self, event: bytes) -> bytes:
        """Process one event. Return the bytes to send to the client."""
        raise NotImplementedError

    def find_nontext(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Find the first event that is not a continuation of the text."""
        raise NotImplementedError

    def text_in(self, events: bytes) -> str:
        """Return the text in these events."""
        raise NotImplementedError

    def close_open(self) -> bytes:
        """Close the block that the client has open, so that another attempt can continue."""
        raise NotImplementedError

    def validate(self) -> Evidence | None:
        """Return evidence of a defect in a finished response, or None if it is good."""
        if self.call_error:
            return Evidence(text=self.call_error, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
        if self.stop_reason in self.good_stops:
            return None if self.started or self.had_nontext else _SILENT
        return Evidence(
            text=f"the response ended with {self.stop_reason or 'nothing'}", code=self.stop_reason, phase=Phase.RESULT
        )

    def error_event(self, status: int, message: str) -> bytes:
        """Build the error event that ends a stream."""
        raise NotImplementedError

    def finish_with_tool_calls(self) -> bytes:
        """End a response whose tool calls are complete, so that the client can run them."""
        raise NotImplementedError

    # -- buffering -----------------------------------------------------------------------------------------

    def buffer(self, event: bytes) -> bytes:
        """Buffer a frame until there is content. If the buffer is full, release it."""
        if self.started:
            return event
        self._buffered.append(event)
        self._buffered_size += len(event)
        if self._buffered_size < MAX_BUFFERED_BYTES:
            return b""
        self.started = True
        return self._release()

    def release_content(self, event: bytes) -> bytes:
        """Return a content event, after the frames buffered before it."""
        self.started = True
        self._keep_text(event)
        return self._release() + event if self._buffered else event

    def record_text(self, text: str) -> None:
        """Record text that the client receives in events made here."""
        self._sent_text = self.text() + text

    def _keep_text(self, events: bytes) -> bytes:
        self._unparsed.append(events)
        self._unparsed_size += len(events)
        if self._unparsed_size > MAX_UNPARSED_BYTES:
            self.text()
        return events

    def _release(self) -> bytes:
        buffered, self._buffered, self._buffered_size = b"".join(self._buffered), [], 0
        return buffered


def _no_check(name: str, arguments: object) -> str:  # noqa: ARG001  # the default of check_call
    return ""


def _is_complete(event: bytes) -> bool:
    """Return whether the last received event is complete. Only the last one can be truncated."""
    data = data_of(event)
    if not data.startswith((b"{", b"[{")):
        return True  # a comment, an event without data, or [DONE]
    try:
        text = data.decode("utf-8", "surrogatepass")
        _, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return False
    return end == len(text) or not text[end:].strip()


def data_of(event: bytes) -> bytes:
    """Return the data of an event. Several data lines are joined."""
    if event.startswith(b"data: "):
        end = event.find(b"\n")
        if event[end:].strip(b"\n") == b"":
            return event[6:end]
    lines = (line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(lines)


def name_of(event: bytes) -> bytes:
    """Return the name of an event, or an empty string."""
    if event.startswith(b"event: "):
        return event[7 : event.find(b"\n")]
    at = 0 if event.startswith(b"event:") else event.find(b"\nevent:") + 1
    if at == 0 and not event.startswith(b"event:"):
        return b""
    end = event.find(b"\n", at)
    return event[at + 6 : end].strip()
