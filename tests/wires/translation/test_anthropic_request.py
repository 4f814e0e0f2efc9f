"""A request of Anthropic's Messages API says the same after it was read, and comes back exactly as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from anthropic.types import ContentBlockParam, ToolUnionParam, message_create_params, tool_result_block_param
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam, beta_tool_result_block_param
from anthropic.types.beta import message_create_params as beta_params
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR
from rung.wires.translation.chat import CHAT_TRANSLATOR
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    JsonOutput,
    MediaKind,
    MediaPart,
    ProviderTool,
    ReasoningPart,
    ReasoningRequest,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    ToolResultPart,
)
from tests.wires.test_wires import TABLES
from tests.wires.translation.anthropic_types import JSON, members_of, values_of

if TYPE_CHECKING:
    from rung.wires.translation.conversation import Conversation, Part

OWN = Family.ANTHROPIC
BLOCKS = members_of(
    ContentBlockParam, BetaContentBlockParam, tool_result_block_param.Content, beta_tool_result_block_param.Content
)
EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}
# Older fields, which clients still send and the types of this SDK no longer have.
OLDER = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 1) | st.none(),
        "top_p": st.floats(0, 1) | st.integers(0, 1),
        "top_k": st.integers(0, 500),
        "stream": st.booleans(),
        "thinking": st.fixed_dictionaries({"type": st.just("enabled"), "budget_tokens": st.integers(1024, 9999)}),
        "output_format": st.fixed_dictionaries({"type": st.just("json_schema"), "schema": st.just({"type": "object"})}),
        "field_of_tomorrow": JSON,
    },
)


def read(**fields: Any) -> Conversation:
    return ANTHROPIC_TRANSLATOR.read_request({"model": "m", "max_tokens": 9, "messages": [], **fields})


def read_parts(*blocks: dict[str, Any]) -> tuple[Part, ...]:
    return read(messages=[{"role": "user", "content": list(blocks)}]).turns[0].parts


def rewritten(body: dict[str, Any]) -> dict[str, Any]:
    written = ANTHROPIC_TRANSLATOR.write_request(ANTHROPIC_TRANSLATOR.read_request(body))
    assert written.dropped == ()
    return written.body


@pytest.mark.parametrize(
    "params",
    [message_create_params.MessageCreateParamsBase, beta_params.MessageCreateParamsBase],
    ids=["messages", "beta"],
)
@given(data=st.data())
def test_every_body_of_the_sdk_comes_back(params: Any, data: st.DataObject) -> None:
    """A request with any fields that the SDK's types have is written as it was read."""
    body = {**data.draw(values_of(params)), **data.draw(OLDER)}
    before = json.dumps(body)
    assert rewritten(body) == body
    assert json.dumps(body) == before


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_every_block_comes_back(kind: Any, data: st.DataObject) -> None:
    """A block of any type comes back as it was, in a message and in a tool result."""
    block = data.draw(values_of(kind))
    result = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    body = {"messages": [{"role": "user", "content": [block, result]}]}
    assert rewritten(body) == body


@pytest.mark.parametrize("kind", members_of(ToolUnionParam, BetaToolUnionParam), ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_every_tool_comes_back(kind: Any, data: st.DataObject) -> None:
    """A tool of any type comes back as it was."""
    body = {"messages": [], "tools": [data.draw(values_of(kind))]}
    assert rewritten(body) == body


@given(body=TABLES)
def test_any_json_is_read(body: dict[str, Any]) -> None:
    """A request of any shape is read and written without an error, and the result is JSON."""
    conversation = ANTHROPIC_TRANSLATOR.read_request(body)
    json.dumps(ANTHROPIC_TRANSLATOR.write_request(conversation).body)


def test_deep_arguments_are_read() -> None:
    """Arguments that are nested as deeply as a parser allows come back."""
    deep = orjson.loads("[" * 1000 + "]" * 1000)
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": deep}}
    body = {"messages": [{"role": "assistant", "content": [call]}]}
    assert rewritten(body)["messages"][0]["content"][0]["input"]["x"] is deep


def test_system_and_turns() -> None:
    """System blocks keep their cache breakpoints, and each message is a turn of its speaker."""
    found = read(
        system=[{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Rules", "cache_control": EPHEMERAL}],
        messages=[
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "system", "content": "Now in French."},
        ],
    )
    assert [(part.text, part.cache) for part in found.system] == [("Be brief.", None), ("Rules", EPHEMERAL)]
    assert [turn.speaker for turn in found.turns] == [Speaker.USER, Speaker.ASSISTANT, Speaker.SYSTEM]
    assert [turn.parts for turn in found.turns] == [
        (TextPart(text="Hi"),),
        (TextPart(text="Hello", family=OWN),),
        (TextPart(text="Now in French."),),
    ]


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"kind": MediaKind.IMAGE, "mime_type": "image/png", "data": "aGk="},
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://a/b"}}, {"url": "https://a/b"}),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, {"file_id": "file_1"}),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
                "title": "T",
                "context": "C",
                "citations": {"enabled": True},
            },
            {
                "kind": MediaKind.DOCUMENT,
                "data": "aGk=",
                "name": "T",
                "extras": {"context": "C", "citations": {"enabled": True}},
            },
        ),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}, {"text": "x"}),
        ({"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}, {"url": "https://a/b.pdf"}),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
            {"text": "x"},
        ),
    ],
)
def test_media(block: dict[str, Any], fields: dict[str, Any]) -> None:
    """Each source of an image or a document has a neutral form."""
    (part,) = read_parts(block)
    assert isinstance(part, MediaPart)
    assert {name: getattr(part, name) for name in fields} == fields


