"""Another provider for the same conversation: an upstream of another wire serves the client, and continues its stream."""

from __future__ import annotations

import json
from ast import literal_eval
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from rung.testing.provider import Lab
from tests.gateway.behind import ALL_WIRES, ASK, TOOL, WHOLE, Behind, Got, ask
from tests.gateway.scripted import call_part, completion, content, message, text_part, whole
from tests.gateway.test_thinking import RESPONSE
from tests.security.upstream.raw_upstream import RawUpstream, http_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "key-of-the-other-provider"
# Wire of the other upstream: its API and the formats that it speaks.
OTHERS: dict[str, dict[str, Any]] = {
    "messages": {"wire": "anthropic"},
    "chat": {"wire": "openai", "apis": ["chat"]},
    "responses": {"wire": "openai", "apis": ["responses"]},
    "gemini": {"type": "gemini"},
}
OWN = {"messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gemini"}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses", "gemini": ":"}
EACH_PAIR = pytest.mark.parametrize(
    ("wire", "other"), [(wire, other) for wire in ALL_WIRES for other in OTHERS if wire != other]
)
EACH_WAY = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY)


@contextmanager
def beside(
    wire: str,
    other: str,
    script: Any = None,
    *,
    alone: bool = False,
    answers: dict[str, Any] | None = None,
    **more: Any,
) -> Iterator[tuple[Behind, Lab]]:
    """Run a gateway before the client's own provider, and another provider with another wire.

    `alone`: there is no upstream with the client's API. `answers` are settings of both labs.
    """
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(**(answers or {})))
        second = {**OTHERS[other], "url": lab.url, "key_env": "OTHER_KEY"}
        policy = {"models": ["other/large"] if alone else ["small", "other/large"], **more.pop("policy", {})}
        apis = () if alone else (OWN[wire],)
        behind = Behind(script, policy=policy, apis=apis, upstreams={"other": second}, **(answers or {}), **more)
        yield stack.enter_context(behind), lab


@EACH_WAY
@EACH_PAIR
def test_only_the_other_provider(wire: str, other: str, stream: bool) -> None:
    """A client whose own provider is not configured is served by a provider of another wire, with the gateway's key."""
    with beside(wire, other, alone=True) as (behind, lab):
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert got.usage == 40
        assert PATHS[other] in lab.calls[0].path
        is_same_api = OTHERS[other].get("wire") == OWN[wire]  # a server that has one of OpenAI's two APIs
        name = lab.calls[0].path if other == "gemini" else lab.calls[0].json["model"]
        assert ("small" if is_same_api else "large") in name
        sent = str(lab.calls[0].headers)
        assert KEY in sent
        assert "sk-" not in sent


@EACH_WAY
@EACH_PAIR
@pytest.mark.parametrize("fault", ["overloaded", "quota", "unauthorized", "model_gone"])
def test_the_other_provider_takes_over(fault: str, wire: str, other: str, stream: bool) -> None:
    """If the own provider is overloaded, out of quota or refuses the key, the other one answers within one request."""
    with beside(wire, other, [{"fault": fault}]) as (behind, lab):
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert lab.attempts == 1


@EACH_PAIR
@pytest.mark.parametrize("fault", ["cut", "stream_error", "no_end"])
def test_a_broken_stream_goes_on_elsewhere(fault: str, wire: str, other: str) -> None:
    """A stream that breaks in mid-answer is continued by the other provider: nothing is lost, nothing comes twice."""
    rule = {"fault": fault, "after": 17}
    with beside(wire, other, [rule], policy={"retries": 1}) as (behind, lab):
        got = ask(behind, wire, stream=True)
        assert got.text == WHOLE
        assert lab.attempts >= 1


@EACH_PAIR
@pytest.mark.parametrize("fault", ["cut", "stream_error"])
def test_a_broken_stream_of_the_other_provider_goes_on(fault: str, wire: str, other: str) -> None:
    """A translated stream that breaks is continued as well."""
    with beside(wire, other, alone=True) as (behind, lab):
        lab.use([{"fault": fault, "after": 17, "request": 1}])
        assert ask(behind, wire, stream=True).text == WHOLE
        assert lab.attempts == 2


