"""Conversations of another family are made consistent before any wire writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.wires.translation.anthropic_client_tools import as_function
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    MediaKind,
    MediaPart,
    ProviderTool,
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
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.foreign_request import consistent
from rung.wires.translation.paired_turns import pair_turns
from rung.wires.translation.registry import TRANSLATED_WIRES, translator_of
from tests.wires.translation.upstream_rules import check_request

LOOK = ToolDefinition(name="look", schema={"type": "object"})
SEARCH = ProviderTool(family=Family.ANTHROPIC, block={}, kind="web_search")


def user(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.USER, parts=parts)


def model(*parts: Any) -> Turn:
    return Turn(speaker=Speaker.ASSISTANT, parts=parts)


def call(call_id: str) -> ToolCallPart:
    return ToolCallPart(id=call_id, name="look", arguments="{}")


def result(call_id: str, text: str = "found") -> ToolResultPart:
    return ToolResultPart(call_id=call_id, parts=(TextPart(text=text),))


def paired(*turns: Turn) -> tuple[list[tuple[str, Any]], set[str]]:
    """Return who says what, and what is named as dropped."""
    dropped: set[str] = set()
    found = pair_turns(turns, dropped)
    said = [(turn.speaker.value, part) for turn in found for part in turn.parts]
    assert pair_turns(found, set()) is found
    return said, dropped


def test_turns_in_order_stay_as_they_are() -> None:
    """Calls whose results follow, in any order and beside other content, are not changed."""
    turns = (
        user(TextPart(text="go")),
        model(call("a"), call("b")),
        user(TextPart(text="look"), result("b")),
        user(result("a")),
        model(TextPart(text="done"), RefusalPart(text="no")),
    )
    assert pair_turns(turns, set()) is turns


def test_a_call_without_a_result_gets_one() -> None:
    """The result says that it was lost, as an error."""
    said, dropped = paired(model(call("a")), user(TextPart(text="and?")))
    lost = ToolResultPart(call_id="a", name="look", parts=(TextPart(text=MISSING_RESULT_TEXT),), is_error=True)
    assert said == [("assistant", call("a")), ("user", lost), ("user", TextPart(text="and?"))]
    assert not dropped


def test_a_result_without_a_call_is_text() -> None:
    """The text of the result stays, and it is named that it is no result any more."""
    image = MediaPart(kind=MediaKind.IMAGE, data="AAAA")
    orphan = ToolResultPart(call_id="x", parts=(TextPart(text="late"), image))
    said, dropped = paired(user(orphan))
    assert said == [("user", TextPart(text="[result of an earlier tool call]\nlate\n[image]"))]
    assert dropped == {"tool_result"}


def test_a_second_result_of_a_call_is_text() -> None:
    """One call has one result."""
    said, dropped = paired(model(call("a")), user(result("a"), result("a", "again")))
    assert said[1:] == [("user", result("a")), ("user", TextPart(text="[result of an earlier tool call]\nagain"))]
    assert dropped == {"tool_result"}


def test_ids_that_are_used_again_become_unique() -> None:
    """Each result goes to the call of its turn, also if a server gives its calls the same id, or none."""
    said, _ = paired(
        model(call("a"), call("")), user(result("a", "1"), result("", "2")), model(call("a")), user(result("a", "3"))
    )
    assert said == [
        ("assistant", call("a")),
        ("assistant", call("call")),
        ("user", result("a", "1")),
        ("user", result("call", "2")),
        ("assistant", call("a_2")),
        ("user", result("a_2", "3")),
    ]


def test_results_follow_their_calls_at_once() -> None:
    """A result that came later, after another turn of the model, is put after its call."""
    said, _ = paired(model(call("a")), model(TextPart(text="hm")), user(result("a")))
    assert said == [("assistant", call("a")), ("user", result("a")), ("assistant", TextPart(text="hm"))]


def test_a_result_is_never_the_models() -> None:
    """A result that stands beside its call, in the turn of the model, goes to a turn of the user."""
    assert paired(model(call("a"), result("a")))[0] == [("assistant", call("a")), ("user", result("a"))]


def test_parts_are_said_by_those_who_can_say_them() -> None:
    """A call is the model's and a result the user's, whatever turn they came in; a user's refusal is text."""
    said, _ = paired(
        user(TextPart(text="go"), call("a"), RefusalPart(text="no")), model(result("a"), TextPart(text="done"))
    )
    assert said == [
        ("user", TextPart(text="go")),
        ("assistant", call("a")),
        ("user", result("a")),
        ("user", TextPart(text="no")),
        ("assistant", TextPart(text="done")),
    ]


