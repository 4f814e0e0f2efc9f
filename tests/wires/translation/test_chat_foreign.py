"""A conversation of another family is written as OpenAI's models take it; what they cannot take is named."""

from __future__ import annotations

from typing import Any

import pytest

from rung.wires.translation.chat_request import write_request
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
from tests.wires.translation.upstream_rules import check_request

LONG = "toolu_" + "x" * 60


def write(*turns: Turn, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    fields = {"family": Family.ANTHROPIC, "model": "gpt-4o", **fields}
    written = write_request(Conversation(turns=turns, **fields))
    return written.body, list(written.dropped)


def user(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.USER, parts=parts)


def assistant(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.ASSISTANT, parts=parts)


def text(words: str, **fields: Any) -> TextPart:
    return TextPart(text=words, **fields)


def call(call_id: str, arguments: str = "{}") -> ToolCallPart:
    return ToolCallPart(id=call_id, name="f", arguments=arguments)


IMAGE = MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="AAAA")


def test_the_system_is_one_message() -> None:
    """The texts of the system become one message, and their cache breakpoints are dropped."""
    body, dropped = write(user(text("u")), system=(text("a"), text("b", cache={"type": "ephemeral"})))
    assert body["messages"] == [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "u"}]
    assert dropped == ["cache_control"]


def test_results_follow_their_calls() -> None:
    """Each result is one message directly after the calls, before all else that the user says."""
    body, dropped = write(
        user(text("u")),
        assistant(text("I look."), call("1"), call("2", "")),
        Turn(speaker=Speaker.SYSTEM, parts=(text("be brief"),)),
        user(text("and?"), ToolResultPart(call_id="1", parts=(text("one"), text("more")))),
        user(ToolResultPart(call_id="2", parts=(text("bad"),), is_error=True)),
    )
    function = {"name": "f", "arguments": "{}"}
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": name, "type": "function", "function": function} for name in "12"],
        },
        {"role": "tool", "tool_call_id": "1", "content": "one\n\nmore"},
        {"role": "tool", "tool_call_id": "2", "content": "Error: bad"},
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "and?"},
    ]
    assert dropped == []


def test_media_of_results_come_in_a_user_message() -> None:
    """A tool message takes text only, so images follow all results, each with the call that it belongs to."""
    body, _ = write(
        assistant(call("1"), call("2")),
        user(ToolResultPart(call_id="1", parts=(text("see"), IMAGE)), ToolResultPart(call_id="2", parts=(IMAGE,))),
        user(text("go on")),
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert body["messages"][0]["content"] is None
    assert body["messages"][1:] == [
        {"role": "tool", "tool_call_id": "1", "content": "see"},
        {"role": "tool", "tool_call_id": "2", "content": "The result follows in the next user message."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Image from the result of tool call 1:"},
                image,
                {"type": "text", "text": "Image from the result of tool call 2:"},
                image,
                {"type": "text", "text": "go on"},
            ],
        },
    ]


def test_long_ids_are_shortened_alike() -> None:
    """An id that OpenAI would reject is shortened the same way in the call and in its result."""
    body, _ = write(assistant(call(LONG)), user(ToolResultPart(call_id=LONG, parts=(text("a"),))))
    short = body["messages"][0]["tool_calls"][0]["id"]
    assert len(short) <= 40
    assert body["messages"][1]["tool_call_id"] == short


