"""The lab as a server: recording, validation, lifecycle and the control API."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as genai_errors

import rung
import rung.testing
from rung.testing import words
from rung.testing.provider.gemini_checks import SKIPPED_SIGNATURE
from tests.testing.clients import PROMPT, Asker

if TYPE_CHECKING:
    from rung.testing import Lab

ASK: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}


def raw(lab: Lab, *parts: bytes) -> bytes:
    """Return the response to these bytes, until the lab closes the connection or stays silent."""
    with socket.create_connection((lab.host, lab.port)) as client:
        client.settimeout(5)
        for part in parts:
            client.sendall(part)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while got := client.recv(65536):
            answer += got
    return answer


def until(true: Any) -> None:
    """Wait until a condition holds in another thread."""
    limit = time.monotonic() + 60
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_what_was_asked_is_recorded(lab: Lab, asker: Asker) -> None:
    """Every request is recorded in order, with body, headers, wire, model, stream, fault, status and tokens."""
    lab.use([{"fault": "overloaded", "request": 1}])
    with pytest.raises(anthropic.APIStatusError):
        asker.ask("messages", False, model="a")
    asker.ask("chat", True, model="b", max_tokens=7)
    asker.anthropic.models.list()
    first, second, aside = lab.requests
    assert (first.wire, first.model, first.stream, first.fault, first.status) == (
        "messages",
        "a",
        False,
        "overloaded",
        529,
    )
    assert first.json["messages"][0]["content"] == PROMPT
    assert first.headers["anthropic-version"]
    assert (second.number, second.wire, second.model, second.stream, second.tokens) == (2, "chat", "b", True, 7)
    assert second.ended == "complete"
    assert (aside.number, aside.method) == (0, "GET")
    assert lab.attempts == 2
    assert len(lab.calls) == 2


def test_another_process_reads_and_sets_over_http(lab: Lab, asker: Asker) -> None:
    """The control API lists and deletes requests and replaces the script; keys are masked."""
    asker.ask("chat", False)
    told = httpx2.get(f"{lab.url}/lab/requests").json()
    assert told["attempts"] == 1
    assert told["requests"][0]["body"]["messages"][0]["content"] == PROMPT
    assert told["requests"][0]["headers"]["authorization"] == "…4567"
    assert "sk-test" not in json.dumps(told)
    assert httpx2.delete(f"{lab.url}/lab/requests").json() == {"attempts": 0}
    assert httpx2.put(f"{lab.url}/lab/script", json=[{"fault": "quota"}]).json() == {"rules": 1}
    with pytest.raises(openai.RateLimitError):
        asker.ask("chat", False)
    assert httpx2.get(f"{lab.url}/lab/requests").json()["faults"] == {"quota": 1}
    bad = httpx2.put(f"{lab.url}/lab/script", json=[{"fault": "quotas"}])
    assert (bad.status_code, "rules[0].fault: 'quotas'" in bad.json()["error"]) == (400, True)
    assert set(httpx2.get(f"{lab.url}/lab/faults").json()) == set(rung.testing.FAULTS)
    assert httpx2.get(f"{lab.url}/lab/nothing").status_code == 404


def test_only_the_last_requests_are_shown_when_asked(lab: Lab, asker: Asker) -> None:
    """`?last=` limits the requests; the count includes all."""
    for _ in range(3):
        asker.ask("messages", False)
    told = httpx2.get(f"{lab.url}/lab/requests?last=1").json()
    assert (told["attempts"], [request["number"] for request in told["requests"]]) == (3, [3])


def test_a_client_that_leaves_is_noticed(lab: Lab) -> None:
    """A client that disconnects mid-stream is recorded as left, with the tokens it received."""
    lab.use([{"fault": "stall", "after": 4}])
    with httpx2.stream("POST", f"{lab.url}/v1/messages", json={**ASK, "stream": True}) as answer:
        seen = b""
        for part in answer.iter_bytes():
            seen += part
            if b"word4" in seen:
                break
    until(lambda: lab.calls[0].ended == "left")
    assert lab.calls[0].tokens == 4


def test_sign_of_life_models_and_counts(lab: Lab, asker: Asker) -> None:
    """HEAD /, the model list, and a token count that equals the usage of the answer."""
    assert httpx2.head(f"{lab.url}/").status_code == 200
    lab.use(models={"one": {"window": 9_000}, "two": {}})
    assert [model.id for model in asker.anthropic.models.list()] == ["one", "two"]
    assert [model.id for model in asker.openai.models.list()] == ["one", "two"]
    assert asker.openai.models.retrieve("two").id == "two"
    with pytest.raises(anthropic.NotFoundError):
        asker.anthropic.models.retrieve("three")
    counted = asker.anthropic.messages.count_tokens(model="one", messages=ASK["messages"])
    made = asker.anthropic.messages.create(model="one", max_tokens=9, messages=ASK["messages"])
    assert counted.input_tokens == made.usage.input_tokens
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        asker.ask("chat", True, model="three")
    assert httpx2.get(f"{lab.url}/v1/else").status_code == 404


def test_models_and_counts_of_google(lab: Lab, asker: Asker) -> None:
    """Google's lists of models and its token counts, which equal the usage of the answer."""
    lab.use(models={"one": {"window": 9_000}, "two": {}})
    assert [model.name for model in asker.gemini.models.list()] == ["models/one", "models/two"]
    assert asker.gemini.models.get(model="two").display_name == "two"
    counted = asker.gemini.models.count_tokens(model="one", contents=PROMPT)
    seen = asker.ask("gemini", True, model="one")
    assert seen.usage is not None
    assert counted.total_tokens == seen.usage[0]
    with pytest.raises(genai_errors.ClientError, match="models/three is not found"):
        asker.ask("gemini", False, model="three")
    assert (lab.calls[-1].wire, lab.calls[-1].model, lab.calls[-1].stream) == ("gemini", "three", False)
    missing = httpx2.get(f"{lab.url}/v1beta/else")
    assert (missing.status_code, missing.json()["error"]["status"]) == (404, "NOT_FOUND")