@pytest.mark.parametrize(
    ("tools", "choice", "expected", "named"),
    [
        ((LOOK,), ToolChoice(mode=ToolMode.AUTO), ToolChoice(mode=ToolMode.AUTO), set()),
        ((SEARCH,), ToolChoice(mode=ToolMode.REQUIRED), ToolChoice(), {"tool_choice"}),
        ((), ToolChoice(mode=ToolMode.AUTO, parallel=False), ToolChoice(), set()),
        ((LOOK,), ToolChoice(mode=ToolMode.REQUIRED, names=("gone",)), ToolChoice(mode=ToolMode.REQUIRED), {"tool_choice"}),
        (
            (LOOK,),
            ToolChoice(mode=ToolMode.REQUIRED, names=("look", "gone")),
            ToolChoice(mode=ToolMode.REQUIRED, names=("look",)),
            set(),
        ),
    ],
)  # fmt: skip
def test_the_choice_is_between_tools_that_exist(tools: Any, choice: Any, expected: Any, named: set[str]) -> None:
    """A choice of tools that the request does not have is left out."""
    dropped: set[str] = set()
    found = consistent(Conversation(family=Family.CHAT, tools=tools, tool_choice=choice), dropped)
    assert found.tool_choice == expected
    assert dropped == named


def test_tools_have_different_names_and_take_objects() -> None:
    """Of two tools of a name the first counts, the arguments of all are objects, and a limit is positive."""
    dropped: set[str] = set()
    tools = (LOOK, SEARCH, ToolDefinition(name="look"), ToolDefinition(name="run", schema={"properties": {}}))
    found = consistent(Conversation(family=Family.CHAT, tools=tools, sampling=Sampling(max_tokens=0)), dropped)
    assert found.tools == (LOOK, SEARCH, ToolDefinition(name="run", schema={"properties": {}, "type": "object"}))
    assert found.sampling.max_tokens is None
    assert dropped == {"duplicate_tool", "max_tokens"}


def test_only_what_says_something_is_named() -> None:
    """Null, false and empty values, notes of a reader, bookkeeping and signatures are not named."""
    dropped: set[str] = set()
    extras: dict[str, Any] = {
        "stream": False,
        "user": None,
        "list": [],
        "type": "custom",
        "thoughtSignature": "s",
        "rung.form": 1,
    }
    name_extras({**extras, "top_logprobs": 3}, dropped)
    assert dropped == {"top_logprobs"}


def test_what_an_empty_object_asks_for_is_named() -> None:
    """An empty object of options asks for a web search. Other empty objects ask for nothing."""
    dropped: set[str] = set()
    name_extras({"web_search_options": {}, "metadata": {}}, dropped)
    assert dropped == {"web_search_options"}


NAMED_FILES = [
    ("Report", "application/pdf", "Report.pdf"), ("", "application/pdf", "document.pdf"), ("a.PDF", "", "a.PDF"),
    ("v1.2", "", "v1.2.pdf"), ("sheet.xlsx", "application/vnd.ms-excel", "sheet.xlsx"),
]  # fmt: skip


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("name", "mime_type", "expected"), NAMED_FILES)
def test_a_file_has_the_extension_of_its_type(name: str, mime_type: str, expected: str, wire: str) -> None:
    """OpenAI rejects file data whose name has no extension, such as the title of a document of Anthropic's API."""
    part = MediaPart(kind=MediaKind.DOCUMENT, mime_type=mime_type, data="JVBERi0=", name=name, family=Family.ANTHROPIC)
    turns = (Turn(speaker=Speaker.USER, parts=(part,)),)
    body = translator_of(wire).write_request(Conversation(family=Family.ANTHROPIC, model="m", turns=turns)).body
    assert f"'filename': '{expected}'" in str(body)


@pytest.mark.parametrize(
    ("name", "inserted"), [("str_replace_based_edit_tool", "insert_text"), ("str_replace_editor", "new_str")]
)
def test_the_text_editor_inserts_as_its_clients_expect(name: str, inserted: str) -> None:
    """Claude names inserted text `insert_text`; with the older editor, `new_str`. Another model is told to do the same."""
    block = {"type": "text_editor_20250728", "name": name}
    tool = as_function(ProviderTool(family=Family.ANTHROPIC, kind="text_editor", block=block))
    assert isinstance(tool, ToolDefinition)
    assert f"`insert` (`{inserted}` after" in tool.description
    assert inserted in tool.schema["properties"]


ALLOWED: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("look", "read", "run")],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "", "tools": [{"type": "function", "function": {"name": "look"}}]},
        },
    },
    "responses": {
        "input": "go",
        "tools": [{"type": "function", "name": name, "parameters": {}} for name in ("look", "read", "run")],
        "tool_choice": {"type": "allowed_tools", "mode": "", "tools": [{"type": "function", "name": "look"}]},
    },
}  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize(
    ("source", "target"), [(source, target) for source in ALLOWED for target in TRANSLATED_WIRES if source != target]
)
def test_only_allowed_tools_can_be_called(source: str, target: str, mode: str) -> None:
    """A list of allowed tools is one for every other provider: by its own list, by a forced call, or by fewer tools."""
    body = json.loads(json.dumps(ALLOWED[source]).replace('"mode": ""', f'"mode": "{mode}"'))
    read = translator_of(source).read_request(body)
    written = translator_of(target).write_request(replace(read, model="some-model"))
    check_request(target, written.body)
    choice = str(written.body.get("tool_choice", written.body.get("toolConfig")))
    tools = str(written.body["tools"])
    assert ("look" in choice) or ("read" not in tools and "run" not in tools)
    assert written.dropped == ()
