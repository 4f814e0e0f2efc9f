"""The translator against the lab, which validates requests as Google does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from google import genai
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

import rung.testing
from rung.testing.provider.gemini import parse_request
from rung.wires.translation.answer import CallStarted, Ended, Stop, TextDelta
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ForeignPart,
    JsonOutput,
    MediaKind,
    MediaPart,
    Part,
    ProviderTool,
    ReasoningPart,
    ReasoningRequest,
    RefusalPart,
    Sampling,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    ToolResultPart,
    Turn,
)
from rung.wires.translation.gemini import GEMINI_TRANSLATOR, request_path

IDS = st.sampled_from(["t1", "t2", "t3"])
NAMES = st.sampled_from(["read", "write"])
TEXTS = st.builds(TextPart, text=st.text(max_size=4), cache=st.none() | st.just({"type": "ephemeral"}))
MEDIA = st.builds(
    MediaPart,
    kind=st.sampled_from(MediaKind),
    data=st.just("aGk="),
    mime_type=st.sampled_from(["", "image/png", "text/plain"]),
    name=st.sampled_from(["", "a.png"]),
) | st.builds(MediaPart, kind=st.sampled_from(MediaKind), url=st.sampled_from(["https://a.b/c.png", "http://a.b/c"]))
RESULTS = st.builds(
    ToolResultPart,
    call_id=IDS,
    parts=st.lists(TEXTS | MEDIA, max_size=3).map(tuple),
    is_error=st.booleans(),
)
CALLS = st.builds(ToolCallPart, id=IDS, name=NAMES, arguments=st.sampled_from(["", "{}", '{"a":1}', "{", "[1]"]))
OTHERS: st.SearchStrategy[Part] = st.sampled_from(
    [
        ReasoningPart(family=Family.ANTHROPIC, block={}),
        ForeignPart(family=Family.ANTHROPIC, block={}, kind="web_search"),
        RefusalPart(text="no"),
    ]
)
TURNS = st.lists(
    st.builds(
        Turn,
        speaker=st.sampled_from([Speaker.USER, Speaker.SYSTEM]),
        parts=st.lists(TEXTS | MEDIA | RESULTS, max_size=4).map(tuple),
        name=st.sampled_from(["", "bob"]),
    )
    | st.builds(
        Turn,
        speaker=st.just(Speaker.ASSISTANT),
        parts=st.lists(TEXTS | MEDIA | CALLS | OTHERS, max_size=4).map(tuple),
    ),
    max_size=6,
)
TOOLS = st.lists(
    st.builds(ToolDefinition, name=NAMES, schema=st.sampled_from([{}, {"type": "object"}]), strict=st.booleans())
    | st.just(ProviderTool(family=Family.RESPONSES, block={}, kind="web_search")),
    max_size=2,
).map(tuple)
CONVERSATIONS = st.builds(
    Conversation,
    family=st.sampled_from([Family.ANTHROPIC, Family.CHAT, Family.RESPONSES]),
    model=st.sampled_from(["gemini-3-pro-preview", "gemini-2.5-flash", "gemini-2.0-flash", "lab-small"]),
    system=st.lists(TEXTS, max_size=2).map(tuple),
    turns=TURNS.map(tuple),
    tools=TOOLS,
    tool_choice=st.builds(ToolChoice, mode=st.none() | st.sampled_from(ToolMode), names=st.lists(NAMES).map(tuple)),
    output=st.none() | st.builds(JsonOutput, schema=st.none() | st.just({"type": "object"})),
    reasoning=st.none()
    | st.builds(
        ReasoningRequest,
        is_enabled=st.none() | st.booleans(),
        budget_tokens=st.none() | st.integers(1, 99_999),
        effort=st.sampled_from(["", "minimal", "low", "medium", "high", "max"]),
        is_shown=st.none() | st.booleans(),
    ),
    sampling=st.builds(Sampling, max_tokens=st.none() | st.just(9), stop=st.lists(st.just("x"), max_size=7).map(tuple)),
)


@settings(deadline=None, max_examples=150)
@given(conversation=CONVERSATIONS)
def test_google_accepts_every_conversation(conversation: Conversation) -> None:
    """Whatever another wire says, its request is one that Google accepts; also after it was read and written again."""
    body = json.loads(json.dumps(GEMINI_TRANSLATOR.write_request(conversation).body))
    parse_request(body, request_path(conversation.model, stream=True))
    read = GEMINI_TRANSLATOR.read_request(body)
    assert GEMINI_TRANSLATOR.read_request(GEMINI_TRANSLATOR.write_request(replace(read, original=None)).body) == read


def test_a_streamed_chat_of_the_sdk_is_read() -> None:
    """The SDK makes one content of each chunk: the calls of a turn and their responses are still paired."""
    tool: Any = {"function_declarations": [{"name": "read"}]}
    with rung.testing.lab({"turns": [{"text": "I read.", "tools": [{"tool": "read"}] * 2}, {"text": "done"}]}) as lab:
        with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=lab.url)) as client:
            chat = client.chats.create(model="m", config={"tools": [tool]})
            list(chat.send_message_stream("go"))
            list(chat.send_message_stream([types.Part.from_function_response(name="read", response={"a": 1})] * 2))
        turns = GEMINI_TRANSLATOR.read_request(lab.calls[1].json).turns
    calls = [part.id for turn in turns for part in turn.parts if isinstance(part, ToolCallPart)]
    results = [part.call_id for turn in turns for part in turn.parts if isinstance(part, ToolResultPart)]
    assert len(set(calls)) == 2
    assert results == calls


def test_streams_of_the_lab_are_read() -> None:
    """A stream of the lab is read as its text, its calls and its end."""
    import httpx2

    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
    }
    with rung.testing.lab({"turns": [{"text": "I call.", "tools": [{"tool": "f"}]}]}) as lab:
        data = httpx2.post(lab.url + request_path("m", stream=True), json=body).content
    events = GEMINI_TRANSLATOR.stream_reader().feed(data)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I call."
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["f"]
    assert isinstance(events[-1], Ended)
    assert (events[-1].stop, events[-1].usage.output > 0) == (Stop.TOOL_CALLS, True)
