"""Requests of other wires keep to the rules of Anthropic's Messages API, and name what it cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR
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
from tests.wires.translation.anthropic_rules import check
from tests.wires.translation.neutral_conversations import foreign_conversations

CACHE = {"type": "ephemeral"}
READ = ToolDefinition(name="read", schema={"type": "object"})


def user(*parts: Part) -> Turn:
    return Turn(speaker=Speaker.USER, parts=parts)


def assistant(*parts: Part) -> Turn:
    return Turn(speaker=Speaker.ASSISTANT, parts=parts)


def text(words: str) -> TextPart:
    return TextPart(text=words)


def call(call_id: str, arguments: str = "{}") -> ToolCallPart:
    return ToolCallPart(id=call_id, name="read", arguments=arguments)


def result(call_id: str, words: str = "ok") -> ToolResultPart:
    return ToolResultPart(call_id=call_id, parts=(text(words),))


def written(*turns: Turn, **fields: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    conversation = Conversation(family=Family.CHAT, model="m", turns=turns or (user(text("Hi")),), **fields)
    found = ANTHROPIC_TRANSLATOR.write_request(conversation)
    check(found.body)
    return found.body, found.dropped


def contents(*turns: Turn) -> list[list[dict[str, Any]]]:
    """The blocks of each message, without the cache breakpoint of the last one."""
    body, _ = written(*turns)
    found = [[dict(block) for block in message["content"]] for message in body["messages"]]
    assert found[-1][-1].pop("cache_control") == CACHE
    return found


@given(conversation=foreign_conversations(Family.RESPONSES))
def test_the_api_accepts_every_conversation(conversation: Conversation) -> None:
    """Whatever another wire says, the request keeps to all rules of the API, and is the same each time."""
    found = ANTHROPIC_TRANSLATOR.write_request(conversation)
    check(found.body)
    json.dumps(found.body)
    assert list(found.dropped) == sorted(set(found.dropped))
    assert ANTHROPIC_TRANSLATOR.write_request(conversation) == found


@given(conversation=foreign_conversations(Family.GEMINI))
def test_a_written_request_comes_back(conversation: Conversation) -> None:
    """A request from another wire is a valid request of this one: it is read and written without a change."""
    body = ANTHROPIC_TRANSLATOR.write_request(conversation).body
    assert ANTHROPIC_TRANSLATOR.write_request(ANTHROPIC_TRANSLATOR.read_request(body)).body == body


def test_turns_of_one_speaker_are_merged() -> None:
    """Results that came as separate turns stand in one message, before the text that came with them."""
    assert contents(
        user(text("Go")),
        assistant(text("I read.")),
        assistant(call("a"), call("b")),
        user(text("Hurry")),
        user(result("b")),
        user(result("a")),
    ) == [
        [{"type": "text", "text": "Go"}],
        [
            {"type": "text", "text": "I read."},
            {"type": "tool_use", "id": "a", "name": "read", "input": {}},
            {"type": "tool_use", "id": "b", "name": "read", "input": {}},
        ],
        [
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "ok"}]},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "ok"}]},
            {"type": "text", "text": "Hurry"},
        ],
    ]


def test_a_missing_result_is_replaced() -> None:
    """A call without a result gets one that says so, and a result without a call becomes text."""
    found = contents(user(text("Go")), assistant(call("a")), user(result("lost", "words")))
    assert found[-1] == [
        {"type": "tool_result", "tool_use_id": "a", "content": MISSING_RESULT_TEXT, "is_error": True},
        {"type": "text", "text": "[result of an earlier tool call]\nwords"},
    ]
    assert written(user(result("lost")))[1] == ("tool_result",)


def test_ids_are_valid_and_unique() -> None:
    """An id with other characters, or one that is used again, is rewritten together with its result."""
    turns = [assistant(call("a.b")), user(result("a.b")), assistant(call("a:b")), user(result("a:b"))]
    found = contents(user(text("Go")), *turns, assistant(call("a.b")), user(result("a.b", "third")))
    assert [found[index][0]["id"] for index in (1, 3, 5)] == ["a_b", "a_b_2", "a_b_3"]
    assert [found[index][0]["tool_use_id"] for index in (2, 4, 6)] == ["a_b", "a_b_2", "a_b_3"]


def test_system_turn_becomes_user_text() -> None:
    """Instructions in the middle of a conversation are the user's text in a system tag."""
    turns = [user(text("Go")), Turn(speaker=Speaker.SYSTEM, parts=(text("Be brief."),))]
    assert contents(*turns)[0][1] == {"type": "text", "text": "<system>\nBe brief.\n</system>"}