@EACH_PAIR
@pytest.mark.parametrize("fault", ["cut", "stream_error"])
def test_a_stream_that_breaks_after_the_handover_goes_on(fault: str, wire: str, other: str) -> None:
    """The provider that took over from a dead one breaks off, too: its answer is continued there, and not asked for again."""
    with beside(wire, other, [{"fault": "overloaded"}], policy={"retries": 1}) as (behind, lab):
        lab.use([{"fault": fault, "after": 17, "request": 1}])
        assert ask(behind, wire, stream=True).text == WHOLE
        assert (behind.lab.attempts, lab.attempts) == (2, 2)


@EACH_WAY
@EACH_PAIR
@pytest.mark.parametrize("fault", ["", "overloaded", "cut"])
def test_tool_calls_are_exact(fault: str, wire: str, other: str, stream: bool) -> None:
    """One complete tool call with exact arguments, also if the own provider breaks off inside of it."""
    script = [{"fault": fault, **({"after": 1} if fault == "cut" else {})}] if fault else None
    with beside(wire, other, script, alone=not fault, answers={"calls": 1}) as (behind, lab):
        got = ask(behind, wire, stream=stream, tools=True)
        assert len(got.calls) == 1
        assert set(_arguments(got)) == set(TOOL["input_schema"]["required"])
        assert got.stop in ("tool_use", "tool_calls", "completed", "stop")
        is_settled = wire == "gemini" and stream and fault == "cut"  # its calls come whole: nothing is left to ask for
        assert lab.attempts >= 1 or is_settled


def _arguments(got: Got) -> dict[str, Any]:
    text = got.calls[0]
    return dict(json.loads(text)) if text.startswith('{"') else dict(literal_eval(text))


def test_settings_are_those_of_the_model_that_answers() -> None:
    """A name that the upstream's table maps to another model gets the parameters of that model."""
    with (
        Lab() as lab,
        Behind(
            apis=(),
            policy={"models": ["other/gpt-5.1"]},
            upstreams={
                "other": {**OTHERS["chat"], "url": lab.url, "key_env": "OTHER_KEY", "models": {"gpt-5.1": "llama-4"}}
            },
        ) as behind,
    ):
        ask(behind, "messages", stream=False)
        sent = lab.calls[0].json
        assert (sent["model"], "max_tokens" in sent, "reasoning_effort" in sent) == ("llama-4", True, False)


@EACH_WAY
def test_arguments_have_the_names_of_the_client(stream: bool) -> None:
    """Anthropic rejects names such as `$filter`: it gets other names, and the client its own in the call."""
    schema = {"type": "object", "properties": {"$filter": {"type": "string"}}, "required": ["$filter"]}
    tool: Any = {"type": "function", "function": {"name": "list", "parameters": schema}}
    with beside("chat", "messages", alone=True, answers={"calls": 1}) as (behind, lab):
        completions = behind.gpt().chat.completions
        if stream:
            with completions.stream(model="small", messages=ASK, tools=[tool]) as events:
                arguments = str(events.get_final_completion().to_dict()["choices"])
        else:
            arguments = str(completions.create(model="small", messages=ASK, tools=[tool]).to_dict()["choices"])
        assert '\'{"$filter":' in arguments
        (sent,) = lab.calls[0].json["tools"][0]["input_schema"]["properties"]
        assert sent.startswith("_filter_")


def test_dropped_fields_are_named() -> None:
    """What the other wire cannot say is named in a header."""
    with beside("messages", "chat", alone=True) as (behind, _):
        response = behind.claude().messages.with_raw_response.create(
            model="small", max_tokens=1_000, messages=ASK, extra_body={"top_k": 5}
        )
        assert "top_k" in response.headers["x-rung-dropped"]


def test_an_error_of_the_other_provider_is_in_the_clients_format() -> None:
    """A client gets an error that its SDK reads, whatever API the failing provider has."""
    with beside("chat", "messages", alone=True) as (behind, lab):
        lab.use([{"fault": "bad_request"}])
        with pytest.raises(openai.BadRequestError) as error:
            ask(behind, "chat", stream=False)
        assert error.value.body is not None


def test_a_model_is_never_sent_to_an_upstream_that_lacks_it() -> None:
    """A model list that mixes wires sends each model to its own upstream, under its own name."""
    with beside("messages", "chat", [{"fault": "overloaded"}]) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert {call.json["model"] for call in behind.lab.calls} == {"small"}
        assert {call.json["model"] for call in lab.calls} == {"large"}


