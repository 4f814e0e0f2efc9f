"""The openai SDK sends what the reader reads, and parses what the writers write."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, get_args

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam
from pydantic import BaseModel

from rung.wires.translation.answer import (
    Answer,
    AnswerEvent,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    RefusalDelta,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
    Usage,
)
from rung.wires.translation.chat import CHAT_TRANSLATOR
from rung.wires.translation.conversation import Conversation, Family, RefusalPart, TextPart, ToolCallPart

if TYPE_CHECKING:
    from collections.abc import Iterator

USER: list[Any] = [{"role": "user", "content": "hi"}]
TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}


class Loopback:
    """An upstream on loopback that keeps the last request and answers with given pieces."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = {}
        self.pieces: list[bytes] = []
        self.kind = "application/json"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", outer.kind)
                self.end_headers()
                for piece in outer.pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{self.server.server_port}",
            api_key="none",
            max_retries=0,
            _strict_response_validation=True,
        )

    def answer(self, body: dict[str, Any]) -> None:
        self.kind, self.pieces = "application/json", [json.dumps(body).encode()]

    def stream(self, pieces: list[bytes]) -> None:
        self.kind, self.pieces = "text/event-stream", pieces


@pytest.fixture(scope="module")
def upstream() -> Iterator[Loopback]:
    loopback = Loopback()
    yield loopback
    loopback.client.close()
    loopback.server.shutdown()
    loopback.server.server_close()


def written(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    return CHAT_TRANSLATOR.write_answer(answer, CHAT_TRANSLATOR.read_request(request)).body


def an_answer(stop: Stop, *parts: Any) -> Answer:
    return Answer(
        family=Family.ANTHROPIC,
        id="msg_1",
        model="claude",
        parts=parts,
        stop=stop,
        usage=Usage(input=3, output=4, cache_read=5),
    )


def test_every_message_of_the_sdk_is_read_and_written(upstream: Loopback) -> None:
    """What the SDK sends for every role and every kind of content is written back unchanged."""
    messages: list[Any] = [
        {"role": "developer", "content": "d", "name": "n"},
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "u", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "2", "type": "custom", "custom": {"name": "g", "input": "i"}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "t"}, {"type": "refusal", "refusal": "r"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}, "audio": {"id": "a"}},
        {"role": "function", "name": "f", "content": None},
    ]
    assert len({message["role"] for message in messages}) == len(get_args(ChatCompletionMessageParam))
    assert len(messages[2]["content"]) == len(get_args(ChatCompletionContentPartParam))
    upstream.answer(written(an_answer(Stop.END, TextPart(text="a")), {}))
    upstream.client.chat.completions.create(
        model="gpt-4o",
        messages=messages,
        tools=[TOOL, {"type": "custom", "custom": {"name": "g"}}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        stop="x",
        max_tokens=5,
        response_format={"type": "json_object"},
        metadata={"a": "b"},
    )
    conversation = CHAT_TRANSLATOR.read_request(upstream.body)
    assert len(conversation.turns) == len(messages) - 2
    assert CHAT_TRANSLATOR.write_request(conversation).body == upstream.body


def test_the_sdk_parses_a_whole_answer(upstream: Loopback) -> None:
    """The SDK validates an answer of another family strictly, with its text, calls and usage."""
    call = ToolCallPart(id="toolu_1", name="f", arguments='{"a": 1}')
    upstream.answer(written(an_answer(Stop.TOOL_CALLS, TextPart(text="a"), call), {}))
    found = upstream.client.chat.completions.create(model="m", messages=USER)
    [choice] = found.choices
    assert (choice.message.content, choice.finish_reason) == ("a", "tool_calls")
    [parsed] = choice.message.tool_calls or []
    assert parsed.type == "function"
    assert (parsed.id, parsed.function.arguments) == ("toolu_1", '{"a": 1}')
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (8, 12)
    upstream.answer(written(an_answer(Stop.REFUSAL, RefusalPart(text="no")), {}))
    [choice] = upstream.client.chat.completions.create(model="m", messages=USER).choices
    assert (choice.message.content, choice.message.refusal) == (None, "no")


class Shape(BaseModel):
    a: int


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in [*pieces, data] if piece]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), max_size=3),
    arguments=st.lists(st.sampled_from(["", "{}", '{"a":1}']), max_size=3),
    sizes=st.lists(st.integers(1, 300), max_size=8),
)
def test_the_sdk_parses_a_stream(upstream: Loopback, texts: list[str], arguments: list[str], sizes: list[int]) -> None:
    """The stream helper of the SDK assembles the text, the parallel calls and the usage, however the bytes are split."""
    events: list[AnswerEvent] = [
        Started(id="msg_1", model="claude", created=7),
        *(TextDelta(text=text) for text in texts),
    ]
    for index, piece in enumerate(arguments):
        events.append(CallStarted(index=index, id=f"call_{index}", name="f"))
        events += [CallDelta(index=index, json=letter) for letter in piece]
        events.append(CallEnded(index=index))
    events.append(Ended(stop=Stop.TOOL_CALLS if arguments else Stop.END, usage=Usage(input=3, output=4)))
    request = {"model": "m", "messages": USER, "stream": True, "stream_options": {"include_usage": True}}
    writer = CHAT_TRANSLATOR.stream_writer(CHAT_TRANSLATOR.read_request(request))
    upstream.stream(split(writer.write(events), sizes))
    options: Any = {"include_usage": True}
    with upstream.client.chat.completions.stream(
        model="m", messages=USER, tools=[TOOL], stream_options=options
    ) as stream:
        for _ in stream:
            pass
        found = stream.get_final_completion()
    assert upstream.body["stream"] is True
    [choice] = found.choices
    assert choice.message.content == "".join(texts)
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    assert calls == [(f"call_{index}", "f", piece or "{}") for index, piece in enumerate(arguments)]
    assert choice.finish_reason == ("tool_calls" if arguments else "stop")
    assert found.usage is not None
    assert found.usage.total_tokens == 7


