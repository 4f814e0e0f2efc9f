"""Requests of Gemini's wire: read, written back, and written for other wires."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
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
from rung.wires.translation.gemini import parse_path, request_path
from rung.wires.translation.gemini_request import read_request, write_request
from tests.wires.translation.gemini_bodies import JSON, REQUESTS

FEW = settings(deadline=None, max_examples=60)
STRUCTURE = frozenset(
    {
        "systemInstruction", "toolConfig", "generationConfig", "functionCallingConfig", "thinkingConfig", "parts",
        "contents", "tools", "functionDeclarations", "inlineData", "fileData", "functionCall", "functionResponse",
    }
)  # fmt: skip


def in_snake_case(value: Any) -> Any:
    """Return a request with its field names in snake_case, where they are not the client's own data."""
    if isinstance(value, list):
        return [in_snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", key) if key.isalpha() else key: in_snake_case(item)
        if key in STRUCTURE
        else item
        for key, item in value.items()
    }


def user(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.USER, parts=parts)


def assistant(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.ASSISTANT, parts=parts)


def text(words: str) -> TextPart:
    return TextPart(text=words)


def call(call_id: str, name: str = "read", arguments: str = '{"a":1}') -> ToolCallPart:
    return ToolCallPart(id=call_id, name=name, arguments=arguments)


def result(call_id: str, *parts: Any, **more: Any) -> ToolResultPart:
    return ToolResultPart(call_id=call_id, parts=parts, **more)


def foreign(*turns: Turn, model: str = "gemini-3-flash", **more: Any) -> Conversation:
    return Conversation(family=Family.ANTHROPIC, model=model, turns=turns, **more)


def contents(*turns: Turn, **more: Any) -> list[Any]:
    found: list[Any] = write_request(foreign(*turns, **more)).body["contents"]
    return found


