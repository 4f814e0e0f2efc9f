"""The terminal event ends a response, whatever the upstream does with its connection afterwards."""

from __future__ import annotations

import json
from itertools import product

import pytest

from rung.gateway.http import answer_reading
from tests.gateway.behind import TIMEOUTS, WIRES
from tests.security.upstream.scripted import TEXT, Reply, Rig, answer, written
from tests.wires.strict import streamed


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_that_stays_open(rig: Rig, wire: str) -> None:
    """A complete stream on a connection that the upstream keeps open is one request, and the client gets its end."""
    rig.upstream.use(Reply(written(answer(wire)), "open"))
    assert streamed(wire, rig.stream(wire)).text == TEXT
    assert rig.asked == 1


@pytest.mark.parametrize("ending", ["open", "cut", "complete"])
@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_stop_reason_without_the_terminal_event(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, wire: str, ending: str
) -> None:
    """After its stop reason a response is complete: it is not asked for again, and the client gets the terminal event."""
    monkeypatch.setattr(answer_reading, "END_SECONDS", 0.05)
    rig.upstream.use(Reply(written(answer(wire)[:-1]), ending))
    assert streamed(wire, rig.stream(wire)).text == TEXT
    assert rig.asked == 1


@pytest.mark.parametrize("wire", WIRES)
def test_what_follows_the_terminal_event(rig: Rig, wire: str) -> None:
    """Events after the terminal one, a second answer or an error, are no part of the response."""
    error = b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "no"}}\n\n'
    rig.upstream.use(Reply(written(answer(wire)) + error + written(answer(wire))))
    assert streamed(wire, rig.stream(wire)).text == TEXT
    assert rig.asked == 1


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_is_used_again(rig: Rig, wire: str) -> None:
    """A stream whose transfer ends leaves its connection to the next request."""
    rig.upstream.use(Reply(written(answer(wire))))
    for _ in range(3):
        rig.stream(wire)
    assert (rig.asked, rig.upstream.connections <= 1) == (3, True)


MALFORMED = ['{"odd": {"type": "content_block_del', '{"odd": \udcff}', '{"odd":' * 5_000]
FORGED = '{"type": "odd\\n\\ndata: odd"}'  # its name would be two events


@pytest.mark.parametrize(
    ("wire", "bad"),
    [*product(WIRES, MALFORMED), ("messages", FORGED), ("responses", FORGED)],
    ids=lambda value: value[:9],
)
def test_a_malformed_event_amid_good_ones(rig: Rig, wire: str, bad: str) -> None:
    """An event that is not JSON, in the middle of one read, never reaches the client; the answer is completed."""
    events = written(answer(wire)).split(b"\n\n")
    at = next(at for at, event in enumerate(events) if b"three" in event)
    bad_event = b"data: " + bad.encode("utf-8", "surrogateescape")
    broken = b"\n\n".join([*events[:at], bad_event, *events[at:]])
    rig.upstream.use(Reply(broken), Reply(written(answer(wire))))
    text = rig.stream(wire)
    assert streamed(wire, text).text == TEXT
    assert "odd" not in text
    assert rig.asked == 2
    assert TEXT.partition(" two")[0] in json.dumps(rig.upstream.requests[1])


def test_a_short_idle_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle timeout that is shorter than the wait for the terminal event does not fail a complete response."""
    monkeypatch.setattr(answer_reading, "END_SECONDS", 0.6)
    with Rig(Reply(written(answer("chat")[:-1]), "open"), timeouts={**TIMEOUTS, "idle": 0.3}) as rig:
        assert streamed("chat", rig.stream("chat")).text == TEXT
        assert rig.asked == 1


@pytest.mark.parametrize("kind", [b"Text/Event-Stream; charset=utf-8", b""])
def test_other_content_types(rig: Rig, kind: bytes) -> None:
    """A stream with its content type in capitals, or without one, is a stream."""
    rig.upstream.use(Reply(written(answer("messages")), kind=kind))
    assert streamed("messages", rig.stream("messages")).text == TEXT
    assert rig.asked == 1
