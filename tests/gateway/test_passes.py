"""Requests and responses pass unchanged as long as nothing fails."""

from __future__ import annotations

import json

import pytest

from tests.gateway.behind import WHOLE, WIRES, Behind, ask


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_passes(wire: str, stream: bool) -> None:
    """For every API, streamed or not, an SDK gets the same answer as without the gateway, in one attempt."""
    with Behind() as behind:
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert behind.attempts == 1


def test_bytes_pass_as_they_are() -> None:
    """Body, headers, query and response are passed byte for byte, except for hop-by-hop headers."""
    body = b'{ "model":"small",  "max_tokens": 30, "unknown": [1, 2.50], "messages":[{"role":"user","content":"h\\u00e9"}] }'
    with Behind() as behind, behind.http() as client:
        headers = {"anthropic-beta": "a,b", "x-api-key": "k", "x-own": "1", "x-rung-session": "s", "te": "trailers"}
        answer = client.post("/v1/messages?beta=true", content=body, headers=headers)
        direct = client.post(behind.lab.url + "/v1/messages?beta=true", content=body, headers=headers)
        through, straight = behind.lab.calls
        assert through.body == straight.body == body
        assert through.path == straight.path == "/v1/messages?beta=true"
        assert through.headers["anthropic-beta"] == "a,b"
        assert through.headers["x-own"] == "1"
        assert "x-rung-session" not in through.headers
        assert answer.headers["x-rung-attempts"] == "1"
        one, other = answer.json(), direct.json()
        assert [one.pop("id") != "", other.pop("id") != ""] == [True, True]
        assert one == other


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages/count_tokens", "/v1/files/nowhere"])
def test_other_paths_pass(path: str) -> None:
    """Other API requests are forwarded to the upstream and back."""
    with Behind() as behind, behind.http(headers={"anthropic-version": "2023-06-01"}) as client:
        body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "hi"}]})
        method = "GET" if path == "/v1/models" else "POST"
        answer = client.request(method, path, content=None if method == "GET" else body)
        direct = client.request(method, behind.lab.url + path, content=None if method == "GET" else body)
        assert (answer.status_code, answer.content) == (direct.status_code, direct.content)


def test_its_own_paths() -> None:
    """The gateway itself answers health, readiness, metrics and the root path."""
    with Behind() as behind, behind.http() as client:
        assert client.head("/").status_code == 200
        assert client.get("/healthz").json()["status"] == "ok"
        assert client.get("/readyz").status_code == 200
        ask(behind, "messages", stream=False)
        text = client.get("/metrics").text
        assert 'rung_requests_total{wire="messages",outcome="succeeded"} 1' in text
        assert behind.attempts == 1


def test_a_base_url_without_the_version() -> None:
    """A base URL without /v1 works, and the path may contain a project."""
    with Behind() as behind, behind.http() as client:
        body = {"model": "small", "messages": [{"role": "user", "content": "count to 3"}]}
        assert client.post("/chat/completions", json=body).status_code == 200
        assert client.post("/p/website/v1/chat/completions", json=body).status_code == 200
        assert [call.path for call in behind.lab.calls] == ["/v1/chat/completions"] * 2


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_at_a_models_pace(wire: str) -> None:
    """A stream with slow events is passed on completely, in one attempt."""
    with Behind(gap=0.003) as behind:
        assert ask(behind, wire, stream=True).text == WHOLE
        assert behind.attempts == 1


def test_a_websocket_is_rejected_at_once() -> None:
    """A client that tries a WebSocket first is told 426 and goes on with HTTP; the upstream is not asked."""
    headers = {"connection": "upgrade", "upgrade": "WebSocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    with Behind() as behind, behind.http() as client:
        answer = client.get("/v1/responses", headers=headers)
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            426,
            "WebSocket connections are not supported; send the request over HTTP",
        )
        assert not behind.lab.requests