def test_conversation_of_the_assistant_alone() -> None:
    """A conversation that begins and ends with the assistant gets messages of the user around it."""
    assert [blocks[0]["text"] for blocks in contents(assistant(text("Hello"), text(" ")))] == [
        "…",
        "Hello",
        "Continue.",
    ]


@pytest.mark.parametrize(("arguments", "found"), [("", {}), ('{"a":1}', {"a": 1}), ('{"a":', {"raw": '{"a":'})])
def test_arguments(arguments: str, found: dict[str, Any]) -> None:
    """Arguments are an object; those that are none stand in the field raw, and are named."""
    body, dropped = written(assistant(call("a", arguments)), user(result("a")))
    assert body["messages"][1]["content"][0]["input"] == found
    assert dropped == (("invalid_arguments",) if "raw" in found else ())


@pytest.mark.parametrize(
    ("part", "block", "name"),
    [
        (
            MediaPart(kind=MediaKind.IMAGE, url="data:image/gif;base64,R0lGODlh"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}},
            "",
        ),
        (
            MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="/9j/4AAQ", detail="high"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
            "detail",
        ),
        (
            MediaPart(kind=MediaKind.IMAGE, url="https://a/b.png"),
            {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
            "",
        ),
        (
            MediaPart(kind=MediaKind.DOCUMENT, mime_type="text/csv", data="YSxi", name="t.csv"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
                "title": "t.csv",
            },
            "",
        ),
        (
            MediaPart(kind=MediaKind.DOCUMENT, mime_type="application/pdf", data="JVBERi0x"),
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}},
            "",
        ),
        (MediaPart(kind=MediaKind.IMAGE, url="http://a/b.png"), "[image was left out]", "image"),
        (MediaPart(kind=MediaKind.IMAGE, file_id="f", family=Family.CHAT), "[image was left out]", "image"),
        (MediaPart(kind=MediaKind.DOCUMENT, mime_type="x/docx", data="UEsD"), "[document was left out]", "document"),
        (MediaPart(kind=MediaKind.AUDIO, mime_type="audio/wav", data="UklGRg=="), "[audio was left out]", "audio"),
        (MediaPart(kind=MediaKind.VIDEO, url="https://a/b.mp4"), "[video was left out]", "video"),
    ],
)
def test_media(part: MediaPart, block: dict[str, Any] | str, name: str) -> None:
    """Media that the API takes are written for it; others leave a text, and are named."""
    body, dropped = written(user(part))
    wanted = {"type": "text", "text": block} if isinstance(block, str) else block
    assert body["messages"][0]["content"] == [{**wanted, "cache_control": CACHE}]
    assert dropped == ((name,) if name else ())


def test_media_of_the_assistant_are_left_out() -> None:
    """The API takes no images in messages of the assistant."""
    image = MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="iVBORw0KGgo=")
    body, dropped = written(user(text("Draw")), assistant(image), user(text("Again")))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "[image was left out]"}]
    assert dropped == ("image",)


