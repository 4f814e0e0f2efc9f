"""The event stream: every event once, to everybody, also to whoever was away or is slow."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.service.routes.stream import EventBroadcaster, StreamFilter, shorten
from rung.testing import HttpError, Script
from tests.service.conftest import SOON, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rung.store.journal.journal import Journal
    from tests.service.conftest import Running


def happen(journal: Journal, times: int, session: str = "s-1") -> None:
    """Recoveries of five events each."""
    for _ in range(times):
        rung.recover_sync(
            Script(HttpError(503, "busy"), "fine"),
            rung.Request(prompt="x" * 1_000, model="small"),
            policy=rung.policy("call", backoff={"base": 0}),
            journal=journal,
            session=rung.Session("small", session),
            breakers=rung.BreakerRegistry(),
            retry_budget=None,
        )
    assert journal.flush()


def kept(journal: Journal) -> list[int]:
    return [seq for (seq,) in journal.read("SELECT seq FROM event ORDER BY seq")]


def ids(text: bytes) -> list[int]:
    return [int(line[4:]) for line in text.splitlines() if line.startswith(b"id: ")]


async def heard(listening: AsyncIterator[bytes], last: int) -> bytes:
    """What comes until the event of this number."""
    text = b""
    async with asyncio.timeout(SOON):
        async for chunk in listening:
            text += chunk
            if last in ids(chunk):
                return text
    return text


@pytest.mark.parametrize("away", [False, True])
def test_everybody_hears_everything(journal: Journal, away: bool) -> None:
    """Fifty listeners; some begin when all is over, and say what they have seen."""

    async def listen() -> list[list[int]]:
        stream = EventBroadcaster(journal)
        stream.start(asyncio.get_running_loop())
        listening = [] if away else [stream.subscribe(0, StreamFilter()) for _ in range(50)]
        for one in listening:
            await anext(one)
        await asyncio.to_thread(happen, journal, 20)
        listening = listening or [stream.subscribe(0, StreamFilter()) for _ in range(50)]
        last = kept(journal)[-1]
        texts = await asyncio.gather(*(heard(one, last) for one in listening))
        stream.close()
        return [ids(text) for text in texts]

    for found in asyncio.run(listen()):
        assert found == kept(journal)


def test_slower_than_the_ring(journal: Journal) -> None:
    """A listener that the ring has left behind reads the rest from the journal: nothing twice, nothing lost."""

    async def listen() -> list[int]:
        stream = EventBroadcaster(journal, ring=7, page=3)
        stream.start(asyncio.get_running_loop())
        listening = stream.subscribe(None, StreamFilter())
        text = await anext(listening)
        for _ in range(4):
            await asyncio.to_thread(happen, journal, 5)
            await asyncio.sleep(0.3)
            text += await anext(listening)
        text += await heard(listening, kept(journal)[-1])
        stream.close()
        return ids(text)

    assert asyncio.run(listen()) == kept(journal)


def test_over_http(service: Running) -> None:
    """Only what was asked for, without bulk; from the last event that was seen on; acts are told, too."""
    happen(service.journal, 1, "mine")
    happen(service.journal, 1, "another")
    events: list[dict[str, Any]] = []
    with service.admin.stream("GET", "/api/events", params={"session": "mine", "since": 0}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        for line in answer.iter_lines():
            if line.startswith("data: {") and len(line) > 9:
                events.append(json.loads(line[6:]))
            if len(events) == 4:
                break
    assert {event["session"] for event in events} == {"mine"}
    assert [event["name"] for event in events] == ["opened", "attempt_failed", "decided", "attempt_succeeded"]
    assert "prompt" not in events[0]["event"]["request"]
    seen = {"last-event-id": str(events[1]["seq"])}
    with service.admin.stream("GET", "/api/events", params={"session": "mine"}, headers=seen) as answer:
        first = next(line for line in answer.iter_lines() if line.startswith("id: "))
    assert int(first[4:]) == events[2]["seq"]
    with service.admin.stream("GET", "/api/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        service.client(service.token("act")).post("/api/alerts/x/acknowledge")
        assert "event: act" in (next(lines) for _ in range(20))
    assert service.admin.get("/api/events", headers={"last-event-id": "x"}).status_code == 422
    eventually(lambda: service.context.stream.listeners == 0)


def test_brief() -> None:
    """Long texts are cut, bulk is left out."""
    event = {"name": "decided", "text": "x" * 1_000, "decision": {"name": "repeat"}, "list": [{"messages": [], "n": 1}]}
    cut = shorten(event, whole=True)
    assert (len(cut["text"]), cut["list"], cut["decision"], "name" in cut) == (
        300,
        [{"n": 1}],
        {"name": "repeat"},
        False,
    )
