"""Server-sent event stream of the journal: each event is encoded once for all listeners, and none is lost.

One thread polls the journal and appends new events to a ring buffer. A listener only holds a position in the ring.
A listener that falls behind the ring reads the missing events from the journal, so a slow client costs no memory.
A reconnecting client sends the id of the last event it received.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import Response

from rung.engine.signal_flag import SignalFlag
from rung.store.queries.live import acts_after, last_act, last_event, streamed_events
from rung.store.read_models.event_body import shown_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from starlette.types import Receive, Scope, Send

    from rung.store.backends.port import Readable
    from rung.store.queries.live import StreamedEvent

RING_SIZE: Final = 4_096
PAGE_SIZE: Final = 500
MAX_CACHED_CHUNKS: Final = 16  # joined chunks shared by listeners at the same position
POLL_SECONDS: Final = 0.1
KEEPALIVE_SECONDS: Final = 15.0  # a comment is sent after this long without an event
MAX_TEXT_CHARS: Final = 300
ADMIN_SUBJECTS: Final = ("token/", "notifications")  # of acts on what only administrators can read
OMITTED_FIELDS: Final = frozenset(
    {
        "v",
        "name",
        "at",
        "id",
        "messages",
        "params",
        "prompt",
        "recovery",
        "evidence",
        "rungs",
        "skipped",
        "used",
        "deadline",
    }
)  # duplicated beside the event, long, or not shown live; the incident route returns them


class StreamEntry(NamedTuple):
    """One event, encoded for sending."""

    position: int  # in the ring, counted from the start of the service
    seq: int
    incident: str
    session: str
    project: str
    name: str
    payload: bytes
    signal: bytes | None = None  # of an act: for listeners who may not read the audit trail


class StreamFilter(NamedTuple):
    """Filter of one listener; an empty field matches everything."""

    incident: str = ""
    session: str = ""
    project: str = ""
    name: str = ""
    is_admin: bool = False

    def payload(self, entry: StreamEntry) -> bytes:
        """Return what this listener gets of an entry. Everybody's page reloads after an act; who did what is audit."""
        if entry.signal is not None:
            return entry.payload if self.is_admin else entry.signal
        wanted = zip(self[:4], entry[2:6], strict=True)
        return entry.payload if all(not want or want == found for want, found in wanted) else b""