def test_an_alias_stands_for_a_model() -> None:
    """A client's name for a model may stand for a model of another provider, for one project or for all."""
    aliases = [{"name": "small", "model": "other/large", "project": "shop"}]
    with beside("messages", "chat", aliases=aliases) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert (behind.attempts, lab.attempts) == (1, 0)
        ask(behind, "messages", stream=False, extra_headers={"x-rung-project": "shop"})
        assert (behind.attempts, lab.attempts) == (1, 1)
        assert lab.calls[0].json["model"] == "large"


def test_without_a_key_of_its_own_no_other_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's key never goes to another provider."""
    with beside("chat", "messages", [{"fault": "overloaded"}]) as (behind, lab):
        monkeypatch.delenv("OTHER_KEY")
        with pytest.raises(openai.InternalServerError):
            ask(behind, "chat", stream=False)
        assert lab.attempts == 0


def test_history_at_the_provider_stays_there() -> None:
    """A request that refers to a response which only its provider has is not sent elsewhere."""
    with beside("responses", "messages", [{"fault": "overloaded"}]) as (behind, lab):
        with pytest.raises(openai.APIStatusError):
            behind.gpt().responses.create(model="small", input="go on", previous_response_id="resp_unknown")
        assert lab.attempts == 0


def test_the_output_limit_fits_the_other_model() -> None:
    """A limit above the other model's maximum is lowered to it, because its provider would reject the request."""
    models = ["small", {"name": "other/large", "max_tokens": 2_000}]
    with beside("messages", "chat", [{"fault": "overloaded"}], policy={"models": models}) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert lab.calls[0].json["max_tokens"] == 2_000


def test_a_smaller_window_is_compacted_for() -> None:
    """A history that does not fit into the other model's window is compacted before it is sent there."""
    models = ["small", {"name": "other/large", "window": 8_000, "max_tokens": 2_000}]
    turns = [{"role": role, "content": f"{n} {'word ' * 1_000}"} for n in range(12) for role in ("user", "assistant")]
    with beside("messages", "chat", [{"fault": "overloaded"}], policy={"models": models}) as (behind, lab):
        got = ask(behind, "messages", stream=False, messages=[*turns, *ASK])
        assert got.text == WHOLE
        assert len(str(lab.calls[0].json["messages"])) < 4 * 8_000
        assert "count to 40" in str(lab.calls[0].json["messages"][-1])


LIMITED = {"name": "other/large", "window": 8_000, "max_tokens": 2_000}
LONG_TALK = [{"role": role, "content": f"{n} {'word ' * 200}"} for n in range(40) for role in ("user", "assistant")]


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize("route", ["alone", "name", "alias"])
def test_the_first_model_has_its_limits_too(route: str, wire: str) -> None:
    """A listed model that serves a call first gets an output limit and a history that fit it; both are named."""
    other = "chat" if wire == "messages" else "messages"
    model = {"alone": "small", "name": "other/large", "alias": "quick"}[route]
    models = [LIMITED] if route == "alone" else ["small", LIMITED]
    aliases = [{"name": "quick", "model": "other/large"}]
    more: dict[str, Any] = {"policy": {"models": models}, "answers": {"max_output": 2_000, "window": 8_000}}
    with beside(wire, other, alone=route == "alone", aliases=aliases, **more) as (behind, lab):
        body = {"model": model, "max_tokens": 4_000, "messages": [*LONG_TALK, *ASK]}
        path = "/v1/messages" if wire == "messages" else "/v1/chat/completions"
        response = behind.http().post(path, json=body, headers={"x-api-key": "sk-test"})
        assert (response.status_code, lab.attempts, behind.attempts) == (200, 1, 0)
        assert lab.calls[0].json["max_tokens"] == 2_000
        assert len(str(lab.calls[0].json["messages"])) < 4 * 8_000
        assert "count to 40" in str(lab.calls[0].json["messages"][-1])
        assert response.headers["x-rung-output-limit"] == "4000 to 2000 tokens"
        assert "characters" in response.headers["x-rung-compacted"]


