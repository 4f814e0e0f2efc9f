"""Reader of server-sent events, as the HTML standard defines them: any line end, fields with or without a space."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024  # of one event
KEEP_ALIVE: Final = b": rung\n\n"  # a comment, which clients ignore
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event. A comment has no data, and its raw form only."""

    name: bytes  # empty if the event has none
    data: bytes
    raw: bytes  # in its usual form: line feeds, one space after a field's name, a blank line at the end


class EventReader:
    """Incremental reader: the events are the same however the bytes are split.

    `reads_json`: JSON in the place of an event is its data. Google's servers send errors in this way.
    """

    def __init__(self, *, reads_json: bool = False) -> None:
        self._parse = _parse_event_or_json if reads_json else parse_event
        self._pending: list[bytes] = []  # the beginning of an event
        self._pending_size = 0
        self._is_after_cr = False
        self._is_at_start = True

    @property
    def oversized(self) -> bool:
        """Whether the beginning of an event exceeds the size limit."""
        return self._pending_size > MAX_EVENT_BYTES

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that these bytes complete."""
        if chunk and (self._is_after_cr or b"\r" in chunk):
            chunk = self._with_line_feeds(chunk)
        if self._pending:
            joins = self._pending[-1].endswith(b"\n") and chunk.startswith(b"\n")
            if not joins and b"\n\n" not in chunk:  # do not join the parts of a long event again and again
                self._keep(chunk)
                return []
            chunk = b"".join((*self._pending, chunk))
        blocks, blank_line, rest = chunk.rpartition(b"\n\n")
        self._pending, self._pending_size = [], 0
        self._keep(rest)
        if not blank_line:
            return []
        if self._is_at_start:
            blocks, self._is_at_start = blocks.removeprefix(_BYTE_ORDER_MARK), False
        parse = self._parse
        return [event for block in blocks.split(b"\n\n") if (event := parse(block)) is not None]

    def _keep(self, data: bytes) -> None:
        if data:
            self._pending.append(data)
            self._pending_size += len(data)

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        """Return the bytes with every line end as a line feed. A CR LF may be split between two chunks."""
        if self._is_after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._is_after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def parse_event(block: bytes) -> ServerSentEvent | None:
    """Parse the lines of one event. Return None if it has neither data nor a comment: such an event is not dispatched."""
    start, found, data = block.partition(b"data: ")
    if found and b"\n" not in data:  # the usual forms
        if not start:
            return ServerSentEvent(b"", data, block + b"\n\n")
        if start.startswith(b"event: ") and start.find(b"\n") == len(start) - 1:
            return ServerSentEvent(start[7:-1], data, block + b"\n\n")
    name, lines, comments = b"", [], []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
        elif line and not field:
            comments.append(line)
    if lines:
        return ServerSentEvent(name, b"\n".join(lines), build_event(name, lines))
    return ServerSentEvent(b"", b"", b"\n".join(comments) + b"\n\n") if comments else None


def _parse_event_or_json(block: bytes) -> ServerSentEvent | None:
    event = parse_event(block)
    if event is None and block.lstrip()[:1] in (b"{", b"["):
        return ServerSentEvent(b"", block.strip(), block + b"\n\n")
    return event


def build_event(name: bytes, lines: list[bytes]) -> bytes:
    """Return an event in its usual form."""
    return (b"event: " + name + b"\n" if name else b"") + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def data_of(raw: bytes) -> str:
    """Return the data of an event in its usual form."""
    event = parse_event(raw.removesuffix(b"\n\n"))
    return event.data.decode("utf-8", "replace") if event is not None else ""