def test_calls_and_results() -> None:
    """A call has its arguments as JSON text; a result has its parts, its error flag and its cache breakpoint."""
    call, result = read_parts(
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": 1, "a": "ü"}, "caller": {"type": "direct"}},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": "no",
            "is_error": True,
            "cache_control": EPHEMERAL,
        },
    )
    assert call == ToolCallPart(
        id="toolu_1", name="f", arguments='{"b":1,"a":"ü"}', extras={"caller": {"type": "direct"}}, family=OWN
    )
    assert result == ToolResultPart(
        call_id="toolu_1", parts=(TextPart(text="no"),), is_error=True, cache=EPHEMERAL, family=OWN
    )


def test_search_result_in_a_tool_result_is_text() -> None:
    """The text of a search result in a tool result is there for other wires."""
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "words"}]}
    (result,) = read_parts({"type": "tool_result", "tool_use_id": "a", "content": [found]})
    assert isinstance(result, ToolResultPart)
    assert result.parts[0] == TextPart(text="t\ns\nwords", extras={"search_result": found}, family=OWN)


def test_own_content_is_kept_as_it_is() -> None:
    """Thinking and the blocks of the provider's own tools are kept as they are, with their kind."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    search = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
    assert read_parts(thinking, search) == (
        ReasoningPart(family=OWN, block=thinking, text="hm"),
        ForeignPart(family=OWN, block=search, kind="server_tool_use"),
    )


def test_tools() -> None:
    """A client's tool is a definition; a provider's tool is named without its version."""
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    own = {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True, "defer_loading": True}
    assert read(tools=[own, search]).tools == (
        ToolDefinition(
            name="f",
            description="d",
            schema={"type": "object"},
            strict=True,
            extras={"defer_loading": True},
            family=OWN,
        ),
        ProviderTool(family=OWN, block=search, kind="web_search"),
    )


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({"type": "auto"}, ToolChoice(mode=ToolMode.AUTO)),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(mode=ToolMode.REQUIRED, parallel=False)),
        ({"type": "tool", "name": "f"}, ToolChoice(mode=ToolMode.REQUIRED, names=("f",))),
        ({"type": "none"}, ToolChoice(mode=ToolMode.NONE)),
    ],
)
def test_tool_choice(choice: dict[str, Any], found: ToolChoice) -> None:
    """Each choice of tools has a neutral form."""
    assert read(tool_choice=choice).tool_choice == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            ReasoningRequest(is_enabled=True, budget_tokens=2048),
        ),
        (
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
            ReasoningRequest(is_enabled=True, effort="high", is_shown=False),
        ),
        ({"thinking": {"type": "disabled"}}, ReasoningRequest(is_enabled=False)),
        ({"output_config": {"effort": "low"}}, ReasoningRequest(effort="low")),
    ],
)
def test_reasoning(fields: dict[str, Any], found: ReasoningRequest) -> None:
    """Thinking and effort make one request for reasoning, and leave nothing behind."""
    conversation = read(**fields)
    assert conversation.reasoning == found
    assert conversation.extras == {}


@pytest.mark.parametrize("field", ["output_format", "output_config"])
def test_output_format(field: str) -> None:
    """A schema is found in the older and in the newer field."""
    wanted = {"type": "json_schema", "schema": {"type": "object"}}
    found = read(**{field: wanted if field == "output_format" else {"format": wanted}})
    assert found.output == JsonOutput(schema={"type": "object"})


def test_other_fields_are_extras() -> None:
    """Settings that only this API has are kept, and the user's id is found."""
    found = read(service_tier="auto", metadata={"user_id": "u"}, cache_control=EPHEMERAL)
    assert (found.user, dict(found.extras)) == ("u", {"service_tier": "auto", "cache_control": EPHEMERAL})


def test_a_search_result_is_text_for_other_wires() -> None:
    """A search result that the client gives comes back as it was, and other wires get its words."""
    block = {
        "type": "search_result",
        "title": "Cats",
        "source": "s",
        "content": [{"type": "text", "text": "They purr."}],
    }
    body = {"messages": [{"role": "user", "content": [block]}]}
    read = ANTHROPIC_TRANSLATOR.read_request(body)
    assert ANTHROPIC_TRANSLATOR.write_request(read).body == body
    other = CHAT_TRANSLATOR.write_request(read)
    assert other.body["messages"] == [{"role": "user", "content": "Cats\ns\nThey purr."}]
    assert "search_result" in other.dropped
