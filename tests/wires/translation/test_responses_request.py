"""Requests of the Responses API survive the way through the neutral conversation, there and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    JsonOutput,
    MediaKind,
    ProviderTool,
    ReasoningPart,
    ReasoningRequest,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    ToolResultPart,
)
from rung.wires.translation.responses_request import read_request, write_request
from rung.wires.translation.self_contained import is_self_contained
from tests.wires.test_wires import ANYTHING, TABLES
from tests.wires.translation.responses_bodies import REQUEST

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


@SLOW
@given(body=REQUEST)
def test_a_request_comes_back_exactly(body: dict[str, Any]) -> None:
    """A request that is read and written again is the same, its source is unchanged, and nothing is dropped."""
    before = json.dumps(body)
    written = write_request(read_request(body))
    assert written.body == body
    assert written.dropped == ()
    assert json.dumps(body) == before


@SLOW
@given(body=REQUEST)
def test_the_neutral_values_say_the_whole_request(body: dict[str, Any]) -> None:
    """A request written from its neutral values alone has the same meaning as the request that was read."""
    read = read_request(body)
    again = read_request(write_request(replace(read, original=None)).body)
    assert _text(again.system) == _text(read.system)
    assert replace(again, system=()) == replace(read, system=())


def _text(system: tuple[TextPart, ...]) -> str:
    return "\n\n".join(part.text for part in system)


@SLOW
@given(
    body=TABLES
    | st.fixed_dictionaries({"input": st.lists(ANYTHING, max_size=4), "tools": st.lists(ANYTHING, max_size=3)})
)
def test_any_object_can_be_read(body: dict[str, Any]) -> None:
    """A reader makes a conversation of any JSON object, which its writer gives back, and others can be written of it."""
    read = read_request(body)
    assert write_request(read).body == body
    other = write_request(replace(read, family=Family.CHAT, original=None)).body
    assert json.loads(json.dumps(other)) == other
    is_self_contained(read_request(body))


@SLOW
@given(body=REQUEST, model=st.text(max_size=3))
def test_a_change_is_written_and_the_rest_stays(body: dict[str, Any], model: str) -> None:
    """A conversation for another model is the same request with that model."""
    assert write_request(replace(read_request(body), model=model)).body == {**body, "model": model}


def test_instructions_and_first_developer_messages_are_the_system_text() -> None:
    """Developer messages before the conversation are instructions; later ones stay where they are."""
    items = [
        {"role": "developer", "content": "two"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "three"},
    ]
    read = read_request({"model": "m", "instructions": "one", "input": items})
    assert [part.text for part in read.system] == ["one", "two"]
    assert [turn.speaker for turn in read.turns] == [Speaker.USER, Speaker.SYSTEM]


def test_items_of_the_assistant_are_one_turn() -> None:
    """Reasoning, texts and parallel calls that follow each other are one turn, and each result is one."""
    items: list[Any] = [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc_1", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    ]
    turns = read_request({"model": "m", "input": items}).turns
    assert [turn.speaker for turn in turns] == [Speaker.USER, Speaker.ASSISTANT, Speaker.USER, Speaker.USER]
    assert [type(part) for part in turns[1].parts] == [ReasoningPart, TextPart, ToolCallPart, ToolCallPart]
    assert turns[3].parts == (ToolResultPart(call_id="c2", parts=(TextPart(text="two"),)),)


def test_results_of_one_call_are_one_result() -> None:
    """A second output of the same call is added to the first: other wires allow one result of a call."""
    items = [
        {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "two"},
    ]
    result = read_request({"model": "m", "input": items}).turns[1].parts[0]
    assert isinstance(result, ToolResultPart)
    assert [part.text for part in result.parts] == ["one", "two"]


def test_outputs_of_patches_and_shells_are_results() -> None:
    """The result of a patch is at least its status, a failed one is an error, and a shell's outputs are JSON."""
    outputs = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    items = [
        {"type": "apply_patch_call_output", "call_id": "a", "status": "failed"},
        {"type": "shell_call_output", "call_id": "b", "output": outputs},
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "c",
            "status": "completed",
            "action": {"command": ["ls"]},
        },
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"},
    ]
    turns = read_request({"model": "m", "input": items}).turns
    results = [part for turn in turns for part in turn.parts if isinstance(part, ToolResultPart)]
    assert [(result.call_id, result.is_error) for result in results] == [("a", True), ("b", False), ("c", False)]
    assert [result.parts for result in results] == [
        (TextPart(text="failed"),),
        (TextPart(text=json.dumps(outputs, separators=(",", ":"))),),
        (TextPart(text="x"),),
    ]


def test_an_id_that_is_used_again_is_another_call() -> None:
    """The result of a later call with the same id is not added to the result of the first."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items = [
        item
        for text in ("one", "two")
        for item in (call, {"type": "function_call_output", "call_id": "c", "output": text})
    ]
    turns = read_request({"model": "m", "input": items}).turns
    assert [turn.speaker for turn in turns] == [Speaker.ASSISTANT, Speaker.USER] * 2
    written = write_request(replace(read_request({"model": "m", "input": items}), family=Family.CHAT, original=None))
    assert [item.get("output") for item in written.body["input"]] == [None, "one", None, "two"]


def test_a_custom_tool_is_a_function_with_one_text() -> None:
    """A custom tool becomes a function whose description has the grammar, and its calls have the text as an argument."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}
    body = {
        "model": "m",
        "tools": [{"type": "custom", "name": "patch", "description": "Edits.", "format": grammar}],
        "input": [{"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": 'say "a"\n'}],
    }
    read = read_request(body)
    (tool,) = read.tools
    assert isinstance(tool, ToolDefinition)
    assert tool.schema["required"] == ["input"]
    assert "start: /a+/" in tool.description
    (call,) = read.turns[0].parts
    assert isinstance(call, ToolCallPart)
    assert json.loads(call.arguments) == {"input": 'say "a"\n'}