def test_a_larger_model_gets_the_whole_conversation() -> None:
    """What was fitted to the first model only is sent as the client wrote it to the model that takes over."""
    models = [LIMITED, "other/huge"]
    with beside("messages", "chat", alone=True, policy={"models": models, "retries": 1}) as (behind, lab):
        lab.use([{"fault": "overloaded", "model": "large"}])
        body = {"model": "small", "max_tokens": 4_000, "messages": [*LONG_TALK, *ASK]}
        response = behind.http().post("/v1/messages", json=body, headers={"x-api-key": "sk-test"})
        first, last = lab.calls[0].json, lab.calls[-1].json
        assert (response.status_code, first["model"], last["model"]) == (200, "large", "huge")
        assert [each["max_tokens"] for each in (first, last)] == [2_000, 4_000]
        assert len(str(last["messages"])) > len(str(LONG_TALK))
        assert not {"x-rung-output-limit", "x-rung-compacted"} & set(response.headers)


def test_a_session_on_another_model_has_its_limits() -> None:
    """Further calls of a session that was handed over are fitted to its model as well."""
    models = ["small", LIMITED]
    fault = [{"fault": "overloaded"}]
    with beside("messages", "chat", fault, policy={"models": models}, answers={"max_output": 2_000}) as (behind, lab):
        headers = {"x-api-key": "sk-test", "x-rung-session": "s1"}
        for _ in range(2):
            body = {"model": "small", "max_tokens": 4_000, "messages": [*LONG_TALK, *ASK]}
            response = behind.http().post("/v1/messages", json=body, headers=headers)
            assert response.status_code == 200
            assert len(str(lab.calls[-1].json["messages"])) < 4 * 8_000


def test_limits_do_not_touch_a_call_of_the_own_model() -> None:
    """An own model in the list gets the client's bytes, whatever the list says about it."""
    models = [{"name": "small", "window": 8_000, "max_tokens": 2_000}, "other/large"]
    sent = json.dumps({"model": "small", "max_tokens": 4_000, "messages": [*LONG_TALK, *ASK]}, indent=1).encode()
    with beside("messages", "chat", policy={"models": models}) as (behind, lab):
        headers = {"x-api-key": "sk-test", "content-type": "application/json"}
        assert behind.http().post("/v1/messages", content=sent, headers=headers).status_code == 200
        assert (behind.lab.calls[0].body, lab.attempts) == (sent, 0)


def test_what_an_answer_loses_is_named_too() -> None:
    """Reasoning of the other provider is left out of the answer, and named."""
    with beside("chat", "messages", alone=True, answers={"thinking": 5}) as (behind, _):
        response = behind.gpt().chat.completions.with_raw_response.create(
            model="small", messages=ASK, reasoning_effort="high"
        )
        assert response.parse().choices[0].message.content == WHOLE
        assert "reasoning" in response.headers["x-rung-dropped"]
        assert response.headers["x-rung-upstream"] == "other/large"


# Errors of providers, and how each API says that a context window is full.
BAD: dict[str, dict[str, Any]] = {
    "messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "tool is wrong"}},
    "chat": {"error": {"message": "tool is wrong", "type": "invalid_request_error", "param": None, "code": None}},
    "responses": {"error": {"message": "tool is wrong", "type": "invalid_request_error", "param": None, "code": None}},
    "gemini": {"error": {"code": 400, "message": "tool is wrong", "status": "INVALID_ARGUMENT"}},
}
TOO_LONG = {
    "messages": "prompt is too long: 9000 tokens > 8000 maximum",
    "chat": "This model's maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens.",
    "responses": "Your input exceeds the context window of this model: 9000 tokens > 8000 maximum.",
    "gemini": "The input token count (9000) exceeds the maximum number of tokens allowed (8000).",
}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/messages", {"model": "small", "max_tokens": 500, "messages": ASK}),
    "chat": ("/v1/chat/completions", {"model": "small", "messages": ASK}),
    "responses": ("/v1/responses", {"model": "small", "input": "hi"}),
    "gemini": ("/v1beta/models/small:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
}


# Answers of servers that do not stream, whatever is asked for.
ANSWERS: dict[str, dict[str, Any]] = {
    "messages": message({"type": "text", "text": "one two"}, {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}}, reason="tool_use"),
    "chat": completion("one two", "tool_calls", tool_calls=[{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}]),
    "responses": {
        **RESPONSE, "status": "completed",
        "output": [
            {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "one two", "annotations": []}]},
            {"id": "f1", "type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at": "x"}', "status": "completed"},
        ],
        "usage": {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
        },
    },
    "gemini": content(text_part("one two"), call_part(at="x"), reason="STOP"),
}  # fmt: skip


