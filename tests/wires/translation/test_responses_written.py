"""Conversations of other wires as requests of the Responses API: what it can say, and the names of what it cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.testing.provider.responses import parse_request
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
from rung.wires.translation.responses_request import write_request

HI = Turn(speaker=Speaker.USER, parts=(TextPart(text="hi"),))
IDS = st.sampled_from(["call_1", "toolu_2", "x" * 90])
TEXTS = st.builds(TextPart, text=st.text(max_size=5), cache=st.none() | st.just({"type": "ephemeral"}))
MEDIA = st.builds(
    MediaPart,
    kind=st.sampled_from(MediaKind),
    mime_type=st.sampled_from(["image/png", "application/pdf", "audio/wav", "video/mp4"]),
    data=st.just("QUJD"),
)
CALLS = st.builds(ToolCallPart, id=IDS, name=st.just("f"), arguments=st.sampled_from(["", "{}", '{"a": 1}']))
RESULTS = st.builds(
    ToolResultPart, call_id=IDS, parts=st.lists(TEXTS | MEDIA, max_size=2).map(tuple), is_error=st.booleans()
)
OTHERS = st.just(ReasoningPart(family=Family.ANTHROPIC, block={"type": "thinking"}, text="hm")) | st.just(
    ForeignPart(family=Family.GEMINI, block={"executableCode": {}}, kind="executableCode")
)
TURNS = (
    st.builds(Turn, speaker=st.just(Speaker.USER), parts=st.lists(TEXTS | MEDIA | RESULTS, max_size=3).map(tuple))
    | st.builds(Turn, speaker=st.just(Speaker.ASSISTANT), parts=st.lists(TEXTS | CALLS | OTHERS, max_size=4).map(tuple))
    | st.builds(Turn, speaker=st.just(Speaker.SYSTEM), parts=st.lists(TEXTS, max_size=1).map(tuple))
)
FAMILIES = st.sampled_from([Family.ANTHROPIC, Family.CHAT, Family.GEMINI])


def written(**fields: Any) -> dict[str, Any]:
    """Return the request for a conversation of another wire."""
    return write_request(Conversation(family=Family.ANTHROPIC, **{"model": "m", "turns": (HI,), **fields})).body


def dropped(**fields: Any) -> tuple[str, ...]:
    """Return the names of what is dropped."""
    return write_request(Conversation(family=Family.ANTHROPIC, **{"model": "m", "turns": (HI,), **fields})).dropped


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(family=FAMILIES, turns=st.lists(TURNS, max_size=5))
def test_any_conversation_of_another_wire_is_a_valid_request(family: Family, turns: list[Turn]) -> None:
    """Each call has one result behind its run of calls, ids are short, and the provider accepts the request."""
    found = write_request(Conversation(family=family, model="m", turns=(HI, *turns)))
    body = found.body
    parse_request(body)
    assert body["store"] is False
    assert json.loads(json.dumps(body)) == body
    assert list(found.dropped) == sorted(found.dropped)
    waiting: list[str] = []
    for item in body["input"]:
        if item["type"] == "function_call":
            assert len(item["call_id"]) <= 64
            assert isinstance(json.loads(item["arguments"]), dict)
            waiting.append(item["call_id"])
        elif item["type"] == "function_call_output":
            assert waiting.pop(0) == item["call_id"]
        else:
            assert not waiting
    assert not waiting


def test_the_system_text_is_the_instructions() -> None:
    """System texts are paragraphs of the instructions, and a cache breakpoint is dropped by name."""
    system = (TextPart(text="one"), TextPart(text="two", cache={"type": "ephemeral"}))
    assert written(system=system)["instructions"] == "one\n\ntwo"
    assert dropped(system=system) == ("cache_control",)


def test_a_system_text_alone_is_the_input() -> None:
    """A conversation without turns has its system text as a message, because the provider demands an input."""
    body = written(system=(TextPart(text="one"),), turns=())
    assert "instructions" not in body
    assert body["input"][0]["role"] == "developer"


def test_results_have_no_audio() -> None:
    """Audio in a result is replaced by a text, and named."""
    audio = MediaPart(kind=MediaKind.AUDIO, mime_type="audio/wav", data="QUJD")
    turns = (
        Turn(speaker=Speaker.ASSISTANT, parts=(ToolCallPart(id="a", name="f", arguments="{}"),)),
        Turn(speaker=Speaker.USER, parts=(ToolResultPart(call_id="a", parts=(audio,)),)),
    )
    assert written(turns=turns)["input"][1]["output"] == "[audio was left out]"
    assert dropped(turns=turns) == ("audio",)


def test_results_follow_their_calls() -> None:
    """Results stand directly after the calls of their turn, errors say so, and a lost result has a stub."""
    calls = tuple(ToolCallPart(id=name, name="f", arguments="{}") for name in ("a", "b", "c"))
    image = MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="QUJD")
    results = (
        TextPart(text="look:"),
        ToolResultPart(call_id="b", parts=(TextPart(text="no"),), is_error=True),
        ToolResultPart(call_id="a", parts=(TextPart(text="yes"), image)),
        ToolResultPart(call_id="z", parts=()),
    )
    turns = (HI, Turn(speaker=Speaker.ASSISTANT, parts=calls), Turn(speaker=Speaker.USER, parts=results))
    items = written(turns=turns)["input"]
    assert [item.get("call_id") for item in items] == [None, "a", "b", "c", "a", "b", "c", None]
    assert items[4]["output"] == [
        {"type": "input_text", "text": "yes"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
    ]
    assert items[5]["output"] == "Error: no"
    assert "lost" in items[6]["output"]
    assert dropped(turns=turns) == ("tool_result",)


def test_an_error_with_media_says_so_in_its_first_text() -> None:
    """The result of a failed call that is no plain text begins with a text that names it an error."""
    image = MediaPart(kind=MediaKind.IMAGE, url="https://x.test/a.png")
    turns = (
        Turn(speaker=Speaker.ASSISTANT, parts=(ToolCallPart(id="a", name="f", arguments=""),)),
        Turn(speaker=Speaker.USER, parts=(ToolResultPart(call_id="a", parts=(image,), is_error=True),)),
    )
    call, result = written(turns=turns)["input"]
    assert call["arguments"] == "{}"
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]
    assert result["output"][0]["text"] == "Error:"


def test_parts_become_items_and_content() -> None:
    """Texts and refusals of a turn are one message up to the next call, and media have their own parts."""
    said = (
        TextPart(text="a"),
        RefusalPart(text="b"),
        ToolCallPart(id="c", name="f", arguments="{}"),
        TextPart(text="d"),
    )
    shown = (
        MediaPart(kind=MediaKind.DOCUMENT, mime_type="application/pdf", data="QUJD"),
        MediaPart(kind=MediaKind.DOCUMENT, text="plain", name="notes"),
        MediaPart(kind=MediaKind.AUDIO, mime_type="audio/mpeg", data="QUJD"),
    )
    items = written(turns=(Turn(speaker=Speaker.ASSISTANT, parts=said), Turn(speaker=Speaker.USER, parts=shown)))[
        "input"
    ]
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    assert [part["type"] for part in items[0]["content"]] == ["output_text", "refusal"]
    assert [part["type"] for part in items[4]["content"]] == ["input_file", "input_text", "input_audio"]
    assert items[4]["content"][0]["filename"] == "document.pdf"
    assert items[4]["content"][1]["text"] == "notes\nplain"


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_tools_are_functions_that_are_not_strict() -> None:
    """A tool without a schema has an empty one, and only a tool that is strict is so."""
    tools = (
        ToolDefinition(name="f", cache={"type": "ephemeral"}),
        ToolDefinition(name="g", strict=True, schema=CLOSED, extras={"eager": True}, family=Family.ANTHROPIC),
        ProviderTool(family=Family.ANTHROPIC, block={}, kind="web_search_20250305"),
    )
    assert written(tools=tools)["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "g", "parameters": CLOSED, "strict": True},
    ]
    assert dropped(tools=tools) == ("cache_control", "eager", "web_search_20250305")


def test_the_choice_of_tools_is_written() -> None:
    """One required tool is named, several are allowed tools, and parallel calls can be switched off."""
    tools = (ToolDefinition(name="f"), ToolDefinition(name="g"))
    one = written(tools=tools, tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=("f",), parallel=False))
    assert (one["tool_choice"], one["parallel_tool_calls"]) == ({"type": "function", "name": "f"}, False)
    two = written(tools=tools, tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=("f", "g")))
    assert (two["tool_choice"]["type"], two["tool_choice"]["mode"]) == ("allowed_tools", "required")
    assert written(tools=tools, tool_choice=ToolChoice(mode=ToolMode.NONE))["tool_choice"] == "none"


def test_parameters_that_this_wire_lacks_are_named() -> None:
    """Stop sequences, penalties, seeds, top_k and further choices are dropped by name."""
    sampling = Sampling(top_k=4, stop=("x",), seed=1, presence_penalty=0.1, frequency_penalty=0.1, choices=2)
    names = ("frequency_penalty", "n", "presence_penalty", "seed", "stop", "top_k")
    assert dropped(sampling=sampling, extras={"betas": ["x"], "rung.form": {}, "empty": None}) == ("betas", *names)


def test_parameters_are_changed_to_what_the_provider_accepts() -> None:
    """Limits have a minimum, default sampling is left out, a long user id is hashed, and a schema has a name."""
    body = written(
        sampling=Sampling(max_tokens=1, temperature=1, top_p=0.5),
        user="u" * 65,
        output=JsonOutput(schema={"type": "object"}),
    )
    assert body["max_output_tokens"] == 16
    assert "temperature" not in body
    assert body["top_p"] == 0.5
    assert len(body["safety_identifier"]) == 64
    assert body["text"] == {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}}
    assert written(output=JsonOutput())["text"] == {"format": {"type": "json_object"}}
    named = JsonOutput(schema={"type": "object"}, name="my answer!")
    assert written(output=named)["text"]["format"]["name"] == "my_answer_"


def test_json_without_a_schema_is_also_said_in_the_input() -> None:
    """OpenAI rejects the format json_object if no message of the input has the word JSON: one is added."""
    items = written(turns=(Turn(speaker=Speaker.USER, parts=(TextPart(text="hi"),)),), output=JsonOutput())["input"]
    assert [(item["role"], item["content"][0]["text"]) for item in items] == [
        ("developer", "Answer with JSON."),
        ("user", "hi"),
    ]
    items = written(turns=(Turn(speaker=Speaker.USER, parts=(TextPart(text="some json"),)),), output=JsonOutput())[
        "input"
    ]
    assert [item["role"] for item in items] == ["user"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ReasoningRequest(effort="max"), {"effort": "xhigh"}),
        (ReasoningRequest(effort="low"), {"effort": "low"}),
        (ReasoningRequest(budget_tokens=1_024), {"effort": "low"}),
        (ReasoningRequest(budget_tokens=8_192), {"effort": "medium"}),
        (ReasoningRequest(budget_tokens=32_000), {"effort": "high"}),
        (ReasoningRequest(budget_tokens=-1), None),
        (ReasoningRequest(is_enabled=False), None),
        (ReasoningRequest(is_enabled=True), None),
    ],
)
def test_reasoning_is_an_effort(wanted: ReasoningRequest, expected: Any) -> None:
    """Budgets of tokens become efforts by the table; what cannot be said is left to the provider."""
    assert written(reasoning=wanted).get("reasoning") == expected
    assert dropped(reasoning=wanted) == ()


@pytest.mark.parametrize(
    ("model", "effort"), [("gpt-5.1", "high"), ("o3", "high"), ("gpt-5.1-codex-max", "xhigh"), ("gpt-5.2", "xhigh")]
)
def test_an_effort_is_one_that_the_model_knows(model: str, effort: str) -> None:
    """The highest effort is only asked of models that have it: others reject the request."""
    assert written(model=model, reasoning=ReasoningRequest(effort="max"))["reasoning"] == {"effort": effort}


def test_models_are_not_asked_for_what_they_reject() -> None:
    """Reasoning models get no sampling, others no effort; both is named."""
    sampling = Sampling(temperature=0.2, top_p=0.5)
    assert not {"temperature", "top_p"} & set(written(model="gpt-5.1", sampling=sampling))
    assert {"temperature", "top_p"} <= set(dropped(model="gpt-5.1", sampling=sampling))
    assert "reasoning" not in written(model="gpt-4.1", reasoning=ReasoningRequest(effort="high"))
    assert "reasoning" in dropped(model="gpt-4.1", reasoning=ReasoningRequest(effort="high"))


def test_content_of_another_family_is_named() -> None:
    """Reasoning, content of another provider, its files, marks on calls, names of speakers and video are dropped by name."""
    parts = (
        ReasoningPart(family=Family.ANTHROPIC, block={"type": "thinking"}),
        ForeignPart(family=Family.ANTHROPIC, block={}, kind="server_tool_use"),
        ToolCallPart(id="c", name="f", arguments="{}", extras={"thoughtSignature": "x"}, family=Family.GEMINI),
    )
    media = (
        MediaPart(kind=MediaKind.IMAGE, file_id="file_1", family=Family.ANTHROPIC),
        MediaPart(kind=MediaKind.VIDEO, data="QUJD"),
    )
    turns = (
        Turn(speaker=Speaker.ASSISTANT, parts=parts),
        Turn(speaker=Speaker.USER, parts=media, name="bob", extras={"weight": 1}, family=Family.CHAT),
    )
    left_out = [part["text"] for part in written(turns=turns)["input"][-1]["content"]]
    assert left_out == ["[image was left out]", "[video was left out]"]
    expected = ("file_id", "name", "reasoning", "server_tool_use", "video", "weight")
    assert dropped(turns=turns) == expected