def test_content_of_other_families_is_dropped() -> None:
    """Reasoning and provider content of another family are dropped by name; refusals become text."""
    parts = (
        ReasoningPart(family=Family.RESPONSES, block={"encrypted_content": "x"}, text="hm"),
        ForeignPart(family=Family.RESPONSES, block={}, kind="web_search_call"),
        RefusalPart(text="I cannot."),
    )
    body, dropped = written(user(text("Hi")), assistant(*parts), user(text("Why?")))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "I cannot."}]
    assert dropped == ("reasoning", "web_search_call")


def test_own_thinking_is_written_back() -> None:
    """Thinking of this family in a conversation of another one is written as it is, and thinking may go on."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    conversation = Conversation(
        family=Family.CHAT,
        turns=(
            user(text("Go")),
            assistant(ReasoningPart(family=Family.ANTHROPIC, block=thinking), call("a")),
            user(result("a")),
        ),
        reasoning=ReasoningRequest(effort="low"),
    )
    body = ANTHROPIC_TRANSLATOR.write_request(conversation).body
    assert body["messages"][1]["content"][0] == thinking
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}


@pytest.mark.parametrize(
    ("reasoning", "limit", "budget"),
    [
        (ReasoningRequest(effort="minimal"), None, 1024),
        (ReasoningRequest(effort="low"), None, 2048),
        (ReasoningRequest(effort="medium"), None, 8192),
        (ReasoningRequest(effort="high"), None, 16_384),
        (ReasoningRequest(effort="high"), 4000, 2976),
        (ReasoningRequest(budget_tokens=300), None, 1024),
        (ReasoningRequest(effort="high"), 2000, 0),
        (ReasoningRequest(effort="none"), None, 0),
        (ReasoningRequest(is_enabled=False, effort="high"), None, 0),
    ],
)
def test_thinking_budget(reasoning: ReasoningRequest, limit: int | None, budget: int) -> None:
    """An effort becomes a budget that leaves room for the answer; where there is none, it is named as dropped."""
    body, dropped = written(reasoning=reasoning, sampling=Sampling(max_tokens=limit))
    assert body.get("thinking", {}).get("budget_tokens", 0) == budget
    assert dropped == (("reasoning_effort",) if limit == 2000 else ())


def test_thinking_does_not_begin_between_calls() -> None:
    """In the middle of a turn that began without thinking, and with a forced call, thinking is left out."""
    high = ReasoningRequest(effort="high")
    body, dropped = written(user(text("Go")), assistant(call("a")), user(result("a")), reasoning=high)
    assert ("thinking" in body, dropped) == (False, ("reasoning_effort",))
    body, dropped = written(reasoning=high, tools=(READ,), tool_choice=ToolChoice(mode=ToolMode.REQUIRED))
    assert ("thinking" in body, dropped) == (False, ("reasoning_effort",))


def test_sampling() -> None:
    """The temperature is limited to 1; parameters that the API does not have or rejects are named."""
    sampling = Sampling(
        temperature=1.5,
        top_p=0.9,
        top_k=40,
        stop=("END", "\n"),
        seed=1,
        presence_penalty=0.5,
        frequency_penalty=0,
        choices=2,
    )
    body, dropped = written(sampling=sampling)
    assert (body["max_tokens"], body["temperature"], body["top_k"], body["stop_sequences"]) == (32_000, 1, 40, ["END"])
    assert dropped == ("n", "presence_penalty", "seed", "stop", "temperature", "top_p")


def test_thinking_excludes_sampling() -> None:
    """With thinking, temperature, top_p and top_k are left out; only values other than the default are named."""
    sampling = Sampling(temperature=0.2, top_p=1, top_k=5)
    body, dropped = written(sampling=sampling, reasoning=ReasoningRequest(effort="low"))
    assert not {"temperature", "top_p", "top_k"} & set(body)
    assert dropped == ("temperature", "top_k")


def test_json_schema() -> None:
    """A schema goes to output_config; limits that the API does not support go to its descriptions."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    body, dropped = written(output=JsonOutput(schema=schema, name="answer"))
    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "{minimum: 1}"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    }
    assert dropped == ("schema_keywords",)


