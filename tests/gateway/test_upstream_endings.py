"""Endings of another provider's answers that the client's wire has no words for, and streams that break in a call."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google.genai import errors

from rung.wires.translation.chat_history_writer import MAX_CALL_ID
from tests.gateway.behind import ALL_WIRES, RESPONSES_TOOL, ask
from tests.gateway.cross_wire.contents import TOOLS
from tests.gateway.cross_wire.contents import ask as ask_for
from tests.gateway.cross_wire.rig import DRIVERS
from tests.gateway.scripted import call_part, chunk, completion, content, message, stream, text_part, whole
from tests.gateway.test_other_provider import ANSWERS, EACH_PAIR, OTHERS
from tests.gateway.test_thinking import RESPONSE
from tests.security.upstream.raw_upstream import Front, RawUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

EACH_WAY = pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
MALFORMED = content(text_part("one"), reason="MALFORMED_FUNCTION_CALL")


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-provider")


@contextmanager
def other_provider(other: str, *answers: bytes) -> Iterator[tuple[Front, RawUpstream]]:
    """Run a gateway whose only upstream has this wire and sends these answers; the last one repeats."""
    left = list(answers)
    with RawUpstream(lambda _: left.pop(0) if len(left) > 1 else left[0], close=True) as upstream:
        settings = {**OTHERS[other], "url": upstream.url, "key_env": "OTHER_KEY"}
        with Front(upstreams={"other": settings}, policy={"models": ["other/gemini-2.5-flash"]}) as front:
            yield front, upstream


@EACH_WAY
@pytest.mark.parametrize("wire", ALL_WIRES)
def test_a_malformed_call_with_text_is_no_success(wire: str, streams: bool) -> None:
    """An answer whose call its provider could not read is asked for again, whatever the client's wire."""
    written: Any = stream if streams else whole
    good = content(call_part(at="home"), reason="STOP")
    with other_provider("gemini", written(MALFORMED), written(good)) as (front, upstream):
        got = ask(front, wire, stream=streams, tools=True)
        assert len(got.calls) == 1
        assert "home" in got.calls[0]
        assert len(upstream.requests) == 2


def calls_message(*, cut: bool) -> bytes:
    """A streamed message with two calls; `cut`: it breaks off inside of the second one."""
    said: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": [],
        "stop_reason": None,
    }
    events: list[Any] = [
        {"type": "message_start", "message": {**said, "usage": {"input_tokens": 9, "output_tokens": 1}}}
    ]
    for index, json in enumerate(('{"at": "home"}', '{"at": "sea' if cut else '{"at": "sea"}')):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": "look", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    if cut:
        return stream(*events[:-1], cut=True)
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
    return stream(*events, end, {"type": "message_stop"})


def _calls(front: Front, wire: str) -> tuple[list[str], str | None]:
    """Return the arguments of the calls that a client receives, and the stop reason."""
    if wire != "responses":
        got = ask(front, wire, stream=True, tools=True)
        return got.calls, got.stop
    tools: Any = [RESPONSES_TOOL]
    with front.gpt().responses.stream(model="small", input="go", tools=tools) as events:
        response = events.get_final_response()  # without usage, which the upstream did not report
    return [item.arguments for item in response.output if item.type == "function_call"], response.status


@pytest.mark.parametrize("wire", ALL_WIRES)
def test_a_stream_that_breaks_in_its_second_call(wire: str) -> None:
    """A call that the client has is not made again: it ends the answer. If the client has none, both are asked for again."""
    with RawUpstream(lambda _: answers.pop(0), close=True) as upstream:
        answers = [calls_message(cut=True), calls_message(cut=False)]
        other = {**OTHERS["messages"], "url": upstream.url, "key_env": "OTHER_KEY"}
        with Front(upstreams={"other": other}, policy={"models": ["other/large"]}) as front:
            calls, stop = _calls(front, wire)
        has_first = wire != "chat"  # its splicer releases calls with the finish reason
        assert len(upstream.requests) == (1 if has_first else 2)
        assert [("home" in call, "sea" in call) for call in calls] == [(True, False), (False, True)][
            : 1 if has_first else 2
        ]
        assert stop in ("tool_use", "tool_calls", "completed", "stop")


