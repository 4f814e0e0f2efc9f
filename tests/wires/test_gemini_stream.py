"""Streams of Gemini's API: spliced at any place, they are one answer with one id, one end and the usage of all attempts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.failures import Kind
from rung.wires.gemini_answer import calls_in, finish_reason, text_in
from rung.wires.gemini_messages import parts_of
from rung.wires.gemini_stream import GeminiStream
from tests.gateway.scripted import call_part, content, text_part
from tests.wires.strict import events_of

WORDS = [f"wording{n} " for n in range(12)]
WHOLE = "".join(WORDS)


def sse(*chunks: dict[str, Any], line_end: str = "\n") -> bytes:
    return "".join(f"data: {json.dumps(chunk)}{line_end}{line_end}" for chunk in chunks).encode()


def chunks_in(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(found) for _, found in events_of(data.decode())]


def parts_in(data: bytes) -> list[dict[str, Any]]:
    return [part for chunk in chunks_in(data) for each in chunk["candidates"] for part in parts_of(each["content"])]


def reasons_in(data: bytes) -> list[str]:
    found = [finish_reason(each) for chunk in chunks_in(data) for each in chunk["candidates"]]
    return [reason for reason in found if reason]


def spoken(*words: str, reason: str = "STOP", response_id: str = "r1") -> list[dict[str, Any]]:
    """Chunks of a response. The last of them has text and the finish reason, as those of the API have."""
    last = len(words) - 1
    return [
        content(text_part(word), reason=reason * (at == last), response_id=response_id) for at, word in enumerate(words)
    ]


@given(st.integers(0, 12), st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(1, 90), max_size=20))
def test_a_stream_is_the_same_however_it_is_split(thoughts: int, line_end: str, sizes: list[int]) -> None:
    """Whatever line ends a stream has, and wherever it is split, the client gets the same chunks."""
    made = [content(text_part("hm", thought=True))] * thoughts + spoken(*WORDS)
    data, stream, out = sse(*made, line_end=line_end), GeminiStream(), b""
    for size in sizes:
        out += stream.feed(data[:size])
        data = data[size:]
    out += stream.feed(data) + stream.feed(b"\n\n") + stream.finish()
    assert out == sse(*made)
    assert (stream.text(), stream.validate()) == (WHOLE, None)


@given(st.integers(0, 11), st.integers(0, 3))
def test_a_cut_stream_is_continued(cut: int, repeated: int) -> None:
    """Cut after any chunk, the answer of two attempts has each word once, one id, one end and the usage of both."""
    stream = GeminiStream()
    out = stream.begin_attempt() + stream.feed(sse(*spoken(*WORDS, reason="")[:cut]))
    assert stream.is_interrupted()
    out += stream.begin_attempt()
    rest = WORDS[max(0, cut - repeated) :] if cut else WORDS
    out += stream.feed(sse(*spoken(*rest, response_id="r2"))) + stream.finish()
    assert text_in(parts_in(out)) == WHOLE
    assert reasons_in(out) == ["STOP"]
    assert len({chunk["responseId"] for chunk in chunks_in(out)}) == 1
    expected = 20 if cut else 10
    assert chunks_in(out)[-1]["usageMetadata"]["promptTokenCount"] == expected


def test_an_answer_at_its_limit_is_continued() -> None:
    """The text beside the finish reason MAX_TOKENS reaches the client, and the finish reason does not."""
    stream = GeminiStream()
    out = stream.feed(sse(content(text_part("one two three "), reason="MAX_TOKENS")))
    defect = stream.validate()
    assert defect is not None
    assert (text_in(parts_in(out)), reasons_in(out), defect.code) == ("one two three ", [], "MAX_TOKENS")
    assert reasons_in(stream.native_end()) == ["MAX_TOKENS"]
    out += (
        stream.begin_attempt() + stream.feed(sse(content(text_part("two three four"), reason="STOP"))) + stream.finish()
    )
    assert (text_in(parts_in(out)), reasons_in(out)) == ("one two three four", ["STOP"])


def test_an_invalid_call_is_withheld() -> None:
    """A call without its required arguments is not sent; the provider's own end of the response has it."""
    stream = GeminiStream()
    stream.check_call = lambda name, arguments: "" if "at" in arguments else f"{name} lacks at"  # type: ignore[operator]
    out = stream.feed(sse(content(text_part("so")), content(call_part()), content(reason="STOP")))
    defect = stream.validate()
    assert defect is not None
    assert (defect.finding, calls_in(parts_in(out))) == (Kind.MALFORMED_OUTPUT, [])
    assert calls_in(parts_in(stream.native_end())) == [("look", {})]
    out += stream.begin_attempt() + stream.feed(sse(content(call_part(at="x"), reason="STOP"))) + stream.finish()
    assert calls_in(parts_in(out)) == stream.tool_calls == [("look", {"at": "x"})]


