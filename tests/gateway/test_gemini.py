"""Clients of Gemini's API are recovered like those of others: the real SDK gets one whole answer, or a clear error."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types

from rung.gateway.conversation_steps import recent_steps
from rung.gateway.keys import hash_key
from tests.gateway.behind import IMPATIENT
from tests.gateway.scripted import call_part, content, refused, scripted, stream, text_part, whole
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = [f"counted{n} " for n in range(12)]
WHOLE = "".join(WORDS)
OVERLOADED = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
LOOK = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="look",
            parameters=types.Schema(type=types.Type.OBJECT, properties={"at": types.Schema(type=types.Type.STRING)}, required=["at"]),
        )
    ]
)  # fmt: skip
BODY: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "count"}]}]}
OF_THE_SDK = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
SMALL = "/v1beta/models/small"


def spoken(*words: str, reason: str = "STOP") -> list[dict[str, Any]]:
    """Chunks of a response. The last of them has text and the finish reason."""
    return [content(text_part(word), reason=reason * (word is words[-1])) for word in words]


def client(front: Front, **options: Any) -> genai.Client:
    http = types.HttpOptions(base_url=front.url, api_version="v1beta", **options)
    return genai.Client(api_key="g-key", http_options=http)


def streamed(front: Front, **config: Any) -> tuple[str, str, list[Any]]:
    """The text, the finish reason and the calls of a stream, as the SDK reads them."""
    with closing(client(front)) as google:
        chunks = list(
            google.models.generate_content_stream(
                model="small", contents="count", config=types.GenerateContentConfig(**config)
            )
        )
    parts = [
        part
        for chunk in chunks
        for each in chunk.candidates or []
        for part in (each.content and each.content.parts) or []
    ]
    reasons = [
        str(each.finish_reason.value) for chunk in chunks for each in chunk.candidates or [] if each.finish_reason
    ]
    assert len(reasons) == 1
    text = "".join(part.text or "" for part in parts if not part.thought)
    return text, reasons[0], [part.function_call.args for part in parts if part.function_call]


def asked_whole(front: Front, **config: Any) -> tuple[str, str, list[Any]]:
    """The same of an answer that comes whole."""
    with closing(client(front)) as google:
        got = google.models.generate_content(
            model="small", contents="count", config=types.GenerateContentConfig(**config)
        )
    (candidate,) = got.candidates or []
    calls = [call.args for call in got.function_calls or []]
    return "" if calls else got.text or "", str(candidate.finish_reason.value if candidate.finish_reason else ""), calls


GOOD = stream(*spoken(*WORDS))
BROKEN: dict[str, bytes] = {
    "cut": stream(*spoken(*WORDS)[:5], cut=True),
    "cut at once": stream(cut=True),
    "no end": stream(*spoken(*WORDS)[:5]),
    "error event": stream(*spoken(*WORDS)[:5], {"error": OVERLOADED}),
    "error between events": stream(*spoken(*WORDS)[:5]) + json.dumps({"error": OVERLOADED}, indent=2).encode(),
    "overloaded": refused("503 Service Unavailable", OVERLOADED),
    "rate limit": refused("429 Too Many Requests", {**OVERLOADED, "code": 429, "status": "RESOURCE_EXHAUSTED"}, "retry-after: 0"),
    "empty": stream(content(text_part(""), reason="STOP")),
    "thoughts alone": stream(content(text_part("hm", thought=True)), content(reason="STOP")),
    "limit": stream(*spoken(*WORDS[:5], reason="MAX_TOKENS")),
    "malformed call": stream(content(reason="MALFORMED_FUNCTION_CALL")),
    "other": stream(content(reason="OTHER")),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_stream_is_recovered(fault: str) -> None:
    """After any fault, the SDK gets each word once and one finish reason, in two attempts."""
    answer = BROKEN[fault]
    if fault == "error between events":  # outside of the declared length of the first part
        body = answer.partition(b"\r\n\r\n")[2]
        answer = http_answer(body, "content-type: text/event-stream")
    received = 5 if fault in ("cut", "no end", "error event", "error between events", "limit") else 0
    with scripted(answer, stream(*spoken(*WORDS[max(0, received - 2) :]))) as front:
        assert streamed(front, max_output_tokens=8_000) == (WHOLE, "STOP", [])
        assert front.asked == 2


@pytest.mark.parametrize("fault", ["overloaded", "rate limit", "cut", "empty", "malformed", "unfinished"])
def test_a_whole_answer_is_recovered(fault: str) -> None:
    """After any fault, the SDK gets the complete answer, in two attempts."""
    answers = {
        "cut": http_answer(b'{"candidates": [', "content-type: application/json"),
        "empty": whole(content(reason="STOP")),
        "malformed": whole(content(reason="MALFORMED_FUNCTION_CALL")),
        "unfinished": whole(content(text_part("count"))),
    }
    with scripted(answers.get(fault) or BROKEN[fault], whole(content(text_part(WHOLE), reason="STOP"))) as front:
        assert asked_whole(front) == (WHOLE, "STOP", [])
        assert front.asked == 2


@pytest.mark.parametrize("ask", [streamed, asked_whole])
def test_a_call_has_its_arguments(ask: Callable[..., tuple[str, str, list[Any]]]) -> None:
    """A function call without its required arguments is asked for again."""
    made = stream if ask is streamed else whole
    with scripted(made(content(call_part(), reason="STOP")), made(content(call_part(at="x"), reason="STOP"))) as front:
        assert ask(front, tools=[LOOK]) == ("", "STOP", [{"at": "x"}])


def test_another_model_is_named_in_the_path() -> None:
    """A fallback goes to the path of the other model, with the same method and query."""
    gone = refused(
        "404 Not Found",
        {"code": 404, "message": "models/small is not found for API version v1beta", "status": "NOT_FOUND"},
    )
    with scripted(gone, GOOD, policy={"models": ["small", "large"]}) as front:
        assert streamed(front) == (WHOLE, "STOP", [])
        lines = [request.partition(b"\r\n")[0].decode() for request in front.upstream.requests]
    assert lines == [
        f"POST /v1beta/models/{model}:streamGenerateContent?alt=sse HTTP/1.1" for model in ("small", "large")
    ]


@OF_THE_SDK
def test_a_stream_that_nobody_continues_raises_an_error() -> None:
    """If no attempt can continue a stream, both clients of the SDK raise an error of the API after the text."""
    for is_async in (False, True):
        with scripted(
            BROKEN["cut"], refused("403 Forbidden", {"code": 403, "message": "no", "status": "PERMISSION_DENIED"})
        ) as front:
            google = client(front)
            with pytest.raises(errors.APIError) as caught:
                _read(google, is_async=is_async)
            assert (caught.value.code, caught.value.status) == (403, "PERMISSION_DENIED")
            google.close()


def _read(google: genai.Client, *, is_async: bool) -> None:
    if is_async:
        asyncio.run(_drain(google))
    else:
        list(google.models.generate_content_stream(model="small", contents="count"))


async def _drain(google: genai.Client) -> str:
    text = ""
    try:
        async for chunk in await google.aio.models.generate_content_stream(model="small", contents="count"):
            text += chunk.text or ""
    finally:
        await google.aio.aclose()
    return text


@OF_THE_SDK
def test_pings_are_read() -> None:
    """A client that waits gets blank lines, which the sync and the async SDK pass over."""
    silent = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n"
    asked: list[bytes] = []

    def every_second_is_silent(request: bytes) -> bytes:
        asked.append(request)
        return silent if len(asked) % 2 else GOOD

    with (
        RawUpstream(every_second_is_silent) as upstream,
        Front(gemini=upstream.url, timeouts={**IMPATIENT, "first_token": 3.0}, header_hold_seconds=0.0) as front,
        front.http() as plain,
        closing(client(front)) as google,
    ):
        raw = plain.post(f"{SMALL}:streamGenerateContent?alt=sse", json=BODY).text
        assert raw.startswith("\n\n")
        assert asyncio.run(_drain(google)) == WHOLE
        assert streamed(front)[0] == WHOLE
    assert len(asked) == 6


def test_a_client_that_wants_an_array() -> None:
    """A stream without `alt=sse` is a JSON array, recovered in the same way; its errors are items."""
    with scripted(BROKEN["cut"], stream(*spoken(*WORDS[3:]))) as front, front.http() as plain:
        got = plain.post(f"{SMALL}:streamGenerateContent", json=BODY)
        assert got.headers["content-type"].startswith("application/json")
        parts = [part for item in got.json() for each in item["candidates"] for part in each["content"]["parts"]]
        assert "".join(part["text"] for part in parts) == WHOLE
        assert b"?alt=sse HTTP" in front.upstream.requests[0]
    with (
        scripted(BROKEN["cut"], refused("403 Forbidden", {"code": 403, "message": "no"})) as front,
        front.http() as plain,
    ):
        assert plain.post(f"{SMALL}:streamGenerateContent", json=BODY).json()[-1]["error"]["code"] == 403


def test_a_project_in_the_path() -> None:
    """A path with a project is served like one without, also below /v1."""
    with scripted(GOOD) as front, front.http() as plain:
        for path in (f"/p/blue{SMALL}", "/v1/models/small"):
            got = plain.post(f"{path}:streamGenerateContent?alt=sse", json=BODY)
            assert got.text.count("data: ") == len(WORDS)
        assert [request.split(b" ")[1].partition(b":")[0] for request in front.upstream.requests] == [
            SMALL.encode(), b"/v1/models/small",
        ]  # fmt: skip


# -- credentials ---------------------------------------------------------------------------------------------


def asked_with(front: Front, target: str) -> Any:
    with front.http() as plain:
        return plain.post(target, json=BODY)


@pytest.mark.parametrize("name", ["key", "%6bey"])
@pytest.mark.parametrize("method", ["generateContent", "countTokens", "embedContent"])
def test_a_key_in_the_query_becomes_a_header(method: str, name: str) -> None:
    """The upstream gets a key that the client put into the query as a header, and the rest of the query."""
    with scripted(whole({**content(text_part("hi"), reason="STOP"), "totalTokens": 3})) as front:
        assert asked_with(front, f"{SMALL}:{method}?a=1&{name}=s3cret-key").status_code == 200
        (request,) = front.upstream.requests
    assert request.startswith(f"POST {SMALL}:{method}?a=1 HTTP".encode())
    assert request.count(b"s3cret-key") == request.count(b"\r\nx-goog-api-key: s3cret-key\r\n") == 1


def test_a_key_in_the_query_stays_with_its_host() -> None:
    """A fallback on another host gets no key of the client, and no key is in a log line or a response."""
    down = refused("404 Not Found", {"code": 404, "message": "models/small is not found", "status": "NOT_FOUND"})
    with (
        RawUpstream(down, close=True) as first,
        RawUpstream(whole(content(text_part("hi"), reason="STOP")), close=True) as second,
    ):
        other = {"wire": "gemini", "url": second.url.replace("127.0.0.1", "localhost"), "client_credentials": "drop"}
        policy = {"models": ["small", {"name": "large", "provider": "other"}]}
        with Front(gemini=first.url, upstreams={"other": other}, policy=policy) as front:
            got = asked_with(front, f"{SMALL}:generateContent?key=s3cret-key")
            lines = "\n".join(front.log_lines)
    assert (got.status_code, len(second.requests)) == (200, 1)
    assert b"s3cret-key" in first.requests[0]
    assert b"s3cret-key" not in second.requests[0]
    assert "s3cret-key" not in lines + got.text + str(got.headers)


@pytest.mark.parametrize("place", ["header", "query"])
def test_keys_of_the_gateway(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the gateway comes in the header or the query of Google's clients, and its limits hold."""
    monkeypatch.setenv("HELD_KEY", "held-by-the-gateway")
    key = "rung-for-a-client"
    with RawUpstream(whole(content(text_part("hi"), reason="STOP")), close=True) as upstream:
        held = {"wire": "gemini", "url": upstream.url, "key_env": "HELD_KEY"}
        rows = [{"hash": hash_key(key), "models": ["small"]}]
        with Front(upstreams={"google": held}, keys=rows) as front, front.http() as plain:

            def status(path: str, given: str) -> int:
                headers = {"x-goog-api-key": given} if place == "header" else {}
                query = f"?key={given}" if place == "query" else ""
                return plain.post(path + query, headers=headers, json={**BODY, "model": "models/large"}).status_code

            assert status(f"{SMALL}:generateContent", key) == 200
            assert status(f"{SMALL}:countTokens", key) == 200
            assert status(f"{SMALL}:generateContent", "rung-another") == 401
            assert status("/v1beta/models/large:generateContent", key) == 403
            assert status("/v1beta/models/large:countTokens", key) == 403
            assert status("/v1beta/files", key) == 403
    assert len(upstream.requests) == 2
    for request in upstream.requests:
        assert b"\r\nx-goog-api-key: held-by-the-gateway\r\n" in request
        assert key.encode() not in request
    assert b"large" not in upstream.requests[0]  # a model in the body could be another one than was checked


