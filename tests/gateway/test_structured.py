"""Structured answers are never glued together; what was spliced is told in headers, or in a comment after them."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.behind import ASK, WIRES, Behind, ask
from tests.gateway.scripted import chat_stream, completion, message, scripted, whole
from tests.wires.strict import PATHS, ErrorEvent, streamed

FIRST, OTHER = '{"city": "Oslo", "people": 7', '{"city": "Bergen", "people": 2}'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}}
FORMATS: dict[str, dict[str, Any]] = {
    "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}},
    "messages": {"output_format": {"type": "json_schema", "schema": SCHEMA}},
}


class Place(BaseModel):
    city: str
    people: int


def test_a_cut_answer_that_repeats_itself_goes_on() -> None:
    """A structured stream that is cut is asked for again whole, and goes on where the client has it."""
    with scripted(chat_stream(FIRST[:12], cut=True), chat_stream(FIRST, "00000}")) as front:
        asked: Any = {"model": "small", "messages": ASK, "response_format": Place}
        with front.gpt().chat.completions.stream(**asked) as chunks:
            parsed: Any = chunks.get_final_completion().choices[0].message.parsed
        assert parsed == Place(city="Oslo", people=700_000)
        first, second = front.bodies()
        assert first == second


def test_a_cut_answer_that_comes_out_differently_is_an_error() -> None:
    """Where the whole answer comes out differently, the client gets an error, not two pieces of JSON."""
    with scripted(chat_stream(FIRST, cut=True), chat_stream(OTHER)) as front, front.http() as client:
        body = {"model": "small", "messages": ASK, "stream": True, **FORMATS["chat"]}
        text = client.post(PATHS["chat"], json=body).text
        with pytest.raises(ErrorEvent, match="structured"):
            streamed("chat", text)
        assert "Bergen" not in text
        assert front.asked == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_limit_ends_as_the_provider_ends_it(stream: bool) -> None:
    """A structured answer at its output limit raises the SDK's own error for that, as without the gateway."""
    cut = chat_stream(FIRST, reason="length") if stream else whole(completion(FIRST, "length"))
    with scripted(cut) as front:
        asked: Any = {"model": "small", "messages": ASK, "response_format": Place, "max_completion_tokens": 64_000}
        completions = front.gpt().chat.completions
        collected = completions.stream(**asked).__enter__().get_final_completion if stream else None
        with pytest.raises(openai.LengthFinishReasonError):
            collected() if collected else completions.parse(**asked)
        assert front.asked == 1


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_raised_limit_is_not_glued(wire: str) -> None:
    """An answer that is asked for again with a higher limit replaces the cut one."""
    answers = {
        "chat": (whole(completion(FIRST, "length")), whole(completion(OTHER))),
        "messages": (
            whole(message({"type": "text", "text": FIRST}, reason="max_tokens")),
            whole(message({"type": "text", "text": OTHER})),
        ),
    }
    with scripted(*answers[wire]) as front, front.http() as client:
        got = client.post(
            PATHS[wire], json={"model": "small", "messages": ASK, "max_tokens": 1_000, **FORMATS[wire]}
        ).json()
        said = got["choices"][0]["message"]["content"] if wire == "chat" else got["content"][0]["text"]
        assert json.loads(said) == json.loads(OTHER)
        assert front.asked == 2


def test_a_preface_does_not_get_into_the_text() -> None:
    """A continuation that introduces itself is joined without the introduction, streamed or not."""
    said = "The sea rises twice a day because the moon"
    more = "Sure, continuing from where I left off:\n\nbecause the moon pulls it."
    asked: Any = {"model": "small", "messages": ASK, "max_completion_tokens": 64_000}
    with (
        scripted(chat_stream(said, cut=True), chat_stream(more)) as front,
        front.gpt().chat.completions.stream(**asked) as chunks,
    ):
        assert chunks.get_final_completion().choices[0].message.content == said + " pulls it."
    with scripted(whole(completion(said, "length")), whole(completion(more))) as front:
        got = front.gpt().chat.completions.with_raw_response.create(**asked)
        assert got.parse().choices[0].message.content == said + " pulls it."
        assert got.headers["x-rung-spliced"] == "1"


@pytest.mark.parametrize("wire", WIRES)
def test_a_splice_is_told_after_the_headers(wire: str) -> None:
    """Where the headers are out before a break, a comment in the stream tells of it, and SDKs read past it."""
    with Behind([{"fault": "cut", "after": 7, "request": 1}]) as behind, behind.http() as client:
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK, "stream": True}
        text = client.post(PATHS[wire], json=body).text
        comment = next(line for line in text.splitlines() if line.startswith(": x-rung-"))
        assert "x-rung-attempts: 2" in comment
        assert "x-rung-spliced: 1" in comment
        assert "x-rung-failure: stream_interrupted" in comment
        behind.lab.use([{"fault": "cut", "after": 7, "request": 1}])
        assert ask(behind, wire, stream=True).text