@pytest.mark.parametrize("other", ALL_WIRES)
@pytest.mark.parametrize("wire", ALL_WIRES)
def test_a_whole_answer_to_a_request_for_a_stream(wire: str, other: str) -> None:
    """A client that asks for a stream gets one, with text, call and usage, also if the upstream answers with plain JSON."""
    with RawUpstream(lambda _: whole(ANSWERS[other]), close=True) as upstream:
        second = {**OTHERS[other], "url": upstream.url, "key_env": "OTHER_KEY"}
        with Behind(apis=(), policy={"models": ["other/large"]}, upstreams={"other": second}) as behind:
            got = ask(behind, wire, stream=True, tools=True)
            assert (got.text, got.usage) == ("one two", 5)
            assert _arguments(got) == {"at": "x"}
            assert len(upstream.requests) == 1


def refusal_of(wire: str, other: str, error: dict[str, Any]) -> dict[str, Any]:
    """Return the error that a client gets if the only provider, of another wire, refuses its request with this one."""
    answer = http_answer(json.dumps(error).encode(), "content-type: application/json", status="400 Bad Request")
    path, body = REQUESTS[wire]
    with RawUpstream(lambda _: answer, close=True) as upstream:
        second = {**OTHERS[other], "url": upstream.url, "key_env": "OTHER_KEY"}
        with Behind(apis=(), policy={"models": ["other/large"]}, upstreams={"other": second}) as behind:
            got = behind.http().post(path, json=body)
    assert got.status_code == 400
    return dict(got.json()["error"])


@EACH_PAIR
def test_an_error_has_the_message_of_the_other_provider(wire: str, other: str) -> None:
    """The message of another provider's error is its message, not its whole body."""
    assert refusal_of(wire, other, BAD[other])["message"] == "tool is wrong"


@EACH_PAIR
def test_a_full_context_is_said_in_the_words_of_the_client(wire: str, other: str) -> None:
    """If the context window of another provider is full, the client gets the words and the code that agents look for."""
    full = {**BAD[other]["error"], "message": TOO_LONG[other]}
    error = refusal_of(wire, other, {**BAD[other], "error": full})
    assert error["message"].startswith(TOO_LONG[wire])
    if wire in ("chat", "responses"):
        assert error["code"] == "context_length_exceeded"


def test_a_full_context_without_numbers() -> None:
    """A provider that gives no numbers of tokens is quoted after the words of the client's API."""
    error = refusal_of("messages", "chat", {"error": {"message": "Input is too long for requested model."}})
    assert error["message"] == "prompt is too long: Input is too long for requested model."


@pytest.mark.parametrize("kind", ["bedrock", "vertex"])
def test_removed_betas_are_named(kind: str) -> None:
    """Betas that the settings of an upstream do not allow are named; the others are in the header and in the body."""
    with RawUpstream(lambda _: whole(message({"type": "text", "text": "one"})), close=True) as upstream:
        cloud = {"type": kind, "url": upstream.url, "region": "eu-central-1", "key_env": "OTHER_KEY", "betas": ["b-1"]}
        project = {"project": "p"} if kind == "vertex" else {}
        policy = {"models": ["cloud/claude-x"]}
        with Behind(apis=(), policy=policy, upstreams={"cloud": cloud | project}) as behind:
            got = behind.claude().beta.messages.with_raw_response.create(
                model="claude-x", max_tokens=500, messages=ASK, betas=["b-1", "b-2", "b-3"]
            )
        assert got.headers["x-rung-dropped"] == "b-2, b-3"
        assert b"anthropic-beta: b-1\r\n" in upstream.requests[0]
        assert b'"anthropic_beta":["b-1"]' in upstream.requests[0]


def test_vertex_gets_the_betas_that_it_accepts() -> None:
    """Without a list in the settings, Vertex is asked for the betas that it accepts; it would reject the others."""
    with RawUpstream(lambda _: whole(message({"type": "text", "text": "one"})), close=True) as upstream:
        cloud = {"type": "vertex", "url": upstream.url, "region": "eu", "key_env": "OTHER_KEY", "project": "p"}
        with Behind(apis=(), policy={"models": ["cloud/claude-x"]}, upstreams={"cloud": cloud}) as behind:
            got = behind.claude().beta.messages.with_raw_response.create(
                model="claude-x",
                max_tokens=500,
                messages=ASK,
                betas=["context-1m-2025-08-07", "files-api-2025-04-14", "interleaved-thinking-2025-05-14"],
            )
        assert got.headers["x-rung-dropped"] == "files-api-2025-04-14"
        sent = b'"anthropic_beta":["context-1m-2025-08-07","interleaved-thinking-2025-05-14"]'
        assert sent in upstream.requests[0]