@pytest.mark.parametrize(("wire", "path"), [("messages", "/v1/messages"), ("responses", "/v1/responses")])
def test_an_answer_with_the_first_of_two_calls_says_so(wire: str, path: str) -> None:
    """A stream that was settled after a complete call has a note about it: in a header, or in a comment at its end."""
    with RawUpstream(lambda _: calls_message(cut=True), close=True) as upstream:
        other = {**OTHERS["messages"], "url": upstream.url, "key_env": "OTHER_KEY"}
        with Front(upstreams={"other": other}, policy={"models": ["other/large"]}) as front:
            asked = (
                {"messages": [{"role": "user", "content": "go"}], "max_tokens": 900}
                if wire == "messages"
                else {"input": "go"}
            )
            response = front.http().post(
                path, json={"model": "small", "stream": True, **asked}, headers={"x-api-key": "k"}
            )
        told = response.headers.get("x-rung-settled", "") + response.text
        assert "the stream broke after a complete tool call" in told


# Errors in place of a whole answer, with status 200, as OpenRouter and some proxies send them.
ERRORS: dict[str, dict[str, Any]] = {
    "messages": {"type": "error", "error": {"type": "overloaded_error", "message": "too many calls"}},
    "chat": {"error": {"message": "too many calls", "code": 503}},
    "responses": {
        **RESPONSE, "status": "failed", "output": [],
        "error": {"code": "server_error", "message": "too many calls"},
    },
    "gemini": {"error": {"code": 503, "message": "too many calls", "status": "UNAVAILABLE"}},
}  # fmt: skip


@EACH_WAY
@EACH_PAIR
def test_an_error_with_status_200_is_no_answer(wire: str, other: str, streams: bool) -> None:
    """An error that another provider sends in place of an answer reaches the client as an error, not as an empty answer."""
    with other_provider(other, whole(ERRORS[other])) as (front, upstream):
        with pytest.raises((anthropic.APIStatusError, openai.APIStatusError, errors.APIError), match="too many calls"):
            ask(front, wire, stream=streams)
        assert len(upstream.requests) > 1


UNFINISHED: dict[str, dict[str, Any]] = {
    "messages": {**message({"type": "text", "text": "one"}), "stop_reason": None},
    "chat": completion("one", "error"),
    "gemini": content(text_part("one")),
}


@pytest.mark.parametrize(
    ("wire", "other"), [(wire, other) for wire in ALL_WIRES for other in UNFINISHED if wire != other]
)
def test_an_unfinished_whole_answer_is_asked_for_again(wire: str, other: str) -> None:
    """A whole answer whose provider gave up, or does not say that it has ended, is no answer of any wire."""
    good = {
        "messages": message({"type": "text", "text": "one two"}),
        "chat": completion("one two"),
        "gemini": content(text_part("one two"), reason="STOP"),
    }
    with other_provider(other, whole(UNFINISHED[other]), whole(good[other])) as (front, upstream):
        assert ask(front, wire, stream=False).text == "one two"
        assert len(upstream.requests) == 2


@pytest.mark.parametrize("wire", ["messages", "responses", "gemini"])
def test_arguments_that_are_no_json_are_asked_for_again(wire: str) -> None:
    """A whole answer whose call cannot be read is asked for again, also if the client's wire can only show an object."""
    tool: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "not json"}}
    good = {**tool, "function": {"name": "look", "arguments": '{"at": "home"}'}}
    answers = [whole(completion(None, "tool_calls", tool_calls=[each])) for each in (tool, good)]
    with other_provider("chat", *answers) as (front, upstream):
        got = ask(front, wire, stream=False)  # without tools: no schema shows that the arguments are wrong
        assert ["home" in call for call in got.calls] == [True]
        assert len(upstream.requests) == 2


