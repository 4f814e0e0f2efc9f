"""Bad input gets a clear error in the API's format; nothing hangs and nothing leaks."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING

import httpx
import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.domain.errors import ConfigError
from rung.core.policy.parser import parse_policy_file
from rung.gateway.keys import RequestRejected
from rung.gateway.settings import settings_from
from rung.testing.provider import Lab
from tests.gateway.behind import ASK, WIRES, Behind
from tests.wires.strict import PATHS, error_of

if TYPE_CHECKING:
    from pathlib import Path


GOOD = {"model": "small", "max_tokens": 500, "messages": ASK}


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_not_json(wire: str) -> None:
    """An invalid body is rejected by the gateway; a body that may be valid is left to the provider."""
    with Behind() as behind, behind.http() as client:
        for body in (b"", b"nonsense", b"[1, 2]", b"\xff\xfe{}", b"null"):
            got = client.post(PATHS[wire], content=body)
            assert got.status_code == 400
            error_of(wire, 400, got.content)
            assert got.headers["x-should-retry"] == "false"
        assert behind.attempts == 0
        got = client.post(PATHS[wire], content=b'{"model": "small", ')
        assert got.status_code == 400
        error_of(wire, 400, got.content)


@pytest.mark.parametrize("wire", WIRES)
def test_fifty_megabytes(wire: str) -> None:
    """A 50 MB body reaches the upstream; a body above the gateway's limit is rejected before it is read."""
    with Behind(limits={"body": 60_000_000}, timeouts={"total": 300.0, "headers": 300.0}) as behind:
        key = "input" if wire == "responses" else "messages"
        body = {"model": "small", "max_tokens": 500, key: [*ASK, {"role": "user", "content": "x" * 50_000_000}]}
        with behind.http(timeout=300) as client:
            got = client.post(PATHS[wire], json=body)
            assert got.status_code == client.post(behind.lab.url + PATHS[wire], json=body).status_code == 413
            error_of(wire, 413, got.content)
        with socket.create_connection(("127.0.0.1", behind.served.port)) as large:
            large.settimeout(60)
            large.sendall(
                f"POST {PATHS[wire]} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 70000000\r\n\r\n".encode()
            )
            answer = b""
            while b"}}" not in answer:
                answer += large.recv(4_096)
        head, _, told = answer.partition(b"\r\n\r\n")
        assert b" 413 " in head
        error_of(wire, 413, told)


def test_wrong_paths() -> None:
    """A path or method that the provider does not know gets its own error."""
    with Behind() as behind, behind.http() as client:
        for method, path in (
            ("POST", "/v1/files/nowhere"),
            ("GET", "/v1/messages"),
            ("DELETE", "/v1/chat/completions"),
        ):
            got = client.request(method, path)
            direct = client.request(method, behind.lab.url + path)
            assert (got.status_code, got.content) == (direct.status_code, direct.content)
        assert behind.attempts == 0


def test_an_absent_key_is_the_providers_to_refuse() -> None:
    """When client keys are passed on, a missing key is rejected by the provider."""
    with Behind({"keys": ["sk-right"]}) as behind, behind.http() as client:
        got = client.post("/v1/messages", json=GOOD)
        assert (got.status_code, got.json()["error"]["type"]) == (401, "authentication_error")
        assert got.headers["x-should-retry"] == "false"
        assert behind.attempts == 1


def test_a_body_that_is_too_large() -> None:
    """A body above the limit is rejected by its content-length, or once more bytes arrive."""
    with Behind(limits={"body": 10_000}) as behind, behind.http() as client:
        got = client.post("/v1/messages", content=b"{" + b" " * 20_000)
        assert got.status_code == 413
        assert got.json()["error"]["type"] == "request_too_large"
        got = client.post("/v1/chat/completions", content=(b" " * 5_000 for _ in range(10)))
        assert got.status_code == 413
        assert behind.attempts == 0


def test_a_body_that_never_comes() -> None:
    """A client that sends half a request and stalls gets an error, and its connection is closed."""
    with Behind(limits={"receive": 0.3}) as behind, socket.create_connection(("127.0.0.1", behind.served.port)) as slow:
        slow.settimeout(5)
        slow.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
        answer = slow.recv(4_096)
        assert b" 408 " in answer
        assert slow.recv(4_096) == b"" or b"timed out" in answer


@pytest.mark.parametrize("wire", WIRES)
def test_a_redirect_is_not_followed(wire: str) -> None:
    """A redirect from an upstream is an error; the client's key is not sent elsewhere."""
    with Lab() as elsewhere, Behind([{"fault": "redirect", "to": elsewhere.url}]) as behind, behind.http() as client:
        got = client.post(PATHS[wire], json={**GOOD, "input": "hi"}, headers={"x-api-key": "secret"})
        assert got.status_code == 502
        error_of(wire, 502, got.content)
        assert "location" not in got.headers
        assert "secret" not in got.text
        assert behind.attempts == 1
        assert elsewhere.requests == []