@FEW
@given(body=REQUESTS)
def test_a_request_is_written_back_as_it_was(body: dict[str, Any]) -> None:
    """A request is the same after reading and writing, and nothing is dropped."""
    written = write_request(replace(read_request(body), model="m", is_stream=True))
    assert written.body == body
    assert written.dropped == ()


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request as it is written without its original."""
    return write_request(replace(read_request(body), original=None)).body


@FEW
@given(body=REQUESTS)
def test_the_neutral_form_loses_nothing(body: dict[str, Any]) -> None:
    """A request that is written from its neutral values says the same."""
    assert read_request(normal(body)) == read_request(body)


@FEW
@given(body=REQUESTS)
def test_both_spellings_are_read(body: dict[str, Any]) -> None:
    """A request in snake_case is written back in camelCase; an instruction that is not text stays as it is."""
    body = {key: value for key, value in body.items() if key != "systemInstruction"}
    assert normal(in_snake_case(body)) == normal(body)


KEYS = st.sampled_from(
    ["contents", "parts", "role", "text", "functionCall", "functionResponse", "name", "args", "response", "inlineData",
     "fileData", "tools", "functionDeclarations", "parameters", "type", "generationConfig", "thinkingConfig", "id",
     "systemInstruction", "toolConfig", "functionCallingConfig", "mode", "stopSequences", "responseMimeType", "thought"]
)  # fmt: skip
ODD = st.recursive(
    JSON, lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4), max_leaves=12
)


@FEW
@given(body=st.dictionaries(KEYS, ODD, max_size=5))
def test_no_request_fails(body: dict[str, Any]) -> None:
    """Any JSON object is read; the normal form of a request is its own normal form."""
    assert write_request(read_request(body)).body == body
    once = normal(body)
    assert normal(once) == once


@pytest.mark.parametrize(
    ("given_body", "normal_body"),
    [
        ({"systemInstruction": "be kind"}, {"systemInstruction": {"parts": [{"text": "be kind"}], "role": "user"}}),
        (
            {"system_instruction": {"parts": {"text": "be kind"}}},
            {"systemInstruction": {"parts": [{"text": "be kind"}], "role": "user"}},
        ),
        ({"generationConfig": {"candidateCount": 1, "temperature": None, "responseMimeType": "text/plain"}}, {}),
        (
            {"generation_config": {"thinking_config": {"thinking_level": "low"}}},
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
        ),
        (
            {"tools": [{"functionDeclarations": [{"name": "a"}], "googleSearch": {}}, {"functionDeclarations": [{"name": "b"}]}]},
            {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}]},
        ),
        (
            {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "now"}}]}]},
            {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "now", "args": {}}}]}]},
        ),
        ({"tools": [], "toolConfig": {}, "contents": [], "generationConfig": {}}, {}),
        (
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"result": "x"}}}]}]},
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}]},
        ),
    ],
)  # fmt: skip
def test_normal_forms(given_body: dict[str, Any], normal_body: dict[str, Any]) -> None:
    """These forms mean the same, and are written in one way after a change."""
    assert normal(given_body) == normal_body


def test_only_what_has_changed_is_written_anew() -> None:
    """A changed limit does not change the spelling of the other fields."""
    body = {
        "system_instruction": "be kind",
        "contents": [{"parts": [{"text": "a"}]}],
        "generation_config": {"maxOutputTokens": 9, "top_k": 3, "speechConfig": {}},
    }
    changed = replace(read_request(body), sampling=Sampling(max_tokens=7))
    assert write_request(changed).body == {
        "system_instruction": "be kind",
        "contents": [{"parts": [{"text": "a"}]}],
        "generationConfig": {"maxOutputTokens": 7, "speechConfig": {}},
    }


def test_pieces_of_a_streamed_answer_are_one_turn() -> None:
    """Consecutive contents of the model are one turn, with whole texts."""
    pieces: list[Any] = [
        {"text": "hel"}, {"text": "lo"}, {"functionCall": {"name": "now", "args": {}}}, {"text": ""},
    ]  # fmt: skip
    body = {"contents": [{"role": "model", "parts": [piece]} for piece in pieces]}
    (turn,) = read_request(body).turns
    assert turn.parts == (
        text("hello"),
        ToolCallPart(id="gemini_0_0", name="now", arguments="{}", family=Family.GEMINI),
    )


def test_what_a_request_says() -> None:
    """Every field with a neutral form is read into it."""
    read = read_request(
        {
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "contents": [
                {
                    "role": "user",
                    "parts": [
                        {"text": "hi"},
                        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                        {"fileData": {"fileUri": "gs://b/a.pdf"}},
                        {"fileData": {"fileUri": "https://example.com/a.mp4"}},
                    ],
                },
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
                        {"executableCode": {"code": "1"}},
                    ],
                },
            ],
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "read",
                            "description": "Read.",
                            "parameters": {
                                "type": "OBJECT",
                                "properties": {
                                    "n": {"type": "INTEGER", "nullable": True, "enum": ["1", "2"], "format": "enum"},
                                    "l": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
                                },
                                "propertyOrdering": ["n", "l"],
                            },
                        }
                    ]
                },
                {"googleSearch": {}},
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
            "generationConfig": {
                "maxOutputTokens": 7,
                "topK": 4.0,
                "stopSequences": ["x"],
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object"},
                "thinkingConfig": {"thinkingBudget": 0, "includeThoughts": False},
                "speechConfig": {"a": 1},
            },
            "safetySettings": [],
        }
    )
    assert read.system == (TextPart(text="be kind"),)
    first, second = read.turns
    assert [type(part) for part in first.parts] == [TextPart, MediaPart, MediaPart, MediaPart]
    assert [part.kind for part in first.parts[1:]] == [MediaKind.IMAGE, MediaKind.DOCUMENT, MediaKind.VIDEO]  # type: ignore[union-attr]  # media
    assert first.parts[2].file_id == "gs://b/a.pdf"  # type: ignore[union-attr]  # media
    assert first.parts[3].url == "https://example.com/a.mp4"  # type: ignore[union-attr]  # media
    assert isinstance(second.parts[0], ReasoningPart)
    assert isinstance(second.parts[1], ForeignPart)
    assert second.parts[1].kind == "executable_code"
    function, search = read.tools
    assert isinstance(function, ToolDefinition)
    assert function.schema == {
        "type": "object",
        "properties": {
            "n": {"type": ["integer", "null"], "enum": [1, 2, None]},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
    }
    assert search == ProviderTool(family=Family.GEMINI, block={"googleSearch": {}}, kind="google_search")
    assert read.tool_choice == ToolChoice(mode=ToolMode.REQUIRED, names=("read",))
    assert read.sampling == Sampling(max_tokens=7, top_k=4, stop=("x",))
    assert read.output == JsonOutput(schema={"type": "object"})
    assert read.reasoning == ReasoningRequest(is_enabled=False, is_shown=False)
    assert set(read.extras) == {"safetySettings", "generationConfig.speechConfig"}


def test_calls_without_ids_are_paired() -> None:
    """Parallel calls of one tool and their responses pair in order; responses with an id pair by it."""
    calls: list[Any] = [{"functionCall": {"name": name, "args": {}}} for name in ("read", "read", "write")]
    responses = [{"functionResponse": {"name": name, "response": {"n": 1}}} for name in ("write", "read", "read")]
    turns = read_request(
        {
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": calls},
                {"role": "user", "parts": responses},
                {"role": "model", "parts": [{"functionCall": {"name": "read", "id": "x"}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "y"}}}]},
            ]
        }
    ).turns
    ids = [part.id for part in turns[1].parts if isinstance(part, ToolCallPart)]
    results = [part.call_id for part in turns[2].parts if isinstance(part, ToolResultPart)]
    assert len(set(ids)) == 3
    assert results == [ids[2], ids[0], ids[1]]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", each) for each in ids)
    assert turns[4].parts == (ToolResultPart(call_id="x", name="read", parts=(text("y"),), family=Family.GEMINI),)


@pytest.mark.parametrize(
    ("response", "words", "is_error"),
    [
        ({"output": "fine"}, "fine", False),
        ({"result": "fine"}, "fine", False),
        ({"error": "bad"}, "bad", True),
        ({"output": {"a": 1}}, '{"a":1}', False),
        ({"a": 1, "error": None}, '{"a":1,"error":null}', False),
    ],
)
def test_the_text_of_a_response(response: dict[str, Any], words: str, is_error: bool) -> None:
    """Other wires get the output, the error, or the JSON of the response."""
    body = {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}]}
    part = read_request(body).turns[0].parts[0]
    assert isinstance(part, ToolResultPart)
    assert (part.parts, part.is_error) == ((text(words),), is_error)


def test_turns_of_another_wire_alternate() -> None:
    """Turns of a speaker are merged, empty texts are left out, and the first and last content are the user's."""
    assert contents() == [{"role": "user", "parts": [{"text": "Continue."}]}]
    assert contents(assistant(text("hello")), user(text("a")), user(text(""), text("b")), assistant(text("c"))) == [
        {"role": "user", "parts": [{"text": "…"}]},
        {"role": "model", "parts": [{"text": "hello"}]},
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}]},
        {
            "role": "user",
            "parts": [{"text": "Continue your last message exactly where it ends. Do not repeat any of it."}],
        },
    ]


