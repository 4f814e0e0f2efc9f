"""How an answer ended: the names of compatible servers, bodies with a mark, and the model that the client asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.behind import ASK, WIRES, Behind
from tests.gateway.scripted import chat_stream, chunk, completion, message, scripted, stream, whole
from tests.wires.strict import PATHS, ErrorEvent, streamed

ENDINGS = ["eos", "eos_token", "end_turn", "stop_sequence", "STOP", "COMPLETE", "model_length", "some_new_name"]
CHAT: Any = {"model": "small", "messages": ASK}


def test_endings_of_compatible_servers() -> None:
    """An answer with another server's name for its end is a success in one request, streamed or not."""
    for reason in ENDINGS:
        with scripted(whole(completion("all of it", reason))) as front:
            got = front.gpt().chat.completions.with_raw_response.create(**CHAT)
            assert got.parse().choices[0].message.content == "all of it"
            assert (front.asked, got.headers.get("x-rung-outcome")) == (1, None), reason
        with scripted(chat_stream("all ", "of it", reason=reason)) as front:
            with front.gpt().chat.completions.stream(**CHAT) as chunks:
                assert chunks.get_final_completion().choices[0].message.content == "all of it"
            assert front.asked == 1, reason


def test_endings_of_servers_with_anthropics_api() -> None:
    """A message that ends as another server ends it is a success in one request."""
    for reason in ("stop", "eos", "STOP"):
        with scripted(whole(message({"type": "text", "text": "all of it"}, reason=reason))) as front:
            claude = front.claude().messages.with_raw_response
            got = claude.create(model="small", max_tokens=500, messages=ASK)
            assert (front.asked, got.headers.get("x-rung-outcome")) == (1, None), reason


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_server_that_gave_up_is_asked_again(reason: str) -> None:
    """A finish reason that tells of a break is no ending: the answer is continued."""
    broken = stream(chunk(content="word1 word2 word3"), chunk(reason), "[DONE]")
    with scripted(broken, chat_stream("word2 word3 word4 word5")) as front:
        with front.gpt().chat.completions.stream(**CHAT) as chunks:
            assert chunks.get_final_completion().choices[0].message.content == "word1 word2 word3 word4 word5"
        assert front.asked == 2


@pytest.mark.parametrize("wire", WIRES)
def test_a_byte_order_mark(wire: str) -> None:
    """A body that begins with a byte order mark is read, and sent on without it."""
    body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK}
    with Behind() as behind, behind.http() as client:
        got = client.post(PATHS[wire], content=b"\xef\xbb\xbf" + json.dumps(body).encode())
        assert got.status_code == 200
        assert behind.lab.calls[0].body.startswith(b"{")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_when_all_models_are_gone(wire: str, stream: bool) -> None:
    """When no model is left, the client is told of the one that it asked for."""
    with Behind([{"fault": "model_gone"}], policy={"models": ["small", "large"]}) as behind, behind.http() as client:
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK, "stream": stream}
        got = client.post(PATHS[wire], json=body)
        assert got.status_code == 404
        assert "small" in got.json()["error"]["message"]
        assert "large" not in got.text
        assert [call.model for call in behind.lab.calls] == ["small", "large"]


@pytest.mark.parametrize("wire", WIRES)
def test_when_all_models_are_gone_after_pings(wire: str) -> None:
    """Where the headers are out, the error event tells of the client's model, too."""
    rules = [{"fault": "overloaded", "model": "small", "retry_after": 1}, {"fault": "model_gone", "model": "large"}]
    policy = {"models": ["small", "large"], "retries": 1}
    with Behind(rules, policy=policy, header_hold_seconds=0.1) as behind, behind.http() as client:
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK, "stream": True}
        text = client.post(PATHS[wire], json=body).text
        with pytest.raises(ErrorEvent, match="verloaded"):
            streamed(wire, text)
        assert "large" not in text
