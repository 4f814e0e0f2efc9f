"""Answers of Gemini's wire: read, written back, and written for a client of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.wires.translation.answer import Answer, Stop, Usage
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ForeignPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)
from rung.wires.translation.gemini_answer import read_answer, write_answer
from tests.wires.translation.gemini_bodies import ANSWERS, JSON

FEW = settings(deadline=None, max_examples=60)
CLIENT = Conversation(family=Family.GEMINI, model="gemini-3-pro")


def answered(*parts: Any, reason: Any = "STOP", **more: Any) -> Answer:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}
    return read_answer({"candidates": [candidate], "responseId": "r1", **more})


def other(*parts: Any, stop: Stop = Stop.END, **more: Any) -> Answer:
    return Answer(family=Family.ANTHROPIC, id="msg_1", model="claude", parts=parts, stop=stop, **more)


@FEW
@given(body=ANSWERS)
def test_an_answer_is_written_back_as_it_was(body: dict[str, Any]) -> None:
    """An answer in normal form is the same after reading and writing."""
    written = write_answer(read_answer(body), CLIENT)
    assert written.body == body
    assert written.dropped == ()


KEYS = st.sampled_from(
    ["candidates", "content", "parts", "text", "functionCall", "name", "args", "finishReason", "usageMetadata",
     "promptTokenCount", "promptFeedback", "blockReason", "responseId", "createTime"]
)  # fmt: skip
ODD = st.recursive(
    JSON, lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4), max_leaves=9
)


@FEW
@given(body=st.dictionaries(KEYS, ODD, max_size=5))
def test_no_answer_fails(body: dict[str, Any]) -> None:
    """Any JSON object is read and written."""
    write_answer(read_answer(body), CLIENT)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", Stop.END),
        ("MAX_TOKENS", Stop.MAX_TOKENS),
        *((each, Stop.REFUSAL) for each in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        ("IMAGE_SAFETY", Stop.REFUSAL),
        ("LANGUAGE", Stop.REFUSAL),
        ("MALFORMED_FUNCTION_CALL", Stop.MALFORMED_CALL),
        ("UNEXPECTED_TOOL_CALL", Stop.MALFORMED_CALL),
        ("OTHER", Stop.UNKNOWN),
        ("SOMETHING_NEW", Stop.UNKNOWN),
        (None, Stop.UNKNOWN),
    ],
)
def test_finish_reasons(reason: str | None, stop: Stop) -> None:
    """Every finish reason has a neutral one."""
    assert answered({"text": "hi"}, reason=reason).stop is stop


def test_calls_and_usage() -> None:
    """An answer with calls stops for them, calls get ids, and thoughts are part of the output."""
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 5,
        "toolUsePromptTokenCount": 3,
    }
    first = {"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    second = {"functionCall": {"name": "read", "args": {}, "id": "x"}}
    answer = answered(first, second, usageMetadata=usage)
    assert answer.stop is Stop.TOOL_CALLS
    assert answer.parts == (
        ToolCallPart(
            id="gemini_r1_0",
            name="read",
            arguments='{"a":1}',
            extras={"thoughtSignature": "c2ln"},
            family=Family.GEMINI,
        ),
        ToolCallPart(id="x", name="read", arguments="{}", family=Family.GEMINI),
    )
    assert answer.usage == Usage(input=43, output=12, cache_read=60, reasoning=5)


def test_ids_without_the_id_of_an_answer() -> None:
    """Calls of two different answers have different ids, even if the answers have none."""
    call = {"content": {"parts": [{"functionCall": {"name": "read"}}]}}
    ids = [
        read_answer({"candidates": [call], "usageMetadata": {"promptTokenCount": count}}).parts[0].id  # type: ignore[union-attr]  # a call
        for count in (1, 2, 2)
    ]
    assert ids[0] != ids[1] == ids[2]
    assert len(ids[0]) <= 40


def test_a_blocked_prompt() -> None:
    """A prompt that Google blocked is a refusal."""
    answer = read_answer({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "unsafe"}})
    assert (answer.stop, answer.parts) == (Stop.REFUSAL, (RefusalPart(text="unsafe"),))


def test_an_answer_of_another_wire() -> None:
    """The client gets texts and calls, the first one signed; reasoning and foreign content are named."""
    written = write_answer(
        other(
            ReasoningPart(family=Family.ANTHROPIC, block={}, text="hm"),
            TextPart(text="hello"),
            ForeignPart(family=Family.ANTHROPIC, block={}, kind="web_search_result"),
            ToolCallPart(id="toolu_1", name="read", arguments='{"a":1}'),
            ToolCallPart(id="toolu_2", name="now", arguments=""),
            stop=Stop.TOOL_CALLS,
            usage=Usage(input=5, cache_read=3, cache_write=2, output=9, reasoning=4),
            created=1_767_323_045,
        ),
        CLIENT,
    )
    assert written.body == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hello"},
                        {
                            "functionCall": {"id": "toolu_1", "name": "read", "args": {"a": 1}},
                            "thoughtSignature": "skip_thought_signature_validator",
                        },
                        {"functionCall": {"id": "toolu_2", "name": "now", "args": {}}},
                    ],
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 3,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 4,
            "totalTokenCount": 19,
        },
        "modelVersion": "claude",
        "responseId": "msg_1",
        "createTime": "2026-01-02T03:04:05Z",
    }
    assert written.dropped == ("reasoning", "web_search_result")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop.STOP_SEQUENCE, "STOP"),
        (Stop.MAX_TOKENS, "MAX_TOKENS"),
        (Stop.CONTEXT_WINDOW, "MAX_TOKENS"),
        (Stop.REFUSAL, "SAFETY"),
        (Stop.PAUSE, "OTHER"),
        (Stop.MALFORMED_CALL, "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_stops_of_other_wires(stop: Stop, reason: str) -> None:
    """Every neutral stop has a finish reason."""
    body = write_answer(other(RefusalPart(text="no"), stop=stop), CLIENT).body
    assert body["candidates"][0]["finishReason"] == reason
    assert body["candidates"][0]["content"]["parts"] == [{"text": "no"}]


def test_a_malformed_call_of_another_wire() -> None:
    """Gemini has no call with broken arguments: the answer ends as Google's own does."""
    call = ToolCallPart(id="t", name="read", arguments='{"a":')
    (candidate,) = write_answer(other(call, stop=Stop.TOOL_CALLS), CLIENT).body["candidates"]
    assert candidate["content"]["parts"] == []
    assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"
    assert 'read({"a":)' in candidate["finishMessage"]
