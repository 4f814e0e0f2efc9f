"""Google's SDK on both ends: what it sends is read and written back, and it parses what the writers give."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rung.wires.translation.answer import (
    Answer,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
    Usage,
)
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    MediaKind,
    MediaPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.gemini import GEMINI_TRANSLATOR, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = Conversation(family=Family.GEMINI, model="gemini-3-pro")


class Upstream(ThreadingHTTPServer):
    """A server that captures requests, and answers with the given pieces."""

    daemon_threads = True
    path = ""
    body: Any = None
    pieces: tuple[bytes, ...] = ()
    kind = "application/json"


class CapturingHandler(BaseHTTPRequestHandler):
    """Captures one request and sends the prepared answer."""

    server: Upstream

    def do_POST(self) -> None:
        self.server.path = self.path
        self.server.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", self.server.kind)
        self.send_header("connection", "close")
        self.end_headers()
        for piece in self.server.pieces:
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def upstream() -> Iterator[tuple[Upstream, genai.Client]]:
    server = Upstream(("127.0.0.1", 0), CapturingHandler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    options = types.HttpOptions(base_url=f"http://127.0.0.1:{server.server_port}")
    try:
        with genai.Client(api_key="k", http_options=options) as client:
            yield server, client
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Upstream, genai.Client]]:
    with upstream() as pair:
        yield pair


ANSWER = {"candidates": [{"content": {"parts": [{"text": "hi"}], "role": "model"}, "finishReason": "STOP", "index": 0}]}


class Weather(BaseModel):
    """Structured answer."""

    city: str
    degrees: list[int] | None


DECLARED = types.FunctionDeclaration(
    name="read",
    description="Read a file.",
    parameters=types.Schema(
        type=types.Type.OBJECT, properties={"path": types.Schema(type=types.Type.STRING, nullable=True)}
    ),
)
PLAIN = types.FunctionDeclaration(name="now", parameters_json_schema={"type": "object", "properties": {}})
HISTORY = [
    types.Content(
        role="user",
        parts=[
            types.Part(text="look"),
            types.Part.from_bytes(data=b"png", mime_type="image/png"),
            types.Part.from_bytes(data=b"pdf", mime_type="application/pdf"),
            types.Part.from_bytes(data=b"wav", mime_type="audio/wav"),
            types.Part.from_uri(file_uri="gs://bucket/a.mp4", mime_type="video/mp4"),
            types.Part(
                file_data=types.FileData(file_uri="https://youtu.be/a"),
                video_metadata=types.VideoMetadata(start_offset="1s"),
            ),
        ],
    ),
    types.Content(
        role="model",
        parts=[
            types.Part(text="hm", thought=True),
            types.Part(
                function_call=types.FunctionCall(name="read", args={"path": "ä", "n": [1, 2.5, None]}),
                thought_signature=b"sig",
            ),
            types.Part(function_call=types.FunctionCall(id="x", name="read", args={})),
            types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON)),
            types.Part(
                code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="1")
            ),
        ],
    ),
    types.Content(
        role="user",
        parts=[
            types.Part.from_function_response(name="read", response={"output": "text"}),
            types.Part(
                function_response=types.FunctionResponse(
                    id="x",
                    name="read",
                    response={"error": "gone"},
                    parts=[types.FunctionResponsePart.from_bytes(data=b"png", mime_type="image/png")],
                )
            ),
        ],
    ),
]  # fmt: skip
CONFIGS: list[Any] = [
    {},
    {
        "system_instruction": "be kind",
        "max_output_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.5,
        "top_k": 4,
        "stop_sequences": ["x"],
        "seed": 1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "candidate_count": 2,
        "thinking_config": {"thinking_budget": 99, "include_thoughts": True},
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "cached_content": "cachedContents/a",
    },
    {
        "tools": [{"function_declarations": [DECLARED, PLAIN]}, {"google_search": {}}, {"code_execution": {}}],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["read"]}},
        "thinking_config": {"thinking_level": "LOW"},
    },
    {"response_mime_type": "application/json", "response_schema": Weather},
    {"response_mime_type": "application/json", "response_json_schema": Weather.model_json_schema()},
    {"tools": [{"url_context": {}}], "response_modalities": ["TEXT"], "labels": None},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("config", CONFIGS)
def test_requests_of_the_sdk(both: tuple[Upstream, genai.Client], config: Any, stream: bool) -> None:
    """Every request of the SDK is read, and written back as it was; the path says the model and the method."""
    server, client = both
    models = client.models
    if stream:
        server.kind, server.pieces = "text/event-stream", (f"data: {json.dumps(ANSWER)}\n\n".encode(),)
        list(models.generate_content_stream(model="gemini-3-pro", contents=HISTORY, config=config))
    else:
        server.kind, server.pieces = "application/json", (json.dumps(ANSWER).encode(),)
        models.generate_content(model="gemini-3-pro", contents=HISTORY, config=config)
    assert parse_path(server.path) == ("gemini-3-pro", "streamGenerateContent" if stream else "generateContent")
    conversation = GEMINI_TRANSLATOR.read_request(server.body)
    assert GEMINI_TRANSLATOR.write_request(conversation).body == server.body
    written = GEMINI_TRANSLATOR.write_request(replace(conversation, original=None)).body
    assert GEMINI_TRANSLATOR.read_request(written) == conversation
    first, second, third = conversation.turns
    kinds = [part.kind for part in first.parts if isinstance(part, MediaPart)]
    assert kinds == [
        MediaKind.IMAGE, MediaKind.DOCUMENT, MediaKind.AUDIO, MediaKind.VIDEO, MediaKind.VIDEO,
    ]  # fmt: skip
    calls = [part for part in second.parts if isinstance(part, ToolCallPart)]
    results = [part for part in third.parts if isinstance(part, ToolResultPart)]
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert json.loads(calls[0].arguments) == {"path": "ä", "n": [1, 2.5, None]}
    assert [result.is_error for result in results] == [False, True]
    assert [type(part) for part in results[1].parts] == [TextPart, MediaPart]


def test_an_answer_for_the_sdk(both: tuple[Upstream, genai.Client]) -> None:
    """The SDK parses a written answer, and sends its calls back signed."""
    server, client = both
    answer = Answer(
        family=Family.CHAT,
        id="chatcmpl-1",
        model="gpt",
        parts=(TextPart(text="hello"), ToolCallPart(id="call_1", name="read", arguments='{"path":"ä"}')),
        stop=Stop.TOOL_CALLS,
        usage=Usage(input=2, output=3, reasoning=1),
        created=1_767_323_045,
    )
    body = GEMINI_TRANSLATOR.write_answer(answer, CLIENT).body
    server.kind, server.pieces = "application/json", (json.dumps(body).encode(),)
    chat = client.chats.create(model="gemini-3-pro")
    found = chat.send_message("hi")
    assert found.function_calls is not None
    assert [(call.id, call.name, call.args) for call in found.function_calls] == [("call_1", "read", {"path": "ä"})]
    assert found.candidates is not None
    assert found.candidates[0].finish_reason is types.FinishReason.STOP
    assert (found.response_id, found.model_version) == ("chatcmpl-1", "gpt")
    assert found.usage_metadata is not None
    assert found.usage_metadata.total_token_count == 5
    chat.send_message(
        types.Part(function_response=types.FunctionResponse(id="call_1", name="read", response={"output": "x"}))
    )
    sent = server.body["contents"][1]["parts"][1]
    assert sent["thoughtSignature"] == "skip_thought_signature_validator"
    turns = GEMINI_TRANSLATOR.read_request(server.body).turns
    assert [part.call_id for part in turns[2].parts if isinstance(part, ToolResultPart)] == ["call_1"]


def test_every_finish_reason_is_known_to_the_sdk() -> None:
    """The SDK knows each finish reason that is written."""
    for stop in Stop:
        answer = Answer(family=Family.CHAT, id="", model="", parts=(), stop=stop)
        body = GEMINI_TRANSLATOR.write_answer(answer, CLIENT).body
        found = types.GenerateContentResponse.model_validate_json(json.dumps(body))
        assert found.candidates is not None
        assert found.candidates[0].finish_reason in set(types.FinishReason)


EVENTS = (
    Started(id="msg_1", model="claude"),
    TextDelta(text="hel"),
    TextDelta(text="lo ✓"),
    CallStarted(index=0, id="t1", name="read"),
    CallDelta(index=0, json='{"path":'),
    CallDelta(index=0, json='"ä"}'),
    CallEnded(index=0),
    CallStarted(index=1, id="t2", name="now"),
    CallEnded(index=1),
    Ended(stop=Stop.TOOL_CALLS, usage=Usage(input=2, output=3)),
)
STREAM = GEMINI_TRANSLATOR.stream_writer(CLIENT).write(EVENTS)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_a_stream_for_the_sdk(both: tuple[Upstream, genai.Client], cuts: list[int]) -> None:
    """The SDK parses a written stream, wherever it is split."""
    server, client = both
    edges = [0, *sorted(cuts), len(STREAM)]
    server.kind, server.pieces = "text/event-stream", tuple(STREAM[start:end] for start, end in pairwise(edges))
    chunks = list(client.models.generate_content_stream(model="gemini-3-pro", contents="hi"))
    assert "".join(chunk.text or "" for chunk in chunks) == "hello ✓"
    calls = [call for chunk in chunks for call in chunk.function_calls or ()]
    assert [(call.id, call.name, call.args) for call in calls] == [("t1", "read", {"path": "ä"}), ("t2", "now", {})]
    last = chunks[-1]
    assert last.candidates is not None
    assert last.candidates[0].finish_reason is types.FinishReason.STOP
    assert last.usage_metadata is not None
    assert last.usage_metadata.prompt_token_count == 2


def test_a_failed_stream_for_the_sdk(both: tuple[Upstream, genai.Client]) -> None:
    """The SDK raises the error of a written stream, with its code."""
    server, client = both
    failed = StreamFailed(name="error", data='{"error": {"type": "overloaded_error", "message": "busy"}}')
    server.kind = "text/event-stream"
    server.pieces = (GEMINI_TRANSLATOR.stream_writer(CLIENT).write([TextDelta(text="a"), failed]),)
    with pytest.raises(errors.ServerError, match="busy") as raised:
        list(client.models.generate_content_stream(model="gemini-3-pro", contents="hi"))
    assert raised.value.code == 503