def test_documents_and_media() -> None:
    """PDFs are files, text documents are text, and what the wire has no form for is replaced by a note."""
    kind = MediaKind.DOCUMENT
    body, dropped = write(
        user(
            MediaPart(kind=kind, mime_type="application/pdf", data="AAAA"),
            MediaPart(kind=kind, mime_type="text/plain", text="plain", name="a.txt"),
            MediaPart(kind=kind, mime_type="text/plain", data="aGk="),
            MediaPart(kind=kind, url="https://example.test/a.pdf"),
            MediaPart(kind=kind, file_id="file_1", family=Family.ANTHROPIC),
            MediaPart(kind=MediaKind.VIDEO, mime_type="video/mp4", data="AAAA"),
            MediaPart(kind=MediaKind.AUDIO, mime_type="audio/x-wav", data="AAAA"),
            MediaPart(kind=MediaKind.AUDIO, mime_type="audio/ogg", data="AAAA"),
        )
    )
    items = body["messages"][0]["content"]
    file = {"file_data": "data:application/pdf;base64,AAAA", "filename": "document.pdf"}
    assert items[0] == {"type": "file", "file": file}
    assert [item["text"] for item in items if item["type"] == "text"] == [
        "a.txt:\n\nplain",
        "hi",
        "[document not included: https://example.test/a.pdf]",
        "[document not included: file_1]",
        "[video not included]",
        "[audio not included]",
    ]
    assert items[6] == {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    assert dropped == ["audio", "document_url", "file_id", "video"]


def test_content_of_another_family_is_named() -> None:
    """Reasoning, the provider's own blocks and tools, citations and unknown fields are dropped by name."""
    family = Family.ANTHROPIC
    body, dropped = write(
        assistant(ReasoningPart(family=family, block={"type": "thinking"})),
        assistant(
            ReasoningPart(family=family, block={"type": "thinking"}),
            text("a", extras={"citations": [1]}, family=family),
            ForeignPart(family=family, kind="web_search_tool_result", block={}),
            text("b"),
        ),
        tools=(ProviderTool(family=family, kind="web_search", block={}),),
        tool_choice=ToolChoice(mode=ToolMode.AUTO, parallel=False),
        extras={"container": "c", "metadata": {}},
        sampling=Sampling(top_k=3, choices=2, stop=("1", "2", "3", "4", "5")),
    )
    assert body == {
        "model": "gpt-4o",
        "messages": [
            {"role": "assistant", "content": "a\n\nb"},
            {"role": "user", "content": body["messages"][1]["content"]},
        ],
        "stop": ["1", "2", "3", "4"],
    }
    expected = ["citations", "container", "n", "prefill", "reasoning", "stop", "top_k", "web_search"]
    expected.append("web_search_tool_result")
    assert dropped == expected


def test_a_required_call_of_several_tools_has_only_these_tools() -> None:
    """A choice among several tools is written with these tools alone, which every server understands."""
    tools = tuple(ToolDefinition(name=name) for name in "abc")
    body, dropped = write(tools=tools, tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=("a", "b")))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["a", "b"]
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert (body["tool_choice"], dropped) == ("required", [])


def test_json_output_has_a_valid_name() -> None:
    """A schema is written with a name that OpenAI accepts, and is strict if OpenAI's strict mode accepts it."""
    schema = {"type": "object"}
    body, _ = write(output=JsonOutput(schema=schema))
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    body, dropped = write(output=JsonOutput(schema=schema, name="my answer!", strict=True))
    assert body["response_format"]["json_schema"] == {"name": "my_answer_", "schema": schema}
    assert dropped == ["strict"]
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    body, dropped = write(output=JsonOutput(schema=closed))
    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": closed, "strict": True}
    assert dropped == []


def test_json_without_a_schema_is_also_said_in_words() -> None:
    """OpenAI rejects the format json_object unless a message mentions JSON."""
    body, _ = write(user(text("a")), output=JsonOutput(), system=(text("Be brief."),))
    assert body["messages"][0]["content"] == "Be brief.\n\nAnswer with JSON."
    body, _ = write(user(text("a")), output=JsonOutput())
    assert body["messages"][0] == {"role": "system", "content": "Answer with JSON."}


def test_a_stream_always_asks_for_its_usage() -> None:
    """A stream is asked for its usage, whatever the client wants, because the gateway counts it."""
    body, _ = write(is_stream=True, wants_usage=False)
    assert body["stream_options"] == {"include_usage": True}