def test_a_key_in_the_query_is_masked(lab: Lab) -> None:
    """Google accepts a key in the query; the record of another process does not show it."""
    lab.use(keys=["sk-right"])
    url = f"{lab.url}/v1beta/models/m:generateContent"
    assert httpx2.post(f"{url}?key=sk-right", json=CONTENTS).status_code == 200
    assert httpx2.post(f"{url}?key=sk-wrong", json=CONTENTS).json()["error"]["status"] == "INVALID_ARGUMENT"
    assert "sk-right" not in httpx2.get(f"{lab.url}/lab/requests").text


def test_only_known_keys(lab: Lab) -> None:
    """With `keys`, any other key gets a 401."""
    lab.use(keys=["sk-right"])
    with Asker(lab.url, key="sk-right") as known, Asker(lab.url, key="sk-wrong") as stranger:
        assert known.ask("messages", False).text == known.ask("chat", True).text == words(40)
        with pytest.raises(anthropic.AuthenticationError):
            stranger.ask("messages", True)
        with pytest.raises(openai.AuthenticationError):
            stranger.ask("responses", False)
        assert known.ask("gemini", True).text == words(40)
        with pytest.raises(genai_errors.ClientError, match="API key not valid"):
            stranger.ask("gemini", False)


CALL = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
OPEN_CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("messages", {}, "model: Field required"),
        ("messages", {"model": "m", "messages": []}, "max_tokens: Field required"),
        ("messages", {**ASK, "messages": []}, "at least one message is required"),
        ("messages", {**ASK, "max_tokens": 0}, "max_tokens"),
        ("messages", {**ASK, "messages": [{"role": "tool"}]}, "messages.0.role"),
        ("messages", {**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": "a"}]}, "prefill"),
        (
            "messages",
            {**ASK, "messages": [{"role": "assistant", "content": [CALL]}, *ASK["messages"]]},
            "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
        ),
        ("messages", {**ASK, "messages": [{"role": "user", "content": [RESULT]}]}, "unexpected `tool_use_id`"),
        ("chat/completions", {}, "you must provide a model parameter"),
        ("chat/completions", {"model": "m"}, "Missing required parameter: 'messages'."),
        ("chat/completions", {"model": "m", "messages": []}, "empty array"),
        ("chat/completions", {"model": "m", "messages": [{"role": "x"}]}, "Supported values are"),
        (
            "chat/completions",
            {"model": "m", "messages": [{"role": "assistant", "tool_calls": [OPEN_CALL]}, *ASK["messages"]]},
            "did not have response messages: c1",
        ),
        ("chat/completions", {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c9"}]}, "role 'tool'"),
        ("responses", {"model": "m"}, "Missing required parameter: 'input'."),
        (
            "responses",
            {"model": "m", "input": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}]},
            "No tool output found for function call c1.",
        ),
        (
            "responses",
            {"model": "m", "input": [{"type": "function_call_output", "call_id": "c2", "output": "x"}]},
            "No tool call found for function call output with call_id c2.",
        ),
        ("messages", [1], "not a JSON object"),
    ],
)
def test_what_a_provider_refuses(lab: Lab, path: str, body: Any, said: str) -> None:
    """An invalid request gets a 400 with the provider's message."""
    answer = httpx2.post(f"{lab.url}/v1/{path}", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert said in error["message"]
    assert lab.attempts == 1


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


CONTENTS: dict[str, Any] = {"contents": [content("user", {"text": "hi"})]}
GO = content("user", {"text": "go"})
ASKED = content("model", {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": SKIPPED_SIGNATURE})
UNSIGNED = content("model", {"functionCall": {"name": "read", "args": {}}})
GIVEN = {"functionResponse": {"name": "read", "response": {"output": "x"}}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "contents is not specified"),
        ({"contents": [content("user")]}, "contents.parts must not be empty"),
        ({"contents": [content("user", {})]}, "required oneof field 'data'"),
        ({"contents": [content("assistant", {"text": "a"})]}, "Please use a valid role: user, model."),
        ({**CONTENTS, "max_tokens": 9}, 'Unknown name "maxTokens"'),
        ({"contents": [GO, content("model", {"text": "a"})]}, "end with a user role or a function response"),
        ({"contents": [ASKED, content("user", GIVEN)]}, "function call turn comes immediately after a user turn"),
        ({"contents": [content("user", GIVEN)]}, "comes immediately after a function call turn"),
        ({"contents": [GO, ASKED, GO]}, "number of function response parts is equal"),
        ({"contents": [GO, ASKED, content("user", GIVEN, GIVEN)]}, "number of function response parts is equal"),
        (
            {"contents": [GO, ASKED, content("user", {"functionResponse": {"name": "write", "response": {}}})]},
            "has the name of its function call",
        ),
        (
            {"contents": [GO, ASKED, content("user", {"functionResponse": {**GIVEN["functionResponse"], "id": "x"}})]},
            "the id x of a function response",
        ),
        ({"contents": [GO, UNSIGNED, content("user", GIVEN)]}, "missing a thought_signature"),
        (
            {"contents": [GO, content("model", {**ASKED["parts"][0], "thoughtSignature": "bm8="}), content("user", GIVEN)]},
            "Thought signature is not valid",
        ),
        ({**CONTENTS, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "without function_declarations"),
        ({**CONTENTS, "tools": [{"functionDeclarations": [{"name": "1 a"}]}]}, "Invalid function name"),
        ({**CONTENTS, "tools": [{"functionDeclarations": [{"name": "a"}] * 2}]}, "Duplicate function declaration found: a"),
        ({**CONTENTS, "generationConfig": {"maxOutputTokens": 0}}, "max_output_tokens must be positive."),
        ({**CONTENTS, "generationConfig": {"stopSequences": list("abcdef")}}, "stop_sequences"),
        (
            {**CONTENTS, "generation_config": {"thinkingConfig": {"thinking_level": "LOW", "thinkingBudget": 1}}},
            "only one of thinking budget and thinking level",
        ),
    ],
)  # fmt: skip
def test_what_google_refuses(lab: Lab, body: Any, said: str) -> None:
    """An invalid request gets a 400 with Google's message."""
    answer = httpx2.post(f"{lab.url}/v1beta/models/m:generateContent", json=body)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert said in answer.json()["error"]["message"]


def test_a_turn_in_several_contents(lab: Lab) -> None:
    """Consecutive contents of a role are one turn: only its first call is signed, and its responses follow it."""
    history = [GO, GO, content("model", {"text": "a"}), ASKED, UNSIGNED, content("user", GIVEN), content("user", GIVEN)]
    answer = httpx2.post(f"{lab.url}/v1beta/models/m:generateContent", json={"contents": history})
    assert answer.status_code == 200


def test_an_unsigned_call_of_an_earlier_turn(lab: Lab) -> None:
    """Google validates the signatures of the current turn only."""
    history = [GO, UNSIGNED, content("user", GIVEN), content("model", {"text": "done"}), GO]
    answer = httpx2.post(f"{lab.url}/v1beta/models/m:generateContent", json={"contents": history})
    assert answer.status_code == 200


def test_a_larger_output_than_the_model_has(lab: Lab, asker: Asker) -> None:
    """The error names the largest allowed value, which works."""
    lab.use(max_output=50)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: 60 > 50, which is the maximum allowed"):
        asker.ask("messages", False, max_tokens=60)
    with pytest.raises(openai.BadRequestError, match="supports at most 50 completion tokens"):
        asker.ask("chat", False, max_tokens=60)
    with pytest.raises(genai_errors.ClientError, match=r"supported range is from 1 \(inclusive\) to 51"):
        asker.ask("gemini", False, max_tokens=60)
    assert asker.ask("chat", False, max_tokens=50).text == words(40)


def test_bodies_in_chunks_and_requests_in_a_row(lab: Lab) -> None:
    """Chunked bodies, pipelined requests and Expect are handled."""
    body = json.dumps(ASK).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n"
    sized = head + b"content-length: %d\r\n\r\n%b" % (len(body), body)
    chunked = head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (
        5, body[:5], len(body) - 5, body[5:],
    )  # fmt: skip
    last = head + b"expect: 100-continue\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    answer = raw(lab, sized + chunked[:70], chunked[70:], last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.count(b"100 Continue") == 1
    assert answer.count(b"word40") == 3
    assert [call.json for call in lab.calls] == [ASK] * 3


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, b"431"),
        (b"POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: 3\r\n\r\n{no", b"400"),
    ],
)
def test_what_is_no_request(lab: Lab, sent: bytes, status: bytes) -> None:
    """Bytes that are not HTTP or JSON get an error response."""
    assert raw(lab, sent).startswith(b"HTTP/1.1 " + status)


