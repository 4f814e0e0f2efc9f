"""An answer as it passes by in events: what the client has of it, what is held back, how it goes on elsewhere.

A fold over the bytes of a stream. Nothing is parsed as long as nothing has to change: an event is known by
its first bytes, and passes as it came. Held back are the frames before the first content (an early failure
stays invisible), a tool call until it is whole (half of one can be neither used nor taken back), and the end
(until it is known to be a good one). Each wire has its own kind of this.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.overlap import OverlapFilter
from rung.wires.wire_json import whole_number

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

HELD_LIMIT: Final = 512 * 1024  # bytes held back before content: then it is let go
EVENT_LIMIT: Final = 32 * 1024 * 1024  # bytes of one event: what is larger is no event
KEPT_LIMIT: Final = 256 * 1024  # bytes whose text has not been read yet

CHARACTERS_PER_TOKEN: Final = 4
_SILENT: Final = Evidence(text="the answer says nothing", finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)

# What json.loads is without its wrappings: it is called for every piece that comes.
_scan: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # it has it, undocumented

# What an event is to whoever lets it pass.
FRAME, TEXT, TOOL, END, PING = range(5)


class StreamSplicer:
    """What all wires have in common: cutting into events, holding, letting go."""

    good_stops: frozenset[str]  # reasons to stop that end an answer well
    output_count: str  # key of the output tokens in a usage

    def __init__(self, *, buffer_tool_calls: bool = True) -> None:
        self.buffer_tool_calls = buffer_tool_calls
        self.resumed = 0  # attempts before this one that gave the client something
        self.started = False  # the client has content
        self.called: list[tuple[str, object]] = []  # complete tool calls the client has, and with what
        self.stop = ""  # why the model stopped, as it says
        self.ended = False  # the stream said that it is over
        self.error: tuple[str, str] | None = None  # the event that said it failed: its name and data
        self.truncated = False  # it broke off inside an event
        self.bad_call = ""  # what is wrong with a tool call that was written
        self.check: Callable[[str, object], str] = _no_check  # of a whole call: what is wrong with it
        self.single_choice = True  # one answer, not several beside one another
        self.had_nontext = False  # it ends with something that is no text
        self.passthrough = False  # what comes is text of a block that the client has open
        self.usage: dict[str, Any] = {}
        self._said = ""
        self._kept: list[bytes] = []
        self._kept_size = 0
        self._tail = b""
        self._held: list[bytes] = []
        self._held_size = 0
        self._tool: list[bytes] = []
        self._ending: list[bytes] = []
        self._counted = 0  # output tokens of former attempts
        self.overlap = OverlapFilter("")

    @property
    def calls(self) -> int:
        """How many complete tool calls the client has."""
        return len(self.called)

    # -- what whoever carries the bytes calls ------------------------------------------------------------

    def begin(self) -> bytes:
        """Another attempt begins; what the client must be told about the end of the last one."""
        closing = b""
        if self.started:
            told = (
                whole_number(self.usage.get(self.output_count)) if self.stop else 0
            )  # a broken attempt has not said it
            self._counted = told or max(self._counted, len(self.text()) // CHARACTERS_PER_TOKEN)
            self.resumed += 1
            closing = self.close_open()
            self.overlap = OverlapFilter(self.text())
        self.stop, self.ended, self.error, self.bad_call, self.passthrough = "", False, None, "", False
        self._tail, self.truncated = b"", False
        self._held, self._held_size, self._tool, self._ending = [], 0, [], []
        return closing

    def take(self, chunk: bytes) -> bytes:
        """The bytes the client gets now that these have come."""
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
        if not _is_whole(whole[last:]):
            self.truncated = True
            whole = whole[:last]
            if not whole:
                return b""
        return self._passed(whole)

    def _passed(self, events: bytes) -> bytes:
        """What the client gets of whole events: runs of text as they are, the rest one by one."""
        out = []
        at, end = 0, len(events)
        while at < end:
            if self.passthrough and not self.resumed:
                other = self.other(events, at)
                before = -1 if other is None else events.rfind(b"\n\n", at, other.start())
                until = end if other is None else before + 2
                if other is None or before >= 0:
                    out.append(self._keep(events[at:until]))
                    at = until
                    continue
            found = events.find(b"\n\n", at)
            until = end if found < 0 else found + 2  # of three line ends the last is left over
            event = events[at:until]
            at = until
            if len(event) > 2:  # noqa: PLR2004  # more than an empty line
                out.append(self.event(event))
        return out[0] if len(out) == 1 else b"".join(out)

    @property
    def oversized(self) -> bool:
        """Is what has come no event at all?"""
        return len(self._tail) > EVENT_LIMIT

    def text(self) -> str:
        """What the client has been told so far, in words."""
        if self._kept:
            self._said += self.words(b"".join(self._kept))
            self._kept, self._kept_size = [], 0
        return self._said

    def finish(self) -> bytes:
        """The end as the client gets it."""
        return self._let_go() + b"".join(self._ending)

    def interrupted(self) -> bool:
        """Is the stream over without having said so?"""
        return not self.ended

    # -- what each wire knows ----------------------------------------------------------------------------

    def event(self, event: bytes) -> bytes:
        """What the client gets of one event."""
        raise NotImplementedError

    def other(self, events: bytes, start: int) -> re.Match[bytes] | None:
        """Where, at a glance, something comes that is not further text."""
        raise NotImplementedError

    def words(self, events: bytes) -> str:
        """The text in these events."""
        raise NotImplementedError

    def close_open(self) -> bytes:
        """Close what the client has open, so that another attempt can go on."""
        raise NotImplementedError

    def found(self) -> Evidence | None:
        """What is wrong with an answer that has ended; None if it is good."""
        if self.bad_call:
            return Evidence(text=self.bad_call, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
        if self.stop in self.good_stops:
            return None if self.started or self.had_nontext else _SILENT
        return Evidence(text=f"the answer ended with {self.stop or 'nothing'}", code=self.stop, phase=Phase.RESULT)

    def failed(self, status: int, message: str) -> bytes:
        """An error in the midst of a stream, after which nothing comes."""
        raise NotImplementedError

    def settle(self) -> bytes:
        """End an answer whose tool calls are complete, so that they can be run."""
        raise NotImplementedError

    # -- holding and letting go --------------------------------------------------------------------------

    def buffer(self, event: bytes) -> bytes:
        """Keep a frame until there is content; too many are let go."""
        if self.started:
            return event
        self._held.append(event)
        self._held_size += len(event)
        if self._held_size < HELD_LIMIT:
            return b""
        self.started = True
        return self._let_go()

    def content(self, event: bytes) -> bytes:
        """Let content go, and all that was held before it."""
        self.started = True
        self._keep(event)
        return self._let_go() + event if self._held else event

    def say(self, text: str) -> None:
        """The client is told this, in events of our own making."""
        self._said = self.text() + text

    def _keep(self, events: bytes) -> bytes:
        self._kept.append(events)
        self._kept_size += len(events)
        if self._kept_size > KEPT_LIMIT:
            self.text()
        return events

    def _let_go(self) -> bytes:
        held, self._held, self._held_size = b"".join(self._held), [], 0
        return held


def _no_check(name: str, arguments: object) -> str:  # noqa: ARG001  # takes whatever there is
    return ""


def _is_whole(event: bytes) -> bool:
    """Is the last event that has come all there? Where JSON breaks off it is the last one that does."""
    data = data_of(event)
    if not data.startswith((b"{", b"[{")):
        return True  # a comment, a name alone, [DONE]
    try:
        text = data.decode("utf-8", "surrogatepass")
        _, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return False
    return end == len(text) or not text[end:].strip()


def data_of(event: bytes) -> bytes:
    """The data of an event; several lines of it are one text."""
    if event.startswith(b"data: "):
        end = event.find(b"\n")
        if event[end:].strip(b"\n") == b"":
            return event[6:end]
    lines = (line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(lines)


def name_of(event: bytes) -> bytes:
    """The name of an event; empty where it has none."""
    if event.startswith(b"event: "):
        return event[7 : event.find(b"\n")]
    at = 0 if event.startswith(b"event:") else event.find(b"\nevent:") + 1
    if at == 0 and not event.startswith(b"event:"):
        return b""
    end = event.find(b"\n", at)
    return event[at + 6 : end].strip()