def test_calls_and_results_of_another_wire() -> None:
    """The first call is signed, and all responses stand in the next content, in the order of the calls."""
    found = contents(
        user(text("go")),
        assistant(text("well"), call("t1"), call("t2", "write", "")),
        user(result("t2", text('{"ok":true}'))),
        user(result("t1", text("bad"), is_error=True), text("and?")),
    )
    assert found[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "well"},
                {
                    "functionCall": {"id": "t1", "name": "read", "args": {"a": 1}},
                    "thoughtSignature": "skip_thought_signature_validator",
                },
                {"functionCall": {"id": "t2", "name": "write", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "t1", "name": "read", "response": {"error": "bad"}}},
                {"functionResponse": {"id": "t2", "name": "write", "response": {"ok": True}}},
                {"text": "and?"},
            ],
        },
    ]


def test_broken_histories_of_another_wire() -> None:
    """A call without a result gets an error, a result without a call becomes text, broken arguments stay as text."""
    written = write_request(
        foreign(user(text("go")), assistant(call("t1", arguments="{")), user(result("t9", text("late"))))
    )
    assert written.body["contents"][1]["parts"][0]["functionCall"]["args"] == {"arguments": "{"}
    response, late = written.body["contents"][2]["parts"]
    assert "error" in response["functionResponse"]["response"]
    assert late == {"text": "[result of an earlier tool call]\nlate"}
    assert written.dropped == ("invalid_arguments", "tool_result")
    (response,) = contents(user(text("go")), assistant(call("t1")))[2]["parts"]
    assert "error" in response["functionResponse"]["response"]