def test_a_body_too_large_is_read_and_refused(lab: Lab) -> None:
    """A body above 32 MB gets a 413 with the provider's message."""
    answer = httpx2.post(f"{lab.url}/v1/messages", content=b"x" * (32 * 2**20 + 1), timeout=30)
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


def test_a_redirect_to_another_host(lab: Lab) -> None:
    """A redirect is a 307 with the configured target."""
    lab.use([{"fault": "redirect", "to": "http://127.0.0.1:1/x"}])
    answer = httpx2.post(f"{lab.url}/v1/messages", json=ASK)
    assert (answer.status_code, answer.headers["location"]) == (307, "http://127.0.0.1:1/x")


def test_async_and_sync_alike() -> None:
    """`async with` uses the running loop; both forms clean up completely."""

    async def ask() -> str:
        async with (
            rung.testing.lab(words=3) as lab,
            anthropic.AsyncAnthropic(api_key="k", base_url=lab.url) as client,
        ):
            made: Any = await client.messages.create(**ASK)
            assert lab.attempts == 1
            return str(made.content[0].text)

    assert asyncio.run(ask()) == "word1 word2 word3"
    before = threading.active_count()
    with rung.testing.lab(words=2) as lab:
        assert httpx2.post(f"{lab.url}/v1/messages", json=ASK).json()["content"][0]["text"] == "word1 word2"
    assert threading.active_count() == before
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(lab.url)


