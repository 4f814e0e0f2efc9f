"""Tool names that only the client's provider accepts have other names at the upstream, and their own in its answers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rung.wires.translation.answer import Answer, AnswerEvent, CallDelta, CallStarted, Stop
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ProviderTool,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    ToolResultPart,
    Turn,
)
from rung.wires.translation.tool_names import ToolNames, accepted_name

DOTTED = "files.read:all"
CALL = ToolCallPart(id="c", name=DOTTED, arguments="{}")
SEARCH = ProviderTool(family=Family.GEMINI, block={}, kind="google_search")


def test_names_are_mapped_both_ways() -> None:
    """The definition, the choice, calls and results have the same other name; an answer has the client's."""
    result = ToolResultPart(call_id="c", name=DOTTED, parts=(TextPart(text="found"),))
    conversation = Conversation(
        family=Family.GEMINI,
        turns=(Turn(speaker=Speaker.ASSISTANT, parts=(CALL,)), Turn(speaker=Speaker.USER, parts=(result,))),
        tools=(ToolDefinition(name=DOTTED), ToolDefinition(name="look"), SEARCH),
        tool_choice=ToolChoice(mode=ToolMode.REQUIRED, names=(DOTTED, "look")),
    )
    names = ToolNames(conversation)
    sent, other = names.sent(conversation), accepted_name(DOTTED)
    assert [tool.name for tool in sent.tools if isinstance(tool, ToolDefinition)] == [other, "look"]
    assert sent.tool_choice.names == (other, "look")
    assert [getattr(part, "name", "") for turn in sent.turns for part in turn.parts] == [other, other]
    parts = (ToolCallPart(id="c", name=other, arguments="{}"), TextPart(text="a"))
    answer = Answer(family=Family.CHAT, id="", model="", parts=parts, stop=Stop.TOOL_CALLS)
    assert names.answer(answer).parts == (CALL, TextPart(text="a"))
    piece = CallDelta(index=0, json="{}")
    started: list[AnswerEvent] = [CallStarted(index=0, id="c", name=other), piece]
    assert names.events(started) == [CallStarted(index=0, id="c", name=DOTTED), piece]


def test_usual_names_cost_nothing() -> None:
    """A conversation whose names all providers accept stays the same object, and so do its answers."""
    conversation = Conversation(family=Family.CHAT, tools=(ToolDefinition(name="look-at_it2"),))
    names = ToolNames(conversation)
    answer = Answer(family=Family.CHAT, id="", model="", parts=(), stop=Stop.END)
    assert names.sent(conversation) is conversation
    assert names.answer(answer) is answer


@given(st.text(), st.text())
def test_other_names_are_accepted_and_different(one: str, other: str) -> None:
    """Any name becomes one that all providers accept, and two names never become the same."""
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", accepted_name(one))
    assert one == other or accepted_name(one) != accepted_name(other)
