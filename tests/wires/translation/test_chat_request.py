"""A Chat Completions request is read into the neutral conversation, and written back as it was."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.wires.translation.chat_request import read_request, write_request
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    JsonOutput,
    MediaKind,
    MediaPart,
    ProviderTool,
    ReasoningPart,
    ReasoningRequest,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolMode,
    ToolResultPart,
)
from tests.wires.translation.chat_bodies import BODIES, JSON

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def read(**fields: Any) -> Any:
    return read_request({"model": "gpt-4o", "messages": [], **fields})


def turns(*messages: Any) -> Any:
    return read(messages=list(messages)).turns


@SLOW
@given(BODIES)
def test_every_request_of_the_sdk_is_written_as_it_was_read(body: dict[str, Any]) -> None:
    """A request of this family survives reading and writing unchanged, whatever the SDK's types allow."""
    before = copy.deepcopy(body)
    written = write_request(read_request(body))
    assert written.body == before
    assert written.dropped == ()
    assert body == before


NAMES = [
    "messages",
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "function",
    "name",
    "tools",
    "stop",
    "tool_choice",
]
WORDS = st.sampled_from([*NAMES, "user", "assistant", "tool", "system", "image_url", "file", "input_audio", "thinking"])
ANY = st.recursive(JSON | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5))


@SLOW
@given(st.dictionaries(WORDS, ANY), st.sampled_from(list(Family)))
def test_no_object_is_an_error(body: dict[str, Any], family: Family) -> None:
    """Any JSON object is read, and written for every family, without an error."""
    conversation = read_request(body)
    json.dumps(write_request(conversation).body)
    json.dumps(write_request(_of(conversation, family)).body)


def _of(conversation: Any, family: Family) -> Any:
    return replace(conversation, family=family)


def test_instructions_at_the_beginning_are_the_system() -> None:
    """Leading system and developer messages are the system; later ones are turns."""
    found = read(
        messages=[
            {"role": "system", "content": "a"},
            {"role": "developer", "content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "content": "c", "name": "ann"},
            {"role": "developer", "content": "d"},
        ]
    )
    assert [(part.text, part.cache) for part in found.system] == [("a", None), ("b", {"type": "ephemeral"})]
    assert [turn.speaker for turn in found.turns] == [Speaker.USER, Speaker.SYSTEM]
    assert found.turns[0].name == "ann"


def test_media_are_read_by_their_source() -> None:
    """Images, audio and files are read with their data, URL or id."""
    [turn] = turns(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://example.test/a", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC", "filename": "a.pdf"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "video_url", "video_url": {"url": "https://example.test/v"}},
            ],
        }
    )
    own: Any = {"family": Family.CHAT}
    assert list(turn.parts[:5]) == [
        MediaPart(kind=MediaKind.IMAGE, url="https://example.test/a", detail="low", **own),
        MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="AAAA", **own),
        MediaPart(kind=MediaKind.AUDIO, mime_type="audio/mpeg", data="BBBB", **own),
        MediaPart(kind=MediaKind.DOCUMENT, mime_type="application/pdf", data="CCCC", name="a.pdf", **own),
        MediaPart(kind=MediaKind.DOCUMENT, file_id="file-1", **own),
    ]
    assert isinstance(turn.parts[5], ForeignPart)
    assert turn.parts[5].kind == "video_url"


def test_an_answer_in_the_history_keeps_all_that_it_has() -> None:
    """Reasoning, text, refusal, spoken answers and calls of an assistant's message are parts of its turn."""
    [turn] = turns(
        {
            "role": "assistant",
            "content": "a",
            "reasoning_content": "r",
            "refusal": "no",
            "audio": {"id": "audio-1"},
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "2", "type": "custom", "custom": {"name": "g", "input": "x"}},
            ],
        }
    )
    reasoning, *others = turn.parts
    assert reasoning == ReasoningPart(family=Family.CHAT, block={"reasoning_content": "r"}, text="r")
    assert others[0] == TextPart(text="a")
    assert others[1] == RefusalPart(text="no")
    assert others[2].kind == "audio"
    assert others[3] == ToolCallPart(id="1", name="f", arguments="{}")
    assert others[4].kind == "custom_tool_call"


def test_reasoning_in_content_is_written_back() -> None:
    """Mistral's reasoning, and items that no wire knows, stand in the content and return to it."""
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, "bare", {"type": "text", "text": "a"}]
    body = {"model": "m", "messages": [{"role": "assistant", "content": content}, {"role": "odd"}, 7]}
    conversation = read_request(body)
    first = conversation.turns[0].parts[0]
    assert isinstance(first, ReasoningPart)
    assert first.text == "r"
    assert write_request(conversation).body == body


def test_legacy_functions_are_calls_with_ids_of_their_own() -> None:
    """A function call and its result share an id, although their wire has none, and one call is allowed at a time."""
    found = read(
        functions=[{"name": "f", "parameters": {"type": "object"}}],
        function_call={"name": "f"},
        messages=[
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "ok"},
        ],
    )
    [call], [result] = found.turns[1].parts, found.turns[2].parts
    assert isinstance(result, ToolResultPart)
    assert (call.name, call.id, result.name) == ("f", result.call_id, "f")
    assert found.tool_choice == ToolChoice(mode=ToolMode.REQUIRED, names=("f",), parallel=False)
    assert found.tools[0].name == "f"


def test_tools_and_choices_are_read() -> None:
    """Functions are the client's tools; a custom tool is one that other families cannot say."""
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    custom = {"type": "custom", "custom": {"name": "g"}}
    choice = {"mode": "required", "tools": [{"type": "function", "function": {"name": name}} for name in "ab"]}
    found = read(
        tools=[{"type": "function", "function": function}, custom],
        tool_choice={"type": "allowed_tools", "allowed_tools": choice},
        parallel_tool_calls=False,
    )
    assert (found.tools[0].description, found.tools[0].strict) == ("d", True)
    assert found.tools[1] == ProviderTool(family=Family.CHAT, kind="custom_tool", block=custom)
    assert found.tool_choice == ToolChoice(mode=ToolMode.REQUIRED, names=("a", "b"), parallel=False)


def test_an_allowed_list_that_forces_no_call_is_named_for_other_wires() -> None:
    """A list of allowed tools without a required call stays among the fields that only this family has."""
    found = read(tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}})
    assert found.tool_choice == ToolChoice(mode=ToolMode.AUTO)
    assert list(found.extras) == ["tool_choice"]


def test_parameters_are_read() -> None:
    """Limits, stop sequences, output format, reasoning and the user have their neutral names; the rest is extra."""
    found = read(
        max_tokens=5,
        stop="x",
        n=2,
        reasoning_effort="xhigh",
        safety_identifier="ann",
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": True}},
        stream=True,
        stream_options={"include_usage": True},
        logit_bias={"1": 2},
        seed=None,
    )
    assert (found.sampling.max_tokens, found.sampling.stop, found.sampling.choices) == (5, ("x",), 2)
    assert found.output == JsonOutput(schema={}, name="a", strict=True)
    assert found.reasoning == ReasoningRequest(is_enabled=True, effort="max")
    assert (found.user, found.is_stream, found.wants_usage) == ("ann", True, True)
    assert dict(found.extras) == {"logit_bias": {"1": 2}}