def test_a_lab_stops_while_somebody_waits() -> None:
    """Leaving the block ends every stall at once."""
    with rung.testing.lab(script=["slow"]) as lab, socket.create_connection((lab.host, lab.port)) as client:
        body = json.dumps(ASK).encode()
        client.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        until(lambda: lab.attempts == 1)
    assert lab.calls[0].ended == "left"


def test_a_port_that_is_taken(lab: Lab) -> None:
    """A port in use is an error of one line, and no thread is left."""
    with (
        pytest.raises(rung.errors.ConfigError, match=r"port: port \d+ on 127\.0\.0\.1 is taken"),
        rung.testing.lab(port=lab.port),
    ):
        pass


def test_a_delay_and_gaps(lab: Lab, asker: Asker) -> None:
    """A slow provider loses nothing."""
    lab.use(words=5, delay=0.02, gap=0.01)
    assert asker.ask("messages", True).text == words(5)
    assert asker.ask("chat", False).text == words(5)
    assert lab.calls[0].seconds >= 0.06


def test_names_are_loaded_when_used() -> None:
    """The fakes load no asyncio; an unknown name is an AttributeError."""
    import subprocess
    import sys

    code = "import sys, rung.testing as t; t.FakeClock; assert 'asyncio' not in sys.modules; t.lab"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not hasattr(rung.testing, "laboratory")
    assert all(hasattr(rung.testing, name) for name in rung.testing.__all__)
