"""The event stream: the journal's events as they come, each encoded once for all who listen, none lost.

One thread reads what is new in the journal into a ring. Each listener has only a place in it: one that falls
behind the ring reads the rest from the journal itself, so nobody's slowness costs memory, and a listener that
comes back says the last event it has seen.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import Response

from rung.store.queries.live import acts_after, last_act, last_event, streamed_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from starlette.types import Receive, Scope, Send

    from rung.store.backends.port import Readable
    from rung.store.queries.live import StreamedEvent

RING_SIZE: Final = 4_096
PAGE_SIZE: Final = 500
MAX_CACHED_CHUNKS: Final = 16  # chunks that are kept for the next listener at the same place
POLL_SECONDS: Final = 0.1  # between looks at the journal
KEEPALIVE_SECONDS: Final = 15.0  # seconds after which a listener hears at least that we are there
MAX_TEXT_CHARS: Final = 300  # characters of a text in an event
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
)  # said already, long, or of no use to whoever only looks on: the incident itself has it all


class StreamEntry(NamedTuple):
    """One event, ready to send."""

    position: int  # in the ring, from the beginning of the service
    seq: int
    incident: str
    session: str
    project: str
    name: str
    payload: bytes


class StreamFilter(NamedTuple):
    """What a listener wants to hear; empty: all of it."""

    incident: str = ""
    session: str = ""
    project: str = ""
    name: str = ""

    def matches(self, entry: StreamEntry) -> bool:
        """Is this one for them?"""
        return all(not wanted or wanted == getattr(entry, field) for field, wanted in self._asdict().items())


class EventBroadcaster:
    """The events of a journal, for any number of listeners."""

    def __init__(self, journal: Readable, *, ring: int = RING_SIZE, page: int = PAGE_SIZE) -> None:
        self._journal = journal
        self._size = ring
        self._page = page
        self._ring: list[StreamEntry] = []
        self._places = 0
        self._seq = 0  # the last event the thread has read
        self._taken = 0  # the last event the ring was given
        self._traced = 0
        self._joined: dict[tuple[int, int, StreamFilter], bytes] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._ended = threading.Event()
        self.listeners = 0

    @property
    def seq(self) -> int:
        """The last event there is."""
        return self._taken

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read, from now on."""
        self._loop = loop
        self._seq, self._traced = last_event(self._journal), last_act(self._journal)
        self._taken = self._seq
        threading.Thread(target=self._read, name="rung-stream", daemon=True).start()

    def close(self) -> None:
        """End every stream: a server with one open would not stop. May be called from a signal handler."""
        self._ended.set()
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody left
                self._loop.call_soon_threadsafe(self._tell)

    # -- in the thread --------------------------------------------------------------------------------

    def _read(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with suppress(Exception):  # a store in trouble is looked at again
                while fresh := self._fresh():
                    assert self._loop is not None  # noqa: S101  # started
                    self._loop.call_soon_threadsafe(self._take, fresh)

    def _fresh(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for row in streamed_events(self._journal, self._seq, self._page):
            found.append((row.seq, *_named(row), encode_event(row)))
            self._seq = row.seq
        for act in acts_after(self._journal, self._traced, self._page):
            self._traced = act.seq
            data = json.dumps({"at": act.at, "who": act.who, "action": act.action, "subject": act.subject})
            found.append((0, "", "", "", "act", f"event: act\ndata: {data}\n\n".encode()))
        return found

    # -- in the loop ----------------------------------------------------------------------------------

    def _take(self, fresh: list[tuple[Any, ...]]) -> None:
        for row in fresh:
            self._ring.append(StreamEntry(self._places, *row))
            self._places += 1
            self._taken = max(self._taken, row[0])
        if len(self._ring) > self._size:
            del self._ring[: len(self._ring) - self._size]
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def subscribe(self, since: int | None, only: StreamFilter) -> AsyncGenerator[bytes, None]:
        """What a listener is sent, from the event after `since` on, or from now on."""
        self.listeners += 1
        try:
            place, seen = self._places, self._taken
            yield b"retry: 2000\nevent: hello\ndata: {}\n\n"
            if since is not None:
                async for chunk in self._catch_up(since, seen, only):
                    yield chunk
            while not self._ended.is_set():
                news = self._news
                if place == self._places:
                    try:
                        await asyncio.wait_for(news.wait(), KEEPALIVE_SECONDS)
                    except TimeoutError:
                        yield b": alive\n\n"
                    continue
                oldest = self._ring[0].position
                if place < oldest:  # too slow for the ring: the journal has it all
                    upto, place = next((entry.seq for entry in self._ring if entry.seq), self._taken + 1) - 1, oldest
                    async for chunk in self._catch_up(seen, upto, only):
                        yield chunk
                    seen = upto
                    continue
                chunk, seen, place = self._since(place, only), max(seen, self._taken), self._places
                if chunk:
                    yield chunk
        finally:
            self.listeners -= 1

    def _since(self, place: int, only: StreamFilter) -> bytes:
        """What the ring has from a place on; put together once for all who are at that place."""
        key = (place, self._places, only)
        if key not in self._joined:
            if len(self._joined) >= MAX_CACHED_CHUNKS:
                self._joined.clear()
            fresh = self._ring[place - self._ring[0].position :]
            self._joined[key] = b"".join(entry.payload for entry in fresh if entry.name == "act" or only.matches(entry))
        return self._joined[key]

    async def _catch_up(self, since: int, upto: int, only: StreamFilter) -> AsyncIterator[bytes]:
        while since < upto:
            rows = await asyncio.to_thread(streamed_events, self._journal, since, self._page, upto)
            if not rows:
                return
            since = rows[-1].seq
            entries = (StreamEntry(0, row.seq, *_named(row), encode_event(row)) for row in rows)
            chunk = b"".join(entry.payload for entry in entries if only.matches(entry))
            if chunk:
                yield chunk


def _named(row: StreamedEvent) -> tuple[str, str, str, str]:
    return row.incident, row.session, row.project, row.name


def encode_event(row: StreamedEvent) -> bytes:
    """An event as it is sent: all there is, but for what is long."""
    seq, incident, n, at, name, body, project, session, status = row
    data = {
        "seq": seq, "incident": incident, "n": n, "at": at, "name": name, "project": project, "session": session,
        "status": status, "event": shorten(json.loads(body), whole=True),
    }  # fmt: skip
    return f"id: {seq}\nevent: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def shorten(value: Any, *, whole: bool = False) -> Any:
    """The value with long texts cut and bulk left out; of the whole event also what is said beside it."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else value[: MAX_TEXT_CHARS - 1] + "…"
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in value.items() if key not in OMITTED_FIELDS or (key == "name" and not whole)}
    return [shorten(item) for item in value] if isinstance(value, list) else value


class EventStream(Response):
    """Sent as it comes, by the plainest way there is: hundreds may listen."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Send until it ends or nobody is there any more."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(_cancel(asyncio.current_task()))
        try:
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()
            await self._chunks.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _cancel(task: asyncio.Task[Any] | None) -> Callable[[asyncio.Future[None]], None]:
    def cancel(gone: asyncio.Future[None]) -> None:
        if task is not None and not gone.cancelled():
            task.cancel()

    return cancel
