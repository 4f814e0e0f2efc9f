"""Keys and upstreams: another account helps where the first is empty, and nothing goes where nobody sent it."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import openai
import pytest

from rung.core.domain.errors import ConfigError
from rung.gateway.settings import settings_from
from rung.testing.provider import Lab
from tests.gateway.behind import ASK, WHOLE, WIRES, Behind, ask
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer
from tests.wires.strict import error_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ["quota", "unauthorized", "payment"])
def test_another_account(fault: str, wire: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an account is empty or refused, every call is served by the upstream with a key of its own."""
    monkeypatch.setenv("SECOND_KEY", "key-of-the-second")
    with Lab() as other:
        api = "anthropic" if wire == "messages" else "openai"
        second = {"wire": api, "url": other.url, "key_env": "SECOND_KEY"}
        with Behind([{"fault": fault}], upstreams={"second": second}) as behind:
            for name in "ab":  # one conversation would stay where it was served
                assert ask(behind, wire, stream=stream, extra_headers={"x-rung-session": name}).text == WHOLE
            assert (behind.attempts, other.attempts) == (2, 2)
            assert "key-of-the-second" in str(other.calls[0].headers)


def test_the_same_account_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream with the client's own key has the same account: it is not tried."""
    with Behind([{"fault": "quota"}]) as behind:
        settings = {"second": {"wire": "openai", "url": behind.lab.url + "/again", "client_credentials": "forward"}}
        assert behind.served.reload_settings(lambda: behind.settings(upstreams=settings))
        with pytest.raises(openai.RateLimitError):
            ask(behind, "chat", stream=False)
        assert behind.attempts == 1


def test_two_keys_of_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream with a key of its own is not tried if the policy says that it draws on the same account."""
    monkeypatch.setenv("SECOND_KEY", "key-of-the-second")
    with Lab() as other:
        second = {"wire": "openai", "url": other.url, "key_env": "SECOND_KEY"}
        policy = {"same_account": ["second"]}
        with (
            Behind([{"fault": "quota"}], policy=policy, upstreams={"second": second}) as behind,
            pytest.raises(openai.RateLimitError),
        ):
            ask(behind, "chat", stream=False)
        assert (behind.attempts, other.attempts) == (1, 0)


def test_a_provider_that_nobody_named() -> None:
    """Settings that name one provider send nothing to the public service of another API."""
    assert [each.name for each in settings_from({}).upstreams] == ["anthropic", "openai", "gemini"]
    assert [each.name for each in settings_from({"anthropic": "http://127.0.0.1:9"}).upstreams] == ["anthropic"]
    with Lab() as lab, Front(anthropic=lab.url) as front, front.http() as client:
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            got = client.post(path, json={"model": "small", "messages": ASK, "input": "x"})
            error_of("chat", got.status_code, got.content)
            assert (got.status_code, "--openai" in got.text) == (404, True)


def test_paths_that_are_not_known_go_nowhere() -> None:
    """A path that the gateway does not know is refused, unless the settings name the upstream that gets it."""
    with Behind() as behind, behind.http() as client:
        for path in ("/v1/nowhere", "/openai/deployments/x/chat", "/model/x/invoke"):
            got = client.post(path, json={"model": "small"})
            assert (got.status_code, "gateway.forward" in got.text) == (404, True)
        assert behind.lab.requests == []
    with Front(openai="http://127.0.0.1:9") as front, front.http() as client:
        for path in ("/v1beta/models/g:generateContent", "/v1beta/files"):
            got = client.post(path, json={"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
            assert (got.status_code, "--gemini" in got.text) == (404, True)


def test_paths_that_are_forwarded() -> None:
    """A path that the settings forward is sent once, also that of an API without an upstream."""
    with Lab() as lab, Front(openai=lab.url, forward={"/v1beta/*": "openai"}) as front, front.http() as client:
        got = client.post("/v1beta/models/g:generateContent", json={})
        assert [call.path for call in lab.requests] == ["/v1beta/models/g:generateContent"]
        assert got.headers["x-rung-recovery"] == "none"


@pytest.mark.parametrize("table", [{"/v1beta/*": "nobody"}, {"v1beta": "openai"}, {"/v1beta/*": 7}, "all"])
def test_forwards_that_cannot_be(table: object) -> None:
    """A forward to an upstream that does not exist, or of a path in another form, is an error at start."""
    with pytest.raises(ConfigError, match=r"gateway.forward"):
        settings_from({"forward": table})


def test_a_forwarded_call_says_that_nothing_recovers_it() -> None:
    """Answers and errors of calls that are only forwarded say so in a header; model calls do not."""
    with Behind() as behind, behind.http() as client:
        assert client.post("/v1/embeddings", json={"model": "e", "input": "x"}).headers["x-rung-recovery"] == "none"
        assert "x-rung-recovery" not in client.post("/v1/messages", json={"model": "m", "messages": ASK}).headers


def test_a_stale_connection_does_not_fail_a_get() -> None:
    """A GET on a kept connection that the upstream has closed is sent again on a new one."""
    answer = http_answer(b"{}", "content-type: application/json")
    with RawUpstream(answer, close=True) as upstream, Front(openai=upstream.url) as front, front.http() as client:
        for _ in range(4):
            assert client.get("/v1/files").status_code == 200
        assert len(upstream.requests) == 4


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "close"])
def test_a_reset_is_passed_on_as_a_reset(reset: bool) -> None:
    """A forwarded response that the upstream resets is reset for the client; one that it closes is cut."""

    def cut(_: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbeginning"
        done.wait(10)

    done = threading.Event()
    with RawUpstream(cut, close=True) as upstream, Front(openai=upstream.url) as front:
        if reset:
            upstream.resets = True
        with socket.create_connection(("127.0.0.1", front.served.port)) as client:
            client.settimeout(30)
            client.sendall(b"GET /v1/files/x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            received = b""
            while b"beginning" not in received:
                received += client.recv(4_096)
            done.set()
            if reset:
                with pytest.raises(ConnectionResetError):
                    client.recv(4_096)
            else:
                assert client.recv(4_096) == b""
