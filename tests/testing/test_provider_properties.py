"""Properties of every answer: nothing is lost or repeated, wherever it is cut and resumed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rung.testing.provider.answers import build_answer, words
from rung.testing.provider.connection import HttpRequest
from rung.testing.provider.parsed_request import LabWire, ParsedRequest, ParsedTurn
from rung.testing.provider.reply import reply_to
from rung.testing.provider.routes import prepare
from rung.testing.provider.schema_samples import sample
from rung.testing.provider.script import script_from

WIRES = st.sampled_from(list(LabWire))
QUOTES = st.sampled_from(["{}", "So far:\n<partial>{}</partial>\nGo on.", 'You said "{}". Continue.'])


def asked(wire: LabWire, *turns: ParsedTurn, **more: Any) -> ParsedRequest:
    return ParsedRequest(
        wire=wire, model="m", turns=(ParsedTurn(role="user", text="count to 60"), *turns), stream=True, **more
    )


def said(body: bytes) -> str:
    """Return the text of a stream of any API, as a client parses it."""
    text = ""
    for line in body.split(b"\n"):
        if line.startswith(b"data: {"):
            data = json.loads(line[6:])
            text += _text(data)
    return text


def whole_events(body: bytes) -> bytes:
    """Return the events of a stream that a client can parse."""
    return b"\n".join(line for line in body.split(b"\n") if line == b"data: [DONE]" or _is_json(line[6:]))


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _text(data: dict[str, Any]) -> str:
    if "candidates" in data:
        return "".join(part.get("text", "") for part in data["candidates"][0]["content"]["parts"])
    delta = data["choices"][0]["delta"] if data.get("choices") else data.get("delta", "")
    if isinstance(delta, str):
        return delta
    return delta.get("text") or delta.get("content") or ""


@settings(deadline=None)
@given(wire=WIRES, after=st.integers(0, 60), overlap=st.integers(0, 9), quote=QUOTES)
def test_a_cut_answer_and_its_continuation_are_the_whole(wire: LabWire, after: int, overlap: int, quote: str) -> None:
    """A partial answer and its resumption join at the overlap to the complete answer."""
    script = script_from([{"fault": "cut", "after": after}], overlap=overlap)
    partial = said(b"".join(reply_to(asked(wire), script.rules[0], script).parts))
    assert partial == words(after)
    turn = ParsedTurn(role="user", text=quote.format(partial))
    rest = said(b"".join(reply_to(asked(wire, turn), None, script).parts))
    again = min(overlap, after)
    assert rest.split()[:again] == partial.split()[after - again :]
    assert partial.split() + rest.split()[again:] == words(60).split()


@settings(deadline=None)
@given(wire=WIRES, limit=st.integers(1, 80), thinking=st.booleans())
def test_never_more_than_the_limit(wire: LabWire, limit: int, thinking: bool) -> None:
    """An answer never exceeds its limit, and the stop reason says whether it was truncated."""
    made = build_answer(asked(wire, limit=limit, thinking=thinking), script_from(None))
    whole = 60 + 8 * thinking
    assert made.tokens == min(limit, whole)
    assert (made.stop == "limit") == (limit < whole)


@settings(deadline=None)
@given(wire=WIRES, name=st.sampled_from(["cut", "no_end", "stream_error", "truncated_json"]), after=st.integers(-1, 70))
def test_a_broken_stream_never_has_its_end(wire: LabWire, name: str, after: int) -> None:
    """A cut stream never contains the terminal event."""
    script = script_from([{"fault": name, "after": after}])
    body = whole_events(b"".join(reply_to(asked(wire), script.rules[0], script).parts))
    whole = whole_events(b"".join(reply_to(asked(wire), None, script).parts))
    ends = (b"message_stop", b"[DONE]", b"response.completed", b'"finishReason":"STOP"')
    for end in (*ends, b'"finish_reason":"stop"', b"end_turn"):
        assert end not in body
    assert any(end in whole for end in ends)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=9), part, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["model", "messages", "input", "max_tokens", "tools", "tool_choice", "stream_options", "thinking", "response_format",
     "text", "output_config", "role", "content", "type", "name", "function", "input_schema", "contents", "parts",
     "functionCall", "functionResponse", "response", "args", "functionDeclarations", "parameters", "toolConfig",
     "functionCallingConfig", "generationConfig", "thinkingConfig", "stopSequences", "thoughtSignature"]
)  # fmt: skip


ODD = JSON | st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3) | st.dictionaries(KEYS, JSON, max_size=4)
GOOD: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "input": "x"}
GOOD_CONTENTS: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
TARGETS = {LabWire.GEMINI: "/v1beta/models/m:streamGenerateContent?alt=sse"}


@settings(deadline=None, max_examples=100)
@given(body=st.dictionaries(KEYS, ODD, max_size=8), good=st.booleans())
def test_no_body_breaks_the_readers(body: dict[str, Any], good: bool) -> None:
    """Any body is parsed or rejected; no other exception is raised."""
    for wire in LabWire:
        valid = GOOD_CONTENTS if wire is LabWire.GEMINI else GOOD
        given = json.dumps({**valid, **body} if good else body).encode()
        made = prepare(wire, HttpRequest("POST", TARGETS.get(wire, "/"), {}, given), script_from(None))
        assert made.reply is not None or made.rejection is not None


@settings(deadline=None)
@given(
    schema=JSON | st.dictionaries(st.sampled_from(["type", "properties", "items", "enum", "anyOf", "required"]), JSON)
)
def test_any_schema_has_a_sample(schema: Any) -> None:
    """Any schema gives a value that is valid JSON."""
    json.dumps(sample(schema))