def test_json_without_schema() -> None:
    """JSON without a schema becomes an instruction at the end of the system prompt."""
    body, dropped = written(output=JsonOutput(), system=(text("Be brief."),))
    assert body["system"][0]["text"] == "Be brief."
    assert "JSON" in body["system"][-1]["text"]
    assert dropped == ("json_object",)


def test_cache_breakpoints() -> None:
    """The last system block and the last block of the conversation are cached; without a system prompt, the tools are."""
    turns = (user(text("Go"), text("Now")),)
    body, _ = written(*turns, system=(text("One"), text("Two")), tools=(READ,))
    assert [block.get("cache_control") for block in body["system"]] == [None, CACHE]
    assert [block.get("cache_control") for block in body["messages"][-1]["content"]] == [None, CACHE]
    assert "cache_control" not in body["tools"][0]
    assert written(*turns, tools=(READ,))[0]["tools"][0]["cache_control"] == CACHE


def test_tools() -> None:
    """A provider's tool is dropped by its kind, and a strict tool stays strict if the API can compile its schema."""
    strict = {"type": "object", "properties": {}, "additionalProperties": False}
    tools = (
        ToolDefinition(name="a", description="d", schema=strict, strict=True),
        ToolDefinition(name="b", schema={"properties": {"x": {"type": "string", "pattern": "a+"}}}, strict=True),
        ProviderTool(family=Family.RESPONSES, block={"type": "web_search"}, kind="web_search"),
    )
    body, dropped = written(tools=tools, system=(text("s"),))
    assert body["tools"] == [
        {"name": "a", "description": "d", "input_schema": strict, "strict": True},
        {"name": "b", "input_schema": {"type": "object", "properties": {"x": {"type": "string", "pattern": "a+"}}}},
    ]
    assert dropped == ("strict", "web_search")


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (ToolChoice(mode=ToolMode.AUTO, parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(parallel=True), {"type": "auto", "disable_parallel_tool_use": False}),
        (ToolChoice(mode=ToolMode.NONE, parallel=False), {"type": "none"}),
        (ToolChoice(mode=ToolMode.REQUIRED, names=("read",)), {"type": "tool", "name": "read"}),
        (ToolChoice(mode=ToolMode.REQUIRED), {"type": "any"}),
    ],
)
def test_tool_choice(choice: ToolChoice, found: dict[str, Any]) -> None:
    """Each choice of tools is written in the words of the API."""
    assert written(tools=(READ,), tool_choice=choice)[0]["tool_choice"] == found


def test_choice_of_several_tools() -> None:
    """A choice of several tools leaves only these in the request."""
    tools = tuple(ToolDefinition(name=name) for name in ("a", "b", "c"))
    body, _ = written(tools=tools, tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=("a", "c")))
    assert ([tool["name"] for tool in body["tools"]], body["tool_choice"]) == (["a", "c"], {"type": "any"})


def test_calls_without_tools() -> None:
    """A history with calls defines the called tools, which the model then must not call."""
    body, _ = written(user(text("Go")), assistant(call("a")), user(result("a")))
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(("name", "is_sent"), [("user-1", True), ("a@example.com", False), ("+49 30 123456", False)])
def test_user(name: str, is_sent: bool) -> None:
    """The user's id is sent, unless the API takes it for an address or a number."""
    body, dropped = written(user=name)
    assert (body.get("metadata"), dropped) == (({"user_id": name}, ()) if is_sent else (None, ("user",)))


def test_extras_are_named() -> None:
    """Settings of another family are named, unless they ask for nothing."""
    assert written(extras={"logprobs": True, "store": False, "logit_bias": {}, "prompt_cache_key": "k"})[1] == (
        "logprobs",
        "prompt_cache_key",
    )