def test_tools_have_unique_names() -> None:
    """A tool keeps its own name unless another namespace has the same, and tools that an item adds are tools."""
    function = {"type": "function", "name": "run", "parameters": None, "strict": False}
    spaces = [{"type": "namespace", "name": name, "description": "", "tools": [function]} for name in ("a", "b")]
    lone = {"type": "namespace", "name": "c", "description": "", "tools": [{**function, "name": "stop"}]}
    items = [
        {"type": "additional_tools", "role": "developer", "tools": [lone]},
        {"type": "function_call", "call_id": "1", "namespace": "b", "name": "run", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "namespace": "c", "name": "stop", "arguments": "{}"},
    ]
    read = read_request({"model": "m", "tools": [*spaces, {"type": "web_search"}], "input": items})
    assert [getattr(tool, "name", "") for tool in read.tools] == ["a__run", "b__run", "stop", ""]
    assert isinstance(read.tools[-1], ProviderTool)
    assert [part.name for part in read.turns[0].parts if isinstance(part, ToolCallPart)] == ["b__run", "stop"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice(mode=ToolMode.AUTO)),
        ("none", ToolChoice(mode=ToolMode.NONE)),
        ("required", ToolChoice(mode=ToolMode.REQUIRED)),
        ({"type": "function", "name": "f"}, ToolChoice(mode=ToolMode.REQUIRED, names=("f",))),
        ({"type": "custom", "name": "f"}, ToolChoice(mode=ToolMode.REQUIRED, names=("f",))),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            ToolChoice(mode=ToolMode.AUTO, names=("f",)),
        ),
        ({"type": "web_search"}, ToolChoice()),
    ],
)
def test_tool_choices_are_read(choice: Any, expected: ToolChoice) -> None:
    """A choice of the client's tools is neutral; the choice of a tool of the provider is kept for this wire alone."""
    read = read_request({"model": "m", "input": "hi", "tool_choice": choice})
    assert read.tool_choice == expected
    assert ("tool_choice" in read.extras) == (expected == ToolChoice())


def test_parameters_are_read() -> None:
    """The format of the output, the effort and the sampling have neutral values; the rest is kept under its path."""
    schema = {"type": "object"}
    read = read_request(
        {
            "model": "m",
            "input": "hi",
            "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}, "verbosity": "low"},
            "reasoning": {"effort": "xhigh", "summary": "auto", "context": "all_turns"},
            "max_output_tokens": 9,
            "temperature": 0.5,
            "safety_identifier": "u",
            "store": False,
        }
    )
    assert read.output == JsonOutput(schema=schema, name="n")
    assert read.reasoning == ReasoningRequest(effort="max", is_shown=True)
    assert (read.sampling.max_tokens, read.sampling.temperature, read.user) == (9, 0.5, "u")
    assert read.extras == {"text.verbosity": "low", "reasoning.context": "all_turns", "store": False}


def test_media_are_read() -> None:
    """Images, files and audio have their data, their address or the id of a file, and their types."""
    content = [
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "low"},
        {"type": "input_image", "image_url": "https://x.test/a.png"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "QUJD"},
        {"type": "input_file", "file_id": "file_1"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
        {"type": "refusal", "refusal": "no"},
        {"type": "input_hologram"},
    ]
    parts: list[Any] = list(read_request({"input": [{"role": "user", "content": content}]}).turns[0].parts)
    assert [getattr(part, "mime_type", None) for part in parts[:5]] == [
        "image/png",
        "",
        "application/pdf",
        "",
        "audio/mpeg",
    ]
    assert [getattr(part, "data", None) for part in parts[:5]] == ["QUJD", "", "QUJD", "", "QUJD"]
    assert parts[1].url == "https://x.test/a.png"
    assert parts[3].file_id == "file_1"
    assert parts[4].kind is MediaKind.AUDIO
    assert parts[5] == RefusalPart(text="no")
    assert isinstance(parts[6], ForeignPart)


def test_media_are_written_from_their_values() -> None:
    """Parts that are written from their neutral values alone have all of their fields."""
    point = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    content = [
        {"type": "input_text", "text": "look", **point},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "low", **point},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD", "detail": "high"},
        {"type": "input_file", "file_url": "https://x.test/a.pdf"},
        {"type": "input_file", "file_id": "file_2", "filename": "b.pdf"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "input_hologram", "data": "x"},
    ]
    read = replace(read_request({"model": "m", "input": [{"role": "user", "content": content}]}), original=None)
    assert write_request(read).body["input"] == [{"type": "message", "role": "user", "content": content}]


@pytest.mark.parametrize(
    "body",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": {"id": "conv_1"}},
        {"prompt": {"id": "pmpt_1"}},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"id": "msg_1"}]},
        {"input": [{"type": "compaction", "encrypted_content": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        {
            "input": [
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "file_id": "f"}]}
            ]
        },
    ],
)
def test_a_request_that_refers_to_its_provider_is_not_self_contained(body: dict[str, Any]) -> None:
    """A stored response, conversation, prompt, item or file, and a sealed summary, are only at the provider."""
    assert not is_self_contained(read_request({"model": "m", "input": "hi", **body}))


def test_a_request_with_its_whole_history_is_self_contained() -> None:
    """A request whose items say everything is self-contained, also with reasoning and null references."""
    items = [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "rs", "summary": []}]
    assert is_self_contained(read_request({"model": "m", "input": items, "previous_response_id": None}))
    assert is_self_contained(read_request({"model": "m", "input": "hi"}))