class EventBroadcaster:
    """Broadcasts a journal's events to any number of listeners."""

    def __init__(self, journal: Readable, *, ring: int = RING_SIZE, page: int = PAGE_SIZE) -> None:
        self._journal = journal
        self._ring_size = ring
        self._page_size = page
        self._ring: list[StreamEntry] = []
        self._end_position = 0
        self._seq = 0  # last event read by the thread
        self._last_seq = 0  # last event appended to the ring
        self._last_audit_seq = 0
        self._chunk_cache: dict[tuple[int, int, StreamFilter], bytes] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._closed = SignalFlag()
        self.listeners = 0

    @property
    def seq(self) -> int:
        """Return the sequence number of the last broadcast event."""
        return self._last_seq

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start polling the journal for events from now on."""
        self._loop = loop
        self._seq, self._last_audit_seq = last_event(self._journal), last_act(self._journal)
        self._last_seq = self._seq
        threading.Thread(target=self._read, name="rung-stream", daemon=True).start()

    def close(self) -> None:
        """Close all streams, since a server does not stop while one is open. Safe in a signal handler."""
        self._closed.set()
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: no listeners are left
                self._loop.call_soon_threadsafe(self._wake_listeners)

    # -- polling thread -------------------------------------------------------------------------------

    def _read(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            with suppress(Exception):  # store unavailable: the next poll tries again
                while entries := self._read_new():
                    assert self._loop is not None  # noqa: S101  # set by start
                    self._loop.call_soon_threadsafe(self._append, entries)

    def _read_new(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for row in streamed_events(self._journal, self._seq, self._page_size):
            found.append((row.seq, *_filter_fields(row), encode_event(row)))
            self._seq = row.seq
        for audit in acts_after(self._journal, self._last_audit_seq, self._page_size):
            self._last_audit_seq = audit.seq
            data = json.dumps({"at": audit.at, "who": audit.who, "action": audit.action, "subject": audit.subject})
            signal = b"" if audit.subject.startswith(ADMIN_SUBJECTS) else b"event: act\ndata: {}\n\n"
            found.append((0, "", "", "", "act", f"event: act\ndata: {data}\n\n".encode(), signal))
        return found

    # -- event loop -----------------------------------------------------------------------------------

    def _append(self, entries: list[tuple[Any, ...]]) -> None:
        for row in entries:
            self._ring.append(StreamEntry(self._end_position, *row))
            self._end_position += 1
            self._last_seq = max(self._last_seq, row[0])
        if len(self._ring) > self._ring_size:
            del self._ring[: len(self._ring) - self._ring_size]
        self._wake_listeners()

    def _wake_listeners(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def subscribe(self, since: int | None, stream_filter: StreamFilter) -> AsyncGenerator[bytes, None]:
        """Yield the chunks for one listener, starting after event `since`, or with the next event."""
        self.listeners += 1
        try:
            position, sent_seq = self._end_position, self._last_seq
            yield b"retry: 2000\nevent: hello\ndata: {}\n\n"
            if since is not None:
                async for chunk in self._catch_up(since, sent_seq, stream_filter):
                    yield chunk
            while not self._closed.is_set():
                changed = self._changed
                if position == self._end_position:
                    try:
                        # Not wait_for: in Python 3.11 it loses a disconnect that coincides with an event.
                        async with asyncio.timeout(KEEPALIVE_SECONDS):
                            await changed.wait()
                    except TimeoutError:
                        yield b": alive\n\n"
                    continue
                oldest = self._ring[0].position
                if position < oldest:  # the listener fell behind the ring: read the missing events from the journal
                    last, position = (
                        next((entry.seq for entry in self._ring if entry.seq), self._last_seq + 1) - 1,
                        oldest,
                    )
                    async for chunk in self._catch_up(sent_seq, last, stream_filter):
                        yield chunk
                    sent_seq = last
                    continue
                chunk, sent_seq, position = (
                    self._chunk_from(position, stream_filter),
                    max(sent_seq, self._last_seq),
                    self._end_position,
                )
                if chunk:
                    yield chunk
        finally:
            self.listeners -= 1

    def _chunk_from(self, position: int, stream_filter: StreamFilter) -> bytes:
        """Return the ring's entries from a position as one chunk, cached for listeners at the same position."""
        key = (position, self._end_position, stream_filter)
        if key not in self._chunk_cache:
            if len(self._chunk_cache) >= MAX_CACHED_CHUNKS:
                self._chunk_cache.clear()
            entries = self._ring[position - self._ring[0].position :]
            self._chunk_cache[key] = b"".join(map(stream_filter.payload, entries))
        return self._chunk_cache[key]

    async def _catch_up(self, since: int, last: int, stream_filter: StreamFilter) -> AsyncIterator[bytes]:
        while since < last:
            rows = await asyncio.to_thread(streamed_events, self._journal, since, self._page_size, last)
            if not rows:
                return
            since = rows[-1].seq
            entries = (StreamEntry(0, row.seq, *_filter_fields(row), encode_event(row)) for row in rows)
            chunk = b"".join(map(stream_filter.payload, entries))
            if chunk:
                yield chunk


def _filter_fields(row: StreamedEvent) -> tuple[str, str, str, str]:
    return row.incident, row.session, row.project, row.name


def encode_event(row: StreamedEvent) -> bytes:
    """Encode an event as a server-sent event, without its long fields."""
    seq, incident, n, at, name, body, project, session, status = row
    data = {
        "seq": seq, "incident": incident, "n": n, "at": at, "name": name, "project": project, "session": session,
        "status": status, "event": shorten(shown_event(body), whole=True),
    }  # fmt: skip
    return f"id: {seq}\nevent: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def shorten(value: Any, *, whole: bool = False) -> Any:
    """Truncate long texts and drop bulky fields; `whole`: the value is the event itself, so drop its name too."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else value[: MAX_TEXT_CHARS - 1] + "…"
    if isinstance(value, dict):
        return {
            key: shorten(item)
            for key, item in value.items()
            if key not in OMITTED_FIELDS or (key == "name" and not whole)
        }
    return [shorten(item) for item in value] if isinstance(value, list) else value


class EventStream(Response):
    """Streaming response on plain ASGI, which keeps the cost per listener low."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Send chunks until the stream ends or the client disconnects."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        disconnected.add_done_callback(_canceller(asyncio.current_task()))
        try:
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            if not disconnected.done():
                raise
        finally:
            disconnected.cancel()
            await self._chunks.aclose()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _canceller(task: asyncio.Task[Any] | None) -> Callable[[asyncio.Future[None]], None]:
    def cancel(disconnected: asyncio.Future[None]) -> None:
        if task is not None and not disconnected.cancelled():
            task.cancel()

    return cancel