# -- beside model calls --------------------------------------------------------------------------------------


def test_models_and_token_counts() -> None:
    """The SDK counts tokens with retries, and lists the policy's models where the upstream has no list."""
    with scripted(BROKEN["overloaded"], whole({"totalTokens": 7})) as front, closing(client(front)) as google:
        assert google.models.count_tokens(model="small", contents="count").total_tokens == 7
    missing = refused("404 Not Found", {"code": 404, "message": "no", "status": "NOT_FOUND"})
    with scripted(missing, policy={"models": ["small", "large"]}) as front, closing(client(front)) as google:
        assert [model.name for model in google.models.list()] == ["models/small", "models/large"]
        assert google.models.get(model="large").name == "models/large"


def test_settings_without_an_upstream_forward_as_before() -> None:
    """Where no upstream has Gemini's API, a forwarded path is sent once; otherwise the error says what to set."""
    with RawUpstream(BROKEN["overloaded"], close=True) as upstream:
        with Front(openai=upstream.url, forward={"/v1beta/*": "openai"}) as front:
            got = asked_with(front, f"{SMALL}:generateContent?key=k")
        assert (got.status_code, got.headers["x-rung-recovery"], len(upstream.requests)) == (503, "none", 1)
        with Front(openai=upstream.url) as front:
            got = asked_with(front, f"{SMALL}:generateContent")
        assert (got.status_code, got.json()["error"]["status"], len(upstream.requests)) == (404, "NOT_FOUND", 1)
        assert "--gemini URL" in got.json()["error"]["message"]