def _cut_in_a_call() -> dict[str, tuple[bytes, bytes]]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "ho'}}
    item = {
        "id": "f1",
        "type": "function_call",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"at": "ho',
        "status": "incomplete",
    }
    body = {
        **RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [item],
        "usage": ANSWERS["responses"]["usage"],
    }  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**body, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.incomplete", "response": body},
    ]
    return {
        "chat": (
            whole(completion(None, "length", tool_calls=[call])),
            stream(chunk(tool_calls=[call]), chunk("length"), "[DONE]"),
        ),
        "responses": (whole(body), stream(*events)),
    }


@pytest.mark.parametrize("other", ["chat", "responses"])
@EACH_WAY
def test_a_call_that_the_output_limit_cut_off_for_gemini(streams: bool, other: str) -> None:
    """A client of Gemini's API learns that the output limit was reached, not that the model made a mistake."""
    with other_provider(other, _cut_in_a_call()[other][streams]) as (front, _):
        got = ask(front, "gemini", stream=streams, tools=True)
        assert (got.stop, got.calls) == ("max_tokens", [])


def test_a_call_that_the_output_limit_cut_off_for_responses() -> None:
    """A call that is cut off is no completed item, and the text of an answer that is cut off is incomplete as well."""
    half = whole(completion("half of", "length"))
    with other_provider("chat", _cut_in_a_call()["chat"][False]) as (front, _):
        response = front.gpt().responses.create(model="small", input="go", tools=[RESPONSES_TOOL])
        assert (response.status, [item.to_dict()["status"] for item in response.output]) == (
            "incomplete",
            ["incomplete"],
        )
    with other_provider("chat", half) as (front, _):
        response = front.gpt().responses.create(model="small", input="go")
        assert (response.status, [item.to_dict()["status"] for item in response.output]) == (
            "incomplete",
            ["incomplete"],
        )


@EACH_WAY
@pytest.mark.parametrize("wire", ["messages", "responses", "gemini"])
def test_calls_of_one_answer_have_different_ids(wire: str, streams: bool) -> None:
    """A server that gives all calls of an answer the same id cannot make a client mix up their results."""
    calls: list[dict[str, Any]] = [
        {"index": n, "id": "call_0", "type": "function", "function": {"name": "look", "arguments": f'{{"at": "{at}"}}'}}
        for n, at in enumerate(("home", "sea"))
    ]
    chunks = [*(chunk(tool_calls=[call]) for call in calls), chunk("tool_calls")]
    answer = stream(*chunks, "[DONE]") if streams else whole(completion(None, "tool_calls", tool_calls=calls))
    with other_provider("chat", answer) as (front, _):
        driver: Any = DRIVERS[wire]
        heard = driver.send(front.url, driver.request(ask_for("Look.", tools=TOOLS)), stream=streams)
        assert [call.arguments for call in heard.calls] == [{"at": "home"}, {"at": "sea"}]
        assert len({call.id for call in heard.calls}) == 2


@EACH_WAY
def test_a_client_gets_ids_that_its_own_provider_takes_back(streams: bool) -> None:
    """OpenAI rejects a history whose calls have longer ids than its own, when the session returns to it."""
    item = {**ANSWERS["responses"]["output"][1], "call_id": "chatcmpl-tool-" + "a" * 32}
    body = {**ANSWERS["responses"], "output": [item]}
    events = [{"type": "response.output_item.done", "output_index": 0, "item": item}]
    answer = stream(*events, {"type": "response.completed", "response": body}) if streams else whole(body)
    with other_provider("responses", answer) as (front, _):
        heard = DRIVERS["chat"].send(front.url, DRIVERS["chat"].request(ask_for("Look.", tools=TOOLS)), stream=streams)
        assert [len(call.id) <= MAX_CALL_ID for call in heard.calls] == [True]