def test_a_stream_that_breaks_after_a_call_is_ended() -> None:
    """A client that has received a complete call gets a finish reason, so that it can run the call."""
    stream = GeminiStream()
    out = stream.feed(sse(content(call_part(at="x")))) + stream.finish_with_tool_calls()
    assert (calls_in(parts_in(out)), reasons_in(out)) == ([("look", {"at": "x"})], ["STOP"])


def test_thoughts_are_shown_once_text_has_not_begun() -> None:
    """Thoughts are shown as they come, also those of a second attempt; after text, further ones are left out."""
    thought = text_part("hm", thought=True)
    stream = GeminiStream()
    out = stream.feed(sse(content(thought))) + stream.begin_attempt()
    out += stream.feed(sse(content(thought), content(text_part("one two three ")))) + stream.begin_attempt()
    out += stream.feed(sse(content(thought), content(text_part("four"), reason="STOP"))) + stream.finish()
    assert [part for part in parts_in(out) if part.get("thought")] == [thought, thought]
    assert text_in(parts_in(out)) == "one two three four"


def test_thoughts_alone_are_no_answer() -> None:
    """A response of thoughts alone is empty: Google's own agent rejects it."""
    stream = GeminiStream()
    stream.feed(sse(content(text_part("hm", thought=True)), content(reason="STOP")))
    defect = stream.validate()
    assert defect is not None
    assert defect.finding is Kind.PARTIAL_OUTPUT


@pytest.mark.parametrize(
    "form", ['data: {"error": {"code": 503}}', '{\n  "error": {\n    "code": 503\n  }\n}', '[{"error": {"code": 503}}]']
)
def test_errors_come_in_several_forms(form: str) -> None:
    """An error is found in an event, and as JSON between the events."""
    stream = GeminiStream()
    stream.feed(sse(content(text_part("so "))) + form.encode() + b"\n\n")
    assert stream.error == ("", '{"error":{"code":503}}')


def test_a_blocked_prompt_is_no_broken_stream() -> None:
    """A stream that says why the prompt was blocked has ended, and is passed on as it came."""
    stream, data = GeminiStream(), sse({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    stream.feed(data)
    defect = stream.validate()
    assert defect is not None
    assert (defect.finding, stream.is_interrupted(), stream.native_end()) == (Kind.CONTENT_FILTER, False, data)


def test_comments_are_left_out() -> None:
    """Google's SDKs cannot read comments: those of an upstream are not passed on, and pings are blank lines."""
    stream = GeminiStream()
    data = stream.feed(sse(content(text_part("so "))) + b": ping\n\n")
    assert b": ping" not in data
    assert not GeminiStream.ping.strip()


def test_several_candidates_are_passed_on() -> None:
    """Chunks of several candidates come as they are; the response ends when all of them have ended."""
    one, two = content(text_part("a"), reason="STOP"), content(text_part("b"), reason="MAX_TOKENS")
    two["candidates"][0]["index"] = 1
    stream = GeminiStream(choices=2)
    assert stream.feed(sse(one)) == sse(one)
    assert stream.is_interrupted()
    assert stream.feed(sse(two)) == sse(two)
    assert stream.stop_reason == "MAX_TOKENS"