def test_headers_cannot_be_smuggled() -> None:
    """Values from a body, header, path or session id never inject header lines."""
    with Behind([{"fault": "model_gone"}]) as behind, behind.http() as client:
        bad = {**GOOD, "model": "a\r\nx-evil: 1"}
        got = client.post("/v1/messages", content=json.dumps(bad))
        assert "x-evil" not in got.headers
        for line in (
            b"POST /v1/messages?a=\r HTTP/1.1",
            b"POST /v1/messages HTTP/1.1\r\nx-a: 1\rx-evil: 1",
            b"NONSENSE",
        ):
            with socket.create_connection(("127.0.0.1", behind.served.port)) as raw:
                raw.settimeout(10)
                raw.sendall(line + b"\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{}")
                answer = raw.recv(65_536)
            assert b"x-evil" not in answer.lower()
        assert not any("x-evil" in call.headers for call in behind.lab.requests)
        client.get("/v1/models?a=b%0d%0ax-evil:%201")
        assert not any("x-evil" in call.headers for call in behind.lab.requests)


def test_two_lengths_are_none() -> None:
    """A request with two lengths, or a length and chunked encoding, is rejected (request smuggling)."""
    with Behind() as behind:
        for more in (b"content-length: 2\r\ncontent-length: 30", b"content-length: 2\r\ntransfer-encoding: chunked"):
            with socket.create_connection(("127.0.0.1", behind.served.port)) as raw:
                raw.settimeout(10)
                raw.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\n" + more + b"\r\n\r\n{}")
                assert b" 400 " in raw.recv(65_536)
        assert behind.attempts == 0


def test_more_than_it_takes_at_once() -> None:
    """Above the concurrency limit, requests are rejected at once with a retryable status."""
    with Behind(limits={"concurrency": 1}, delay=0.5) as behind, behind.http() as client:
        first = threading.Thread(target=lambda: httpx.post(f"{behind.url}/v1/messages", json=GOOD))
        first.start()
        while behind.attempts == 0:
            pass
        got = client.post("/v1/messages", json=GOOD)
        first.join()
        assert got.status_code == 529
        assert got.headers["retry-after"] == "1"
        assert behind.attempts == 1


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"host": "0.0.0.0"}, "gateway.host"),
        ({"timeouts": {"idle": 0}}, "gateway.timeouts.idle"),
        ({"upstreams": {"x": {"wire": "smtp", "url": "http://x"}}}, "gateway.upstreams.x.wire"),
        ({"upstreams": {"x": {"wire": "openai", "url": "ftp://x"}}}, "gateway.upstreams.x.url"),
        ({"keys": [{"hash": "short"}]}, "gateway.keys[0].hash"),
        ({"nonsense": 1}, "gateway.nonsense"),
        ({"port": 70_000}, "gateway.port"),
        ({"budgets": {"session": -1}}, "gateway.budgets.session"),
        ({"prices": {"m": {"input": "x"}}}, "gateway.prices.m.input"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], key: str) -> None:
    """Invalid settings are rejected before the server listens, with the name of the key."""
    with pytest.raises(ConfigError) as caught:
        settings_from(settings)
    assert caught.value.key == key


BACKUP = {
    "anthropic": "http://127.0.0.1:9",
    "upstreams": {"backup": {"wire": "openai", "url": "http://127.0.0.1:9", "key_env": "BACKUP_KEY"}},
}


@pytest.mark.parametrize("name", ["bakcup/gpt-5.1", "backp/gpt-5.1", "Backup/gpt-5.1", "antropic/gpt-5.1"])
def test_a_misspelt_upstream_of_a_model(name: str) -> None:
    """A model whose prefix is nearly the name of an upstream is rejected, with the name that was meant."""
    book = parse_policy_file({"policy": {"models": ["anthropic/claude-haiku-4-5", name]}})
    with pytest.raises(ConfigError) as caught:
        settings_from(BACKUP, book)
    assert caught.value.key == "policy.models"
    assert f"there is no upstream '{name.partition('/')[0]}'; did you mean " in str(caught.value)
    assert f"{'anthropic' if name.startswith('ant') else 'backup'}/gpt-5.1?" in str(caught.value)


@pytest.mark.parametrize("name", ["meta-llama/llama-4", "qwen/qwen-3", "backup/bakcup/gpt-5.1", "deepseek-r1"])
def test_a_prefix_that_belongs_to_the_model(name: str) -> None:
    """Prefixes that resemble no upstream, such as those of a router's models, stay part of the name."""
    book = parse_policy_file({"policy": {"models": ["anthropic/claude-haiku-4-5", name]}})
    assert settings_from(BACKUP, book).book.default.models[1].name == name


def test_a_misspelt_upstream_is_found_by_the_check_of_a_file(tmp_path: Path) -> None:
    """`rung policy check` rejects what the gateway would reject."""
    file = tmp_path / "rung.toml"
    file.write_text(
        '[policy]\nmodels = ["anthropic/a", "bakcup/b"]\n[gateway]\nanthropic = "http://127.0.0.1:9"\n'
        '[gateway.upstreams.backup]\nwire = "openai"\nurl = "http://127.0.0.1:9"\nkey_env = "BACKUP_KEY"\n'
    )
    done = CliRunner().invoke(root, ["policy", "check", str(file)])
    assert done.exit_code == 2
    assert "did you mean backup/b?" in done.output


def test_a_client_whose_api_no_upstream_has_is_told_both_ways_out() -> None:
    """The error names the setting of an upstream, and that a model of another upstream would do."""
    table = {"upstreams": {"litellm": {"type": "openai", "url": "http://127.0.0.1:1/v1"}}}
    with pytest.raises(RequestRejected, match="or name a model of another upstream in \\[policy\\] models"):
        settings_from(table, parse_policy_file({})).first_upstream("anthropic")