def test_a_base_url_with_a_version() -> None:
    """An upstream whose URL ends with the version of the API gets it once."""
    with RawUpstream(GOOD, close=True) as upstream, Front(gemini=f"{upstream.url}/base/v1beta") as front:
        assert streamed(front)[0] == WHOLE
    assert upstream.requests[0].startswith(b"POST /base/v1beta/models/small:streamGenerateContent?alt=sse ")


def test_a_body_that_is_no_json() -> None:
    """A body that is no JSON object is refused in the form of Google's errors."""
    with scripted(GOOD) as front, front.http() as plain:
        got = plain.post(f"{SMALL}:generateContent", content=b"[1]")
        assert (got.status_code, got.json()["error"]["status"], front.asked) == (400, "INVALID_ARGUMENT", 0)


def test_steps_of_a_conversation() -> None:
    """The loop guard sees function calls and their responses, with and without ids."""
    contents: list[Any] = [{"role": "user", "parts": [{"text": "go"}]}]
    for given in ({}, {"id": "c1"}):
        contents += [
            {"role": "model", "parts": [{"functionCall": {**given, "name": "look", "args": {"at": "x"}}}]},
            {"role": "user", "parts": [{"functionResponse": {**given, "name": "look", "response": {"error": "none"}}}]},
        ]
    steps, new = recent_steps("gemini", {"contents": contents})
    assert ([tuple(step) for step in steps], new) == ([("look", {"at": "x"}, "none", True)] * 2, 1)