def test_the_sdk_parses_structured_output_and_refusals(upstream: Loopback) -> None:
    """A streamed answer of a schema is parsed into the client's type, and a streamed refusal is shown as one."""
    client = Conversation(family=Family.CHAT, wants_usage=False)
    start = Started(id="msg_1", model="claude")
    events: list[AnswerEvent] = [start, TextDelta(text='{"a"'), TextDelta(text=": 1}"), Ended(stop=Stop.END)]
    upstream.stream([CHAT_TRANSLATOR.stream_writer(client).write(events)])
    with upstream.client.chat.completions.stream(model="m", messages=USER, response_format=Shape) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == Shape(a=1)
    output = CHAT_TRANSLATOR.read_request(upstream.body).output
    assert output is not None
    assert (output.name, output.strict) == ("Shape", True)
    events = [start, RefusalDelta(text="n"), RefusalDelta(text="o"), Ended(stop=Stop.REFUSAL)]
    upstream.stream([CHAT_TRANSLATOR.stream_writer(client).write(events)])
    chunks = [
        item.choices[0] for item in upstream.client.chat.completions.create(model="m", messages=USER, stream=True)
    ]
    assert "".join(choice.delta.refusal or "" for choice in chunks) == "no"
    assert chunks[-1].finish_reason == "stop"


def test_the_sdk_raises_the_error_of_a_stream(upstream: Loopback) -> None:
    """An error inside a stream is an APIError of the SDK, with the upstream's message."""
    data = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    upstream.stream(
        [CHAT_TRANSLATOR.stream_writer(Conversation(family=Family.CHAT)).write([StreamFailed(name="error", data=data)])]
    )
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(upstream.client.chat.completions.create(model="m", messages=USER, stream=True))


def test_what_the_sdk_returns_can_be_sent_back(upstream: Loopback) -> None:
    """A message of the SDK with all its nulls, put into the history, is read without fields that others must drop."""
    upstream.answer(written(an_answer(Stop.TOOL_CALLS, ToolCallPart(id="1", name="f", arguments="{}")), {}))
    message = upstream.client.chat.completions.create(model="m", messages=USER).choices[0].message
    upstream.client.chat.completions.create(model="m", messages=[*USER, message.model_dump()])  # type: ignore[list-item]  # a dict of that type
    conversation = CHAT_TRANSLATOR.read_request(upstream.body)
    assert dict(conversation.turns[1].extras) == {}
    assert CHAT_TRANSLATOR.write_request(conversation).body == upstream.body
