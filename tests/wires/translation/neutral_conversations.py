"""Hypothesis strategies for neutral conversations of any wire."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ForeignPart,
    JsonOutput,
    MediaKind,
    MediaPart,
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
from tests.wires.translation.anthropic_rules import MODELS as CLAUDE_MODELS

TEXTS = st.sampled_from(["", " \n", "words", "more words", "ü🙂"])
IDS = st.sampled_from(["", "call_1", "call_2", "call:3", "call.3", "fc_1|call_1"])
NAMES = st.sampled_from(["read", "write", "search"])
ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]", "null", "1"])
DATA = st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"%PDF-1.7", b"plain", b""]).map(
    lambda data: base64.b64encode(data).decode()
)
URLS = st.sampled_from(
    [
        "https://a/b",
        "http://a/b",
        "gs://a/b",
        "data:image/png;base64,iVBORw0KGgo=",
        "data:text/plain,hi%20there",
        "data:",
    ]
)


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMAS = st.sampled_from(
    [
        {},
        {"type": "object"},
        CITY,
        {**CITY, "additionalProperties": False},
        {"type": "object", "properties": {"all": {"type": "array"}, "city": {"type": ["array", "null"]}}},
        {"anyOf": [CITY, {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}}]},
        {"type": "object", "allOf": [{"$ref": "#/$defs/City"}], "$defs": {"City": CITY}},
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"], "additionalProperties": False},
        {"enum": ["a"]},
        {"type": "array", "items": {"type": "string"}},
        {"$ref": "#/$defs/City", "$defs": {"City": CITY}},
    ]
)
CLOSED = {**CITY, "additionalProperties": False}
MODELS = ["some-model", "gpt-4.1", "gpt-5.1", "o3", "gemini-2.5-pro", "gemini-3-flash", *CLAUDE_MODELS]


def foreign_conversations(family: Family) -> st.SearchStrategy[Conversation]:
    """Return conversations as the reader of this family may give them, and worse ones."""
    texts = st.builds(TextPart, text=TEXTS)
    media = st.builds(
        MediaPart,
        kind=st.sampled_from(MediaKind),
        mime_type=st.sampled_from(["", "image/png", "image/heic", "application/pdf", "text/csv", "audio/wav"]),
        data=DATA,
        detail=st.sampled_from(["", "low", "auto"]),
        name=TEXTS,
    ) | st.builds(MediaPart, kind=st.sampled_from(MediaKind), url=URLS)
    media |= st.builds(MediaPart, kind=st.sampled_from(MediaKind), file_id=st.just("file-1"), family=st.just(family))
    results = st.builds(
        ToolResultPart,
        call_id=IDS,
        parts=st.lists(texts | media, max_size=2).map(tuple),
        is_error=st.booleans(),
    )
    calls = st.builds(ToolCallPart, id=IDS, name=NAMES, arguments=ARGUMENTS, extras=st.just({"signature": "s"}))
    own = st.builds(ReasoningPart, family=st.just(family), block=st.just({}), text=TEXTS)
    own_blocks = st.builds(ForeignPart, family=st.just(family), block=st.just({}), kind=st.just("web_search_call"))
    parts = st.one_of(texts, st.builds(RefusalPart, text=TEXTS), media, calls, calls, results, results, own, own_blocks)
    turns = st.builds(
        Turn,
        speaker=st.sampled_from(Speaker),
        parts=st.lists(parts, max_size=3).map(tuple),
        name=st.sampled_from(["", "Ada"]),
    )
    strict = st.sampled_from([None, True, False]) if family in (Family.ANTHROPIC, Family.GEMINI) else st.none()
    tools = st.builds(ToolDefinition, name=NAMES, description=TEXTS, strict=strict, schema=SCHEMAS)
    tools |= st.builds(ToolDefinition, name=NAMES, strict=st.just(True), schema=st.just(CLOSED))
    provider_tools = st.builds(ProviderTool, family=st.just(family), block=st.just({}), kind=st.just("web_search"))
    return st.builds(
        Conversation,
        family=st.just(family),
        model=st.sampled_from(MODELS),
        system=st.lists(texts, max_size=2).map(tuple),
        turns=st.lists(turns, max_size=7).map(tuple),
        tools=st.lists(tools | provider_tools, max_size=3).map(tuple),
        tool_choice=st.builds(
            ToolChoice,
            mode=st.sampled_from([None, *ToolMode]),
            names=st.lists(NAMES, max_size=2, unique=True).map(tuple),
            parallel=st.sampled_from([None, True, False]),
        ),
        output=st.none() | st.builds(JsonOutput, schema=st.none() | SCHEMAS),
        reasoning=st.none()
        | st.builds(
            ReasoningRequest,
            is_enabled=st.sampled_from([None, True, False]),
            budget_tokens=st.sampled_from([None, -1, 0, 500, 5000, 100_000]),
            effort=st.sampled_from(["", "none", "minimal", "low", "medium", "high", "max", "new"]),
        ),
        sampling=st.builds(
            Sampling,
            max_tokens=st.sampled_from([None, 10, 1500, 3000, 64_000]),
            temperature=st.sampled_from([None, 0, 0.5, 1, 2]),
            top_p=st.sampled_from([None, 0.5, 1]),
            top_k=st.sampled_from([None, 40]),
            stop=st.sampled_from([(), ("END",), ("\n", "END")]),
            seed=st.sampled_from([None, 0]),
        ),
        is_stream=st.booleans(),
        user=st.sampled_from(["", "user-1", "a@example.com", "+49 30 123456"]),
    )