@pytest.mark.parametrize(("model", "is_nested"), [("gemini-3-flash", True), ("gemini-2.5-pro", False)])
def test_media_in_results(model: str, is_nested: bool) -> None:
    """An image in a result is part of the response of a current model, and follows it for an older one."""
    image = MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="aGk=")
    inline = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    parts = contents(user(text("go")), assistant(call("t1")), user(result("t1", image)), model=model)[2]["parts"]
    response = {"id": "t1", "name": "read", "response": {"output": ""}}
    if is_nested:
        assert parts == [{"functionResponse": {**response, "parts": [inline]}}]
    else:
        assert parts == [{"functionResponse": response}, inline]


@pytest.mark.parametrize(
    ("part", "written", "dropped"),
    [
        (
            MediaPart(kind=MediaKind.IMAGE, url="https://example.com/a.webp"),
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.com/a.webp"}},
            (),
        ),
        (
            MediaPart(kind=MediaKind.IMAGE, url="data:image/jpg;base64,aGk="),
            {"inlineData": {"mimeType": "image/jpeg", "data": "aGk="}},
            (),
        ),
        (
            MediaPart(kind=MediaKind.IMAGE, url="data:image/gif;base64,aGk="),
            {"text": "[image was left out: image/gif]"},
            ("image",),
        ),
        (
            MediaPart(kind=MediaKind.DOCUMENT, mime_type="application/json", data="e30="),
            {"text": "{}"},
            (),
        ),
        (
            MediaPart(kind=MediaKind.IMAGE, url="http://example.com/a"),
            {"text": "[image: http://example.com/a]"},
            ("image_url",),
        ),
        (
            MediaPart(kind=MediaKind.DOCUMENT, file_id="file-1", family=Family.RESPONSES, name="a.pdf"),
            {"text": "[document: a.pdf]"},
            ("file_id", "filename"),
        ),
        (MediaPart(kind=MediaKind.DOCUMENT, text="words", name="Title"), {"text": "Title\n\nwords"}, ()),
        (
            MediaPart(kind=MediaKind.AUDIO, data="aGk=", detail="high"),
            {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
            ("detail",),
        ),
        (RefusalPart(text="no"), {"text": "no"}, ()),
    ],
)
def test_media_of_another_wire(part: Any, written: dict[str, Any], dropped: tuple[str, ...]) -> None:
    """Media is sent inline or by its https address; anything else becomes a text, and is named."""
    found = write_request(foreign(user(part)))
    assert found.body["contents"][0]["parts"] == [written]
    assert found.dropped == dropped


def test_what_is_dropped() -> None:
    """Whatever Gemini cannot say is named."""
    cache = {"type": "ephemeral"}
    written = write_request(
        foreign(
            user(TextPart(text="hi", cache=cache, extras={"citations": []}, family=Family.ANTHROPIC)),
            assistant(
                ReasoningPart(family=Family.ANTHROPIC, block={}),
                ForeignPart(family=Family.ANTHROPIC, block={}, kind="web_search_result"),
                text("ok"),
            ),
            Turn(speaker=Speaker.SYSTEM, parts=(text("be brief"),), name="sys"),
            tools=(
                ToolDefinition(name="read", strict=True, schema={"type": "object"}),
                ToolDefinition(name="read", description="again"),
                ProviderTool(family=Family.ANTHROPIC, block={}, kind="web_search"),
            ),
            tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=("read", "gone"), parallel=False),
            sampling=Sampling(choices=2, stop=tuple("abcdefg"), top_k=3),
            user="u1",
            extras={"metadata": {}},
        )
    )
    assert written.dropped == tuple(
        sorted(
            ["cache_control", "duplicate_tool", "reasoning", "web_search_result", "system_role", "name", "strict",
             "web_search", "parallel_tool_calls", "n", "stop", "user"]
        )
    )  # fmt: skip
    assert written.body == {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "ok"}]},
            {"role": "user", "parts": [{"text": "be brief"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        "generationConfig": {"topK": 3, "stopSequences": list("abcde")},
    }


def test_a_choice_without_functions_is_dropped() -> None:
    """Gemini rejects a choice between functions that do not exist."""
    written = write_request(foreign(user(text("hi")), tool_choice=ToolChoice(mode=ToolMode.REQUIRED)))
    assert "toolConfig" not in written.body
    assert written.dropped == ("tool_choice",)


@pytest.mark.parametrize(
    ("model", "reasoning", "config"),
    [
        ("gemini-3-flash", {"effort": "medium"}, {"thinkingLevel": "MEDIUM"}),
        ("gemini-3-pro-preview", {"effort": "medium"}, {"thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro", {"effort": "minimal"}, {"thinkingLevel": "LOW"}),
        ("gemini-flash-latest", {"effort": "max"}, {"thinkingLevel": "HIGH"}),
        ("gemini-3-flash", {"is_enabled": False}, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-flash", {"is_enabled": True, "budget_tokens": 31_999}, {"thinkingBudget": 24_576}),
        ("gemini-3-flash", {"is_enabled": True}, None),
        ("gemini-2.5-flash", {"effort": "low", "is_shown": True}, {"thinkingBudget": 1_024, "includeThoughts": True}),
        ("gemini-2.5-flash", {"is_enabled": False}, {"thinkingBudget": 0}),
        ("gemini-2.5-pro", {"is_enabled": False}, {"thinkingBudget": 128}),
        ("gemini-2.5-pro", {"is_enabled": True}, {"thinkingBudget": -1}),
        ("gemini-2.0-flash", {"effort": "high"}, None),
    ],
)
def test_reasoning_of_another_wire(model: str, reasoning: dict[str, Any], config: dict[str, Any] | None) -> None:
    """An effort is a level of current models and a budget of older ones."""
    written = write_request(foreign(user(text("hi")), model=model, reasoning=ReasoningRequest(**reasoning)))
    assert written.body.get("generationConfig", {}).get("thinkingConfig") == config
    assert ("reasoning" in written.dropped) == ("2.0" in model)


@pytest.mark.parametrize(("model", "is_kept"), [("gemini-3-flash", True), ("gemini-2.5-pro", False)])
def test_json_output_together_with_functions(model: str, is_kept: bool) -> None:
    """Only current models accept functions together with JSON output."""
    output = JsonOutput(schema={"type": "object"}, name="answer", description="An answer.")
    written = write_request(foreign(user(text("hi")), model=model, tools=(ToolDefinition(name="read"),), output=output))
    config = {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "description": "An answer."},
    }
    assert written.body.get("generationConfig") == (config if is_kept else None)
    assert written.dropped == (() if is_kept else ("response_format",))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", ("gemini-3-pro", "generateContent")),
        ("/v1/models/g:streamGenerateContent?alt=sse", ("g", "streamGenerateContent")),
        ("/v1beta/tunedModels/t:generateContent", ("tunedModels/t", "generateContent")),
        (
            "/v1/projects/p/locations/us-central1/publishers/google/models/gemini-3-pro:streamGenerateContent",
            ("gemini-3-pro", "streamGenerateContent"),
        ),
        ("/v1beta1/publishers/google/models/g:countTokens", ("g", "countTokens")),
        ("/v1beta/models", None),
        ("/v1/chat/completions", None),
        ("/v1beta/models/a/b:generateContent", None),
    ],
)
def test_paths(path: str, found: tuple[str, str] | None) -> None:
    """The path says the model and the method."""
    assert parse_path(path) == found


@given(model=st.text(st.characters(exclude_characters="/:", exclude_categories=["Cs"]), min_size=1, max_size=9))
def test_a_written_path_is_read(model: str) -> None:
    """The model of a written path is read from it."""
    assert parse_path(request_path(model, stream=True)) == (model, "streamGenerateContent")
    assert parse_path(request_path(model, stream=False)) == (model, "generateContent")


def test_an_object_stands_for_a_list_of_one() -> None:
    """Google accepts one content, part, tool or function without a list around it, and its examples are written so."""
    function = {"name": "look", "parametersJsonSchema": {"type": "object"}}
    single = {
        "contents": {"role": "user", "parts": {"text": "hello"}},
        "tools": {"functionDeclarations": function},
        "systemInstruction": {"parts": {"text": "Be brief."}},
    }
    lists = {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "tools": [{"functionDeclarations": [function]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    }
    read = read_request(single)
    assert read == read_request(lists)
    assert write_request(read).body == single
