"""Answers without faults: the real SDKs parse exactly what the lab sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import errors, types

from rung.testing import words
from tests.testing.clients import PROMPT, SCHEMA, WAYS, Asker

if TYPE_CHECKING:
    from rung.testing import Lab

ENDS = {"messages": "end_turn", "chat": "stop", "responses": "completed", "gemini": "STOP"}
LIMITS = {"messages": "max_tokens", "chat": "length", "responses": "max_output_tokens", "gemini": "MAX_TOKENS"}
TOOL_STOPS = {"messages": "tool_use", "chat": "tool_calls", "responses": "completed", "gemini": "STOP"}
EACH = pytest.mark.parametrize(("wire", "stream"), WAYS)


@EACH
def test_a_known_text_with_its_usage(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """Text, stop reason and token counts are complete; every attempt has its own id."""
    seen = asker.ask(wire, stream)
    assert (seen.text, seen.stop) == (words(40), ENDS[wire])
    assert seen.usage is not None
    assert seen.usage[0] > len(PROMPT) // 8
    assert seen.usage[1] == 40
    assert asker.ask(wire, stream).id != seen.id
    assert lab.attempts == 2


@EACH
def test_the_prompt_may_ask_for_another_length(asker: Asker, lab: Lab, wire: str, stream: bool) -> None:
    """A prompt to count to 7 as pear gets seven numbered words."""
    seen = asker.ask(wire, stream, [{"role": "user", "content": "Count to 7 as pear."}])
    assert seen.text == "pear1 pear2 pear3 pear4 pear5 pear6 pear7"


@EACH
def test_the_output_limit_is_kept(asker: Asker, lab: Lab, wire: str, stream: bool) -> None:
    """An answer ends at the output limit, with the matching stop reason."""
    seen = asker.ask(wire, stream, max_tokens=17)
    assert (seen.text, seen.stop) == (words(17), LIMITS[wire])
    assert seen.usage is not None
    assert seen.usage[1] == 17


@EACH
def test_a_tool_is_called_with_what_it_takes(asker: Asker, lab: Lab, wire: str, stream: bool) -> None:
    """`calls` sets the number of turns that call a tool, with arguments that fit its schema."""
    lab.use(calls=1)
    seen = asker.ask(wire, stream, tools=True)
    assert [(name, json.loads(given)) for name, given in seen.calls] == [("read", {"path": "lab", "lines": 1})]
    assert seen.stop == TOOL_STOPS[wire]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_comes_first_and_is_signed(asker: Asker, lab: Lab, stream: bool) -> None:
    """Thinking blocks can be sent back; another model's signature is rejected."""
    import anthropic

    seen = asker.ask("messages", stream, thinking={"type": "adaptive"})
    assert seen.thinking == words(8, "thought")
    assert seen.text == words(40)
    made: Any = asker.anthropic.messages.create(
        model="a", max_tokens=99, messages=[{"role": "user", "content": PROMPT}], thinking={"type": "adaptive"}
    )
    history: Any = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": [block.to_dict() for block in made.content]},
        {"role": "user", "content": "again"},
    ]
    assert asker.anthropic.messages.create(model="a", max_tokens=99, messages=history).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        asker.anthropic.messages.create(model="b", max_tokens=99, messages=history)


@EACH
def test_a_request_to_go_on_is_continued_with_a_small_overlap(asker: Asker, lab: Lab, wire: str, stream: bool) -> None:
    """If the last turn quotes a partial answer, the answer resumes three words before its end."""
    said = words(12)
    seen = asker.ask(
        wire,
        stream,
        [
            {"role": "user", "content": PROMPT},
            {"role": "user", "content": f"You were interrupted. So far you said:\n\n{said}\n\nGo on from there."},
        ],
    )
    assert seen.text == words(40, first=10)


def test_a_partial_answer_in_the_turn_before_is_continued_too(asker: Asker, lab: Lab) -> None:
    """A partial answer followed by a request to continue is resumed."""
    lab.use(overlap=0)
    history = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": words(20)},
        {"role": "user", "content": "Output limit hit. Resume exactly where you left off."},
    ]
    assert asker.ask("messages", False, history).text == words(40, first=21)
    assert asker.ask("chat", True, [*history[:2], {"role": "user", "content": "Thanks."}]).text == words(40)


def test_scripted_turns_follow_the_conversation_not_the_attempts(asker: Asker, lab: Lab) -> None:
    """A turn is selected by the number of calls in the conversation, so a retry gets the same answer."""
    lab.use({"turns": [{"tool": "read", "input": {"path": "a"}}, {"text": "all done"}]})
    first = asker.ask("messages", True, tools=True)
    again = asker.ask("messages", False, tools=True)
    assert first.calls == again.calls == [("read", '{"path": "a"}')]
    history = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
    ]
    assert asker.ask("messages", True, history, tools=True).text == "all done"
    assert asker.ask("messages", True).text == words(40)  # without tools it is another conversation


@pytest.mark.parametrize("stream", [False, True])
def test_calls_of_gemini_are_signed_and_answered(asker: Asker, lab: Lab, stream: bool) -> None:
    """A chat of Google's SDK sends a call back with its signature, and its response; another model rejects it."""
    lab.use({"turns": [{"text": "I read.", "tools": [{"tool": "read"}, {"tool": "read"}]}, {"text": "all done"}]})
    tool: Any = {"function_declarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}
    chat = asker.gemini.chats.create(model="lab-small", config={"tools": [tool]})
    responses = [types.Part.from_function_response(name="read", response={"output": "x"}) for _ in range(2)]
    first = list(chat.send_message_stream("go")) if stream else [chat.send_message("go")]
    assert [call.name for chunk in first for call in chunk.function_calls or ()] == ["read", "read"]
    history: Any = [*chat.get_history()]
    last = list(chat.send_message_stream(responses)) if stream else [chat.send_message(responses)]
    assert "".join(chunk.text or "" for chunk in last) == "all done"
    other = asker.gemini.chats.create(model="lab-large", config={"tools": [tool]}, history=history)
    with pytest.raises(errors.ClientError, match="Thought signature is not valid"):
        other.send_message(responses)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_and_json_of_gemini(asker: Asker, lab: Lab, stream: bool) -> None:
    """Thoughts come first if they are asked for, and an answer can have a schema of either kind."""
    seen = asker.ask("gemini", stream, thinking_config={"include_thoughts": True})
    assert (seen.thinking, seen.text) == (words(8, "thought"), words(40))
    assert seen.usage is not None
    assert seen.usage[1] == 48
    for name in ("response_json_schema", "response_schema"):
        given: dict[str, Any] = {name: SCHEMA}
        seen = asker.ask("gemini", stream, response_mime_type="application/json", **given)
        assert json.loads(seen.text) == {"path": "lab", "lines": 1}


@EACH
def test_ids_stay_unique_when_the_script_changes(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """A conversation may go on under another script: clients drop a tool call whose id they have seen."""
    before = asker.ask(wire, stream).id
    lab.use(None)
    assert asker.ask(wire, stream).id != before
