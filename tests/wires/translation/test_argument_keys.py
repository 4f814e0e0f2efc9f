"""Names of arguments that Anthropic rejects have other names there, and the client's in the calls of its answers."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rung.wires.translation.answer import Answer, AnswerEvent, CallDelta, CallEnded, CallStarted, Ended, Stop
from rung.wires.translation.argument_keys import ArgumentKeys
from rung.wires.translation.conversation import Conversation, Family, Speaker, ToolCallPart, ToolDefinition, Turn

SCHEMA = {
    "type": "object",
    "properties": {"$filter": {"type": "string"}, "top": {"type": "integer"}, "x" * 70: {}},
    "required": ["$filter"],
}
CALL = ToolCallPart(id="c", name="list", arguments='{"$filter": "a", "top": 2}')
ASKED = Conversation(
    family=Family.CHAT,
    tools=(ToolDefinition(name="list", schema=SCHEMA), ToolDefinition(name="other")),
    turns=(Turn(speaker=Speaker.ASSISTANT, parts=(CALL,)),),
)


def sent_schema(conversation: Conversation = ASKED) -> Any:
    tool = ArgumentKeys(conversation, Family.ANTHROPIC).sent(conversation).tools[0]
    assert isinstance(tool, ToolDefinition)
    return tool.schema


def test_names_are_mapped_both_ways() -> None:
    """The schema and earlier calls have the other names, and an answer the client's."""
    keys = ArgumentKeys(ASKED, Family.ANTHROPIC)
    schema = sent_schema()
    other, top, long = schema["properties"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in (other, top, long))
    assert (top, schema["required"]) == ("top", [other])
    earlier = keys.sent(ASKED).turns[0].parts[0]
    assert isinstance(earlier, ToolCallPart)
    assert json.loads(earlier.arguments) == {other: "a", "top": 2}
    answer = Answer(family=Family.ANTHROPIC, id="", model="", parts=(earlier,), stop=Stop.TOOL_CALLS)
    (call,) = keys.answer(answer).parts
    assert isinstance(call, ToolCallPart)
    assert json.loads(call.arguments) == json.loads(CALL.arguments)


def test_arguments_of_a_stream_come_when_they_are_complete() -> None:
    """Pieces are collected until the call ends; those of other tools pass, and what the limit cut off is not lost."""
    keys = ArgumentKeys(ASKED, Family.ANTHROPIC)
    other = next(iter(sent_schema()["properties"]))
    start, end = CallStarted(index=0, id="c", name="list"), CallEnded(index=0)
    pieces: list[AnswerEvent] = [CallDelta(index=0, json=piece) for piece in ('{"', other, '": 1}')]
    passing = CallDelta(index=1, json="{")
    assert keys.events([start, *pieces, passing]) == [start, passing]
    found = keys.events([end])
    assert isinstance(found[0], CallDelta)
    assert (json.loads(found[0].json), found[1:]) == ({"$filter": 1}, [end])
    ended = Ended(stop=Stop.MAX_TOKENS)
    assert keys.events([start, pieces[0], ended]) == [start, CallDelta(index=0, json='{"'), ended]


def test_only_anthropic_gets_other_names() -> None:
    """A conversation for another provider, or with usual names, stays the same object."""
    assert ArgumentKeys(ASKED, Family.GEMINI).sent(ASKED) is ASKED
    usual = Conversation(family=Family.CHAT, tools=(ToolDefinition(name="list"),))
    assert ArgumentKeys(usual, Family.ANTHROPIC).sent(usual) is usual


@given(st.lists(st.text(), unique=True, max_size=4))
def test_any_names_are_accepted_and_different(names: list[str]) -> None:
    """Any names become as many names that Anthropic accepts."""
    schema = {"type": "object", "properties": {name: {} for name in names}}
    conversation = Conversation(family=Family.CHAT, tools=(ToolDefinition(name="list", schema=schema),))
    found = sent_schema(conversation)["properties"]
    assert len(found) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in found)