def test_a_long_user_id_is_hashed() -> None:
    """A user's id that OpenAI would reject is replaced by its hash."""
    assert len(write(user="u" * 100)[0]["user"]) <= 64
    assert write(user="ann")[0]["user"] == "ann"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "max_tokens"),
        ("deepseek-chat", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("openai/gpt-5.1", "max_completion_tokens"),
        ("gpt-5-chat-latest", "max_tokens"),
        ("solo1", "max_tokens"),
    ],
)
def test_the_limit_has_the_name_that_the_model_knows(model: str, name: str) -> None:
    """OpenAI's reasoning models get max_completion_tokens, and all others max_tokens."""
    messages = [{"role": "user", "content": "…"}]  # without turns, the request has a message all the same
    sampling = Sampling(max_tokens=4_000)
    assert write(model=model, sampling=sampling)[0] == {"model": model, "messages": messages, name: 4_000}


@pytest.mark.parametrize(
    ("model", "effort"), [("o3", "low"), ("gpt-5.1", "none"), ("gpt-4.1", None), ("llama-4", None)]
)
def test_a_small_limit_leaves_no_room_for_reasoning(model: str, effort: str | None) -> None:
    """With a small output limit, a model reasons as little as it can, unless the client asks for more."""
    body, dropped = write(model=model, sampling=Sampling(max_tokens=300))
    assert (body.get("reasoning_effort"), dropped) == (effort, [])
    asked = ReasoningRequest(effort="high")
    body, _ = write(model=model, sampling=Sampling(max_tokens=300), reasoning=asked)
    assert body.get("reasoning_effort") == (None if model == "gpt-4.1" else "high")


def test_reasoning_models_get_no_sampling() -> None:
    """Parameters that OpenAI's reasoning models reject are dropped."""
    sampling = Sampling(temperature=0.5, top_p=1.0, stop=("x",), presence_penalty=1.0)
    tools = (ToolDefinition(name="f"),)
    body, dropped = write(model="o3", sampling=sampling, tools=tools, tool_choice=ToolChoice(parallel=False))
    assert sorted(body) == ["messages", "model", "tools", "top_p"]
    assert dropped == ["parallel_tool_calls", "presence_penalty", "stop", "temperature"]


@pytest.mark.parametrize(
    ("model", "request_", "effort", "is_lost"),
    [
        ("o3", {"budget_tokens": 1024}, "low", False),
        ("o3", {"budget_tokens": 10_000}, "medium", False),
        ("o3", {"budget_tokens": 32_000}, "high", False),
        ("o3", {"effort": "minimal"}, "low", False),
        ("o3", {"effort": "max"}, "high", False),
        ("o3", {"effort": "strange"}, None, True),
        ("o3", {"is_enabled": True}, None, False),
        ("o3", {"is_enabled": False}, "low", True),
        ("gpt-5.1", {"is_enabled": False}, "none", False),
        ("deepseek-chat", {"effort": "high"}, "high", False),
        ("gpt-4o", {"budget_tokens": 1024}, None, True),
        ("gpt-4o", {"is_enabled": False}, None, False),
    ],
)
def test_reasoning_becomes_an_effort(model: str, request_: dict[str, Any], effort: str | None, is_lost: bool) -> None:
    """A budget or an effort becomes one that the model knows; if it knows none, the reasoning is dropped."""
    body, dropped = write(model=model, reasoning=ReasoningRequest(**request_))
    assert body.get("reasoning_effort") == effort
    assert dropped == (["reasoning"] if is_lost else [])


def test_the_beginning_of_an_answer_is_to_be_continued() -> None:
    """Anthropic continues a last message of the assistant. OpenAI would begin another one: it is told to go on."""
    body, dropped = write(user(text("hi")), assistant(text("{")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "exactly where it ends" in body["messages"][-1]["content"]
    assert dropped == ["prefill"]


def test_tools_that_the_client_runs_are_functions() -> None:
    """Tools of Anthropic's API that the client runs, such as bash, become functions; those that Anthropic runs are named."""
    kinds = {"bash": "bash", "text_editor": "str_replace_based_edit_tool", "memory": "memory", "computer": "computer"}
    tools = tuple(
        ProviderTool(family=Family.ANTHROPIC, kind=kind, block={"type": f"{kind}_20250124", "name": name})
        for kind, name in kinds.items()
    )
    body, dropped = write(user(text("hi")), tools=tools)
    check_request("chat", body)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["bash", "str_replace_based_edit_tool", "memory"]
    assert dropped == ["computer"]
