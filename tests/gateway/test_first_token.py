"""The first content of a stream: how long it may take while another model could answer."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.recovery import silent_route
from rung.gateway.first_token import MAX_ROUTES, FirstTokenLimits
from rung.gateway.settings import TimeoutSettings
from tests.gateway.behind import ASK, TIMEOUTS, WHOLE, Behind, chat
from tests.gateway.scripted import chat_stream, chunk
from tests.security.upstream.raw_upstream import Front, RawUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUTE = ("openai", "small")
DEFAULTS = TimeoutSettings()


def request(body: bytes = b'{"messages": []}', wire: str = "chat") -> Any:
    return SimpleNamespace(body=body, wire=SimpleNamespace(name=wire))


def seconds(limits: FirstTokenLimits, route: tuple[str, str] = ROUTE, body: bytes = b"{}", wire: str = "chat") -> float:
    return round(limits.seconds(route, request(body, wire), DEFAULTS))


@pytest.mark.parametrize(
    ("model", "body", "wire"),
    [
        ("gpt-5.1", b"{}", "chat"),
        ("openai/o3-mini", b"{}", "chat"),
        ("deepseek-r1", b"{}", "chat"),
        ("small", b'{"reasoning_effort": "high"}', "chat"),
        ("claude-opus-4-5", b'{"thinking": {"type": "enabled"}}', "messages"),
        ("small", b"{}", "responses"),
    ],
)
def test_a_request_that_may_reason_has_its_time(model: str, body: bytes, wire: str) -> None:
    """A model that may think before it answers is not cut short because another one could answer."""
    assert seconds(FirstTokenLimits(), ("openai", model), body, wire) == DEFAULTS.first_token


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5", "llama-3.1", "mistral-large"])
def test_another_model_is_asked_soon(model: str) -> None:
    """A model that does not reason has a few seconds, and more for a long prompt."""
    assert seconds(FirstTokenLimits(), ("openai", model)) == DEFAULTS.first_token_fallback
    assert seconds(FirstTokenLimits(), ("openai", model), b" " * 400_000) == DEFAULTS.first_token_fallback + 20


def test_a_slow_model_gets_more_time() -> None:
    """A limit doubles after each timeout and follows the slowest answer, up to `first_token`."""
    limits = FirstTokenLimits()
    limits.note_timeout(ROUTE, 12.0)
    assert seconds(limits) == 24
    limits.note_content(ROUTE, 15.0)
    assert seconds(limits) == 45
    limits.note_content(ROUTE, 1.0)
    assert seconds(limits) == 45
    limits.note_timeout(ROUTE, 100.0)
    assert seconds(limits) == DEFAULTS.first_token
    assert seconds(limits, ("openai", "other")) == 10


def test_limits_are_bounded() -> None:
    """The oldest of too many routes is forgotten."""
    limits = FirstTokenLimits()
    for number in range(MAX_ROUTES + 1):
        limits.note_timeout(("openai", str(number)), 30.0)
    assert seconds(limits, ("openai", "0")) == 10
    assert seconds(limits, ("openai", "1")) == 60


def test_the_next_model_answers_before_a_slow_one() -> None:
    """A stream without content is handed over after the short limit; the last model has the long one."""
    rule = {"fault": "stall", "after": 0, "seconds": 3_600.0, "model": "small"}
    timeouts = {**TIMEOUTS, "first_token_fallback": 1.0}
    with Behind([rule], policy={"models": ["small", "large"]}, timeouts=timeouts) as behind:
        assert chat(behind.gpt(), stream=True, messages=ASK).text == WHOLE
        assert [call.model for call in behind.lab.calls] == ["small", "large"]


def test_a_model_that_was_cut_short_has_more_time_next() -> None:
    """A model that is slow by nature answers the next request itself."""
    rule = {"fault": "stall", "after": 0, "seconds": 2.2, "model": "small"}
    timeouts = {**TIMEOUTS, "first_token_fallback": 2.0}
    with Behind([rule], policy={"models": ["small", "large"], "sticky": "call"}, timeouts=timeouts) as behind:
        for _ in range(2):
            assert chat(behind.gpt(), stream=True).text == WHOLE
        assert [call.model for call in behind.lab.calls] == ["small", "large", "small"]


def test_a_long_tool_call_is_not_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that breaks in a tool call, which is held back until it is complete, is asked for again on its model."""
    monkeypatch.setattr(silent_route, "SILENT_SECONDS", 1.5)
    asked = []

    def answer(request: bytes) -> Iterator[bytes]:
        asked.append(json.loads(request.partition(b"\r\n\r\n")[2])["model"])
        if len(asked) > 1:
            yield chat_stream("done")
            return
        yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        for number in range(10):
            part = {"index": 0, "function": {"arguments": f'{{"at": "{"x" * number}'}}
            first = {"id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}
            yield f"data: {json.dumps(chunk(tool_calls=[part | first if not number else part]))}\n\n".encode()
            time.sleep(0.2)

    with (
        RawUpstream(answer, close=True) as upstream,
        Front(openai=upstream.url, policy={"models": ["small", "large"]}) as front,
    ):
        assert chat(front.gpt(), stream=True).text == "done"
        assert asked == ["small", "small"]
