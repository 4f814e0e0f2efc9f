"""Server-sent events in every form that the standard allows: a healthy upstream is asked once, and its tools run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.behind import WIRES
from tests.security.upstream import scripted
from tests.security.upstream.scripted import TEXT, Reply
from tests.wires.strict import streamed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.security.upstream.scripted import Rig


def _data_alone(events: bytes) -> bytes:
    return b"".join(line + b"\n\n" for line in events.split(b"\n") if line.startswith(b"data"))


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "usual": lambda events: events,
    "no space": lambda events: events.replace(b"event: ", b"event:").replace(b"data: ", b"data:"),
    "data alone": _data_alone,
    "CR": lambda events: events.replace(b"\n", b"\r"),
    "CR LF": lambda events: events.replace(b"\n", b"\r\n"),
    "mixed": lambda events: events.replace(b"\n", b"\r", 3).replace(b"\n", b"\r\n", 4),
    "data first": lambda events: b"".join(
        b"\n".join(reversed(block.split(b"\n"))) + b"\n\n" for block in events.split(b"\n\n")[:-1]
    ),
    "comments, ids and a BOM": lambda events: (
        b"\xef\xbb\xbf: hello\n\n" + events.replace(b"data: ", b": x\nid: 1\nretry: 5\ndata: ")
    ),
    "no last blank line": lambda events: events.rstrip(b"\n"),
    "several data lines": lambda events: events.replace(b'data: {"', b'data: {\ndata: "'),
}
TOOL_USE = {"type": "tool_use", "id": "t_1", "name": "look", "input": {"at": "x"}}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "t_1",
    "name": "look",
    "arguments": '{"at":"x"}',
    "status": "completed",
}
CHAT_CALL = {"index": 0, "id": "t_1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_healthy_upstream_is_asked_once(rig: Rig, wire: str, form: str) -> None:
    """However a complete stream is written, it is one request, and the client gets one answer, as the wire is defined."""
    body = FORMS[form](scripted.written(scripted.answer(wire)))
    rig.upstream.use(Reply(body))
    got = streamed(wire, rig.stream(wire))
    assert (got.text, rig.asked) == (TEXT, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_call_comes_once(rig: Rig, wire: str, form: str) -> None:
    """However a stream is written, its tool call reaches the client once."""
    events = {
        "messages": scripted.messages(TOOL_USE, stop="tool_use"),
        "chat": scripted.chat({"role": "assistant", "tool_calls": [CHAT_CALL]}, stop="tool_calls"),
        "responses": scripted.responses(CALL),
    }[wire]
    rig.upstream.use(Reply(FORMS[form](scripted.written(events))))
    got = streamed(wire, rig.stream(wire))
    assert (len(got.calls), rig.asked) == (1, 1)
    assert "x" in got.calls[0]
