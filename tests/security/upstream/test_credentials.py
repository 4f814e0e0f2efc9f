"""A client's credentials reach only the upstream they are meant for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.gateway.keys import hash_key
from tests.gateway.behind import ASK
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

BODY = {"model": "small", "max_tokens": 100, "messages": ASK}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
ANSWER = http_answer(json.dumps({"object": "chat.completion", "choices": [CHOICE]}).encode())
DOWN = http_answer(b'{"error": {"message": "no such model", "code": "model_not_found"}}', status="404 Not Found")
SECRET = "the-clients-secret"
CREDENTIALS = {
    "authorization": f"Bearer {SECRET}",
    "x-api-key": SECRET,
    "api-key": SECRET,
    "cookie": f"session={SECRET}",
    "x-goog-api-key": SECRET,
    "ocp-apim-subscription-key": SECRET,
    "x-auth-token": SECRET,
    "x-amz-security-token": SECRET,
}
OTHERS = {"idempotency-key": "i-1", "openai-beta": "b-1"}
CHAT = "/v1/chat/completions"


def ask(front: Front, path: str = CHAT, **headers: str) -> None:
    """Send one request with all credentials."""
    with front.http() as client:
        sent = {**CREDENTIALS, **OTHERS, **headers}
        answer = client.post(path, json=BODY, headers=sent) if path == CHAT else client.get(path, headers=sent)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", [CHAT, "/v1/files", "/v1/models"])
@pytest.mark.parametrize("header", ["", "api-key"])
def test_the_gateway_has_a_key(path: str, header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `key_env`, the upstream gets that key in the configured header, no credential of the client, and the rest."""
    monkeypatch.setenv("HELD_KEY", "held-by-the-gateway")
    with RawUpstream(ANSWER) as upstream:
        row = {"url": upstream.url, "key_env": "HELD_KEY", "key_header": header}
        with Front(upstreams={wire: {**row, "wire": wire} for wire in ("anthropic", "openai")}) as front:
            ask(front, path)
    (asked,) = upstream.requests
    assert SECRET.encode() not in asked
    name = header or ("authorization: Bearer" if path == CHAT else "x-api-key:")
    assert f"\r\n{name.rstrip(':')}".encode() in asked
    assert asked.count(b"held-by-the-gateway") == 1
    assert all(f"\r\n{name}: {value}\r\n".encode() in asked for name, value in OTHERS.items())


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
def test_a_key_of_the_gateway_itself(path: str) -> None:
    """A key that the gateway issued is never sent to an upstream, even if that has no key."""
    key = "rung-issued-to-a-client"
    with (
        RawUpstream(ANSWER) as upstream,
        Front(openai=upstream.url, anthropic=upstream.url, keys=[{"hash": hash_key(key)}]) as front,
    ):
        ask(front, path, **{"x-api-key": key, "authorization": f"Bearer {key}"})
    (asked,) = upstream.requests
    assert key.encode() not in asked
    assert SECRET.encode() not in asked


@pytest.mark.parametrize("word", ["drop", "forward"])
def test_a_fallback_on_another_host(word: str) -> None:
    """The first upstream gets the client's credentials; one on another host gets them only if its settings say so."""
    with RawUpstream(DOWN) as first, RawUpstream(ANSWER) as second:
        url = second.url.replace("127.0.0.1", "localhost")
        row: dict[str, Any] = {"wire": "openai", "url": url, "client_credentials": word}
        front = Front(
            openai=first.url, upstreams={"x": row}, policy={"models": ["small", {"name": "large", "provider": "x"}]}
        )
        with front:
            ask(front)
    (asked,) = first.requests
    assert asked.count(SECRET.encode()) == len(CREDENTIALS)
    (asked,) = second.requests
    assert asked.count(SECRET.encode()) == (len(CREDENTIALS) if word == "forward" else 0)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": "sk-ant-api03-a"},
        {"authorization": "Bearer sk-ant-oat01-a"},
        {"anthropic-beta": "oauth-2025-04-20"},
    ],
)
def test_other_paths_of_an_anthropic_client(headers: dict[str, str]) -> None:
    """A request on any path with the marks of Anthropic's API does not go to the OpenAI upstream, whose owner differs."""
    with RawUpstream(ANSWER) as ours, RawUpstream(ANSWER) as other:
        front = Front(anthropic=ours.url, openai=other.url)
        with front, front.http() as client:
            assert client.get("/api/oauth/profile", headers=headers).status_code == 200
    assert len(ours.requests) == 1
    assert not other.requests


def test_headers_of_one_connection() -> None:
    """Headers that `Connection` names stay between two neighbours, in requests and in responses; so do our own."""
    answer = http_answer(b"[]", "Connection: keep-alive, X-Private", "x-private: 1", "x-rung-outcome: forged")
    with RawUpstream(answer) as upstream, Front(openai=upstream.url) as front, front.http() as client:
        sent = {"connection": "keep-alive, x-hop", "x-hop": "1", "x-rung-project": "p", "x-kept": "1"}
        got = client.get("/v1/files", headers=sent)
    (asked,) = upstream.requests
    assert b"x-hop" not in asked
    assert b"x-rung" not in asked
    assert b"x-kept: 1" in asked
    assert "x-private" not in got.headers
    assert "x-rung-outcome" not in got.headers