def test_many_dropped_names() -> None:
    """A header with no room for all names ends after a whole name, with how many more there are."""
    names = {f"unknown_field_{number:03}": True for number in range(500)}
    with beside("messages", "chat", alone=True) as (behind, _):
        asked: Any = {"model": "small", "max_tokens": 500, "messages": ASK}
        raw = behind.claude().messages.with_raw_response
        *listed, more = raw.create(**asked, extra_body=names).headers["x-rung-dropped"].split(", ")
        assert set(listed) <= set(names)
        assert more == f"and {500 - len(listed)} more"
        raw.create(**asked, extra_body={"top_k": 5})
        dropped = behind.gateway.health.dropped
        assert len(dropped) == 201
        assert dropped["other", "other"] == 301


def test_other_upstreams_have_room_for_dropped_names() -> None:
    """One upstream's list of dropped fields takes no room of another's."""
    names = {f"unknown_field_{number:03}": True for number in range(500)}
    with Lab() as lab, Lab() as third:
        each = {
            name: {**OTHERS["chat"], "url": url, "key_env": "OTHER_KEY"}
            for name, url in (("other", lab.url), ("third", third.url))
        }
        with Behind(apis=(), policy={"models": ["other/large", "third/large"]}, upstreams=each) as behind:
            asked: Any = {"max_tokens": 500, "messages": ASK}
            behind.claude().messages.create(model="other/large", **asked, extra_body=names)
            behind.claude().messages.create(model="third/large", **asked, extra_body={"top_k": 5})
            assert behind.gateway.health.dropped["third", "top_k"] == 1


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("messages", {"container": "container_1"}),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}]}),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]}),
        ("gemini", {"cachedContent": "cachedContents/1"}),
    ],
)  # fmt: skip
def test_files_at_the_provider_are_not_left_out(wire: str, body: dict[str, Any]) -> None:
    """A call that names a file, a container or a cache of its provider is rejected if only another one is there."""
    path, asked = REQUESTS[wire]
    with beside(wire, "responses" if wire != "chat" else "messages", alone=True) as (behind, lab):
        got = behind.http().post(path, json={**asked, **body})
        assert got.status_code == 404
        assert "only its own provider has" in got.json()["error"]["message"]
        assert lab.attempts == 0


NO_CONVERSATION: list[tuple[str, str, dict[str, Any]]] = [
    ("messages", "messages", {"model": "small", "max_tokens": 500, "messages": "hi"}),
    ("messages", "messages", {"model": "small", "max_tokens": 500, "messages": [], "system": "Be brief."}),
    ("chat", "messages", {"model": "small", "messages": {"role": "user", "content": "hi"}}),
    ("chat", "messages", {"model": "small"}),
    ("responses", "input", {"model": "small", "input": []}),
    ("gemini", "contents", {"contents": "hi"}),
]


@pytest.mark.parametrize(("wire", "field", "body"), NO_CONVERSATION)
def test_a_request_without_a_conversation_is_rejected(wire: str, field: str, body: dict[str, Any]) -> None:
    """Another provider is never asked something that the client did not say: a request that says nothing is an error."""
    with beside(wire, "messages" if wire == "chat" else "chat", alone=True) as (behind, lab):
        response = behind.http().post(REQUESTS[wire][0], json=body, headers={"x-api-key": "sk-test"})
        assert response.status_code == 400
        assert f"`{field}` must be a list" in response.json()["error"]["message"]
        assert lab.attempts == 0


def test_a_stored_prompt_is_no_empty_request() -> None:
    """A request whose conversation is at its provider is rejected for that reason."""
    alone = beside("responses", "messages", alone=True)
    with alone as (behind, _), pytest.raises(openai.NotFoundError, match="only its own provider has"):
        behind.gpt().responses.create(model="small", prompt={"id": "pmpt_1"})


def test_other_calls_are_not_translated() -> None:
    """A call that is no model call needs an upstream with its API, whatever models the list has; the error says so."""
    with beside("messages", "chat", alone=True) as (behind, lab):
        with pytest.raises(anthropic.NotFoundError, match="upstreams of other APIs answer model calls only"):
            behind.claude().messages.count_tokens(model="small", messages=ASK)
        assert lab.attempts == 0
