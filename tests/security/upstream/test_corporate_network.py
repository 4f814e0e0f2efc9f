"""Proxies, private CAs, client certificates and queries in URLs are honoured, or refused at start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import ConfigError
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.http.proxy import proxy_for
from rung.gateway.http.url import parse_url
from rung.gateway.settings import settings_from
from tests.gateway.behind import ASK
from tests.security.upstream.certificates import Certificates, make_certificates
from tests.security.upstream.forward_proxy import ForwardProxy
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

NAME = "llm.corp.example"  # resolved by nobody but the proxy
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
ANSWER = http_answer(json.dumps({"object": "chat.completion", "choices": [CHOICE]}).encode())
BODY = {"model": "small", "max_tokens": 100, "messages": ASK}
CHAT = "/v1/chat/completions"
PASSWORD = "p@ss:w/rd"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ca"), NAME)


def ask(front: Front) -> list[httpx.Response]:
    """Send two requests; return the responses."""
    with front, front.http(trust_env=False) as client:
        return [client.post(CHAT, json=BODY), client.get("/v1/files")]


def upstream_row(url: str, **more: str) -> dict[str, dict[str, str]]:
    return {"x": {"wire": "openai", "url": url, **more}}


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_through_a_proxy(variable: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """An https upstream is reached through a tunnel; TLS ends at the upstream, and the proxy sees no key."""
    tls = certificates.server_context()
    with RawUpstream(ANSWER, tls=tls) as upstream, ForwardProxy(upstream.port, password=PASSWORD) as proxy:
        monkeypatch.setenv(variable, f"http://bob:p%40ss%3Aw%2Frd@{proxy.address}")
        monkeypatch.setenv("HELD_KEY", "held-by-the-gateway")
        row = upstream_row(f"https://{NAME}:8443/v1", tls_ca_file=str(certificates.ca), key_env="HELD_KEY")
        answers = ask(Front(upstreams=row))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [head.split(b"\r\n")[0] for head in proxy.heads] == [f"CONNECT {NAME}:8443 HTTP/1.1".encode()]  # reused
    assert b"held" not in proxy.heads[0]
    assert len(upstream.requests) == 2
    assert all(b"proxy-" not in request for request in upstream.requests)


def test_http_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to an http upstream name it in full, as a proxy expects, with the proxy's password."""
    with RawUpstream(ANSWER) as upstream, ForwardProxy(upstream.port, password=PASSWORD) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"bob:p%40ss%3Aw%2Frd@{proxy.address}")
        answers = ask(Front(openai=f"http://{NAME}/v1"))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert upstream.requests[0].startswith(
        f"POST http://{NAME}/v1/chat/completions HTTP/1.1\r\nhost: {NAME}\r\n".encode()
    )


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (b"", "status 407): it requires a user and a password"),
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\nsecret", "status 403): it does not allow this host"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "status 503)"),
        (b"HTTP/1.1 200 OK\r\n\r\nleftover", "opened no tunnel"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "status missing)"),
        (b"x" * 100_000, "status missing)"),
        (b"HTTP/1.1 20", "closed the connection"),
    ],
)
def test_a_proxy_that_refuses(refuse: bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a proxy answers instead of a tunnel is an error that names the proxy and the reason, not the password."""
    with ForwardProxy(9, password=PASSWORD, refuse=refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://eve:{'guess-guess'}@{proxy.address}")
        answers = ask(Front(openai=f"https://{NAME}", policy={"retries": 0}))
    for answer in answers:
        assert answer.status_code == 502
        message = answer.json()["error"]["message"]
        assert f"proxy {proxy.address}" in message
        assert words in message
        assert "guess" not in message


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_direct"),
    [
        ("", "https://a.example", False),
        ("", "http://127.0.0.1:9", True),
        ("", "http://[::1]:9", True),
        ("", "http://localhost:9", True),
        ("*", "https://a.example", True),
        ("other,a.example", "https://a.example", True),
        (" .corp.example , x", "https://llm.corp.example", True),
        ("*.corp.example", "https://llm.corp.example", True),
        ("CORP.example", "https://llm.corp.example", True),
        ("corp.example", "https://notcorp.example", False),
        ("a.example:8443", "https://a.example:8443", True),
        ("a.example:8443", "https://a.example", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]", True),
        ("10.1.2.3", "https://10.1.2.3", True),
    ],
)
def test_what_uses_no_proxy(no_proxy: str, url: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_PROXY holds hosts, domains, ports and networks; loopback never uses a proxy."""
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxy_for(parse_url(url)) is None) is is_direct


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("ALL_PROXY", "socks5h://bob:hunter22@proxy.example:1080", "SOCKS proxies are not supported"),
        ("HTTPS_PROXY", "https://bob:hunter22@proxy.example", "https:// and SOCKS"),
        ("HTTPS_PROXY", "http://bob:hunter22@proxy.example:99999", "port"),
        ("HTTPS_PROXY", "http://bob:hunter22@", "host"),
        ("SSL_CERT_FILE", "/no/such/ca.pem", "CA certificates"),
    ],
)
def test_an_environment_that_cannot_be_used(
    variable: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy or CA file of the environment that cannot be used is an error at start that names the variable."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=allowed) as caught:
        ConnectionPool(settings_from({}))
    assert caught.value.key == variable
    assert "hunter22" not in str(caught.value)


def test_a_private_ca_and_a_client_certificate(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream with a private CA that requires a client certificate is reached with both, and not without."""
    tls = certificates.server_context(wants_client=True)
    with RawUpstream(ANSWER, tls=tls) as upstream, ForwardProxy(upstream.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        url, ca, client = f"https://{NAME}", str(certificates.ca), str(certificates.client)
        for row, status in (
            ({}, 502),
            ({"tls_ca_file": ca}, 502),
            ({"tls_cert_file": client}, 502),
            ({"tls_ca_file": ca, "tls_cert_file": client}, 200),
        ):
            front = Front(upstreams=upstream_row(url, **row), policy={"retries": 0})
            assert [answer.status_code for answer in ask(front)] == [status, status], row


def test_the_environment_names_a_ca(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """`SSL_CERT_FILE` is trusted for every upstream without a `tls_ca_file`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    with RawUpstream(ANSWER, tls=certificates.server_context()) as upstream, ForwardProxy(upstream.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        assert [answer.status_code for answer in ask(Front(openai=f"https://{NAME}"))] == [200, 200]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"tls_ca_file": "/no/such/file"}, "tls_ca_file"),
        ({"tls_ca_file": "EMPTY"}, "tls_ca_file"),
        ({"tls_cert_file": "/no/such/file"}, "tls_cert_file"),
        ({"tls_cert_file": "CA"}, "tls_cert_file"),
        ({"tls_key_file": "CA"}, "tls_key_file"),
    ],
)
def test_files_that_cannot_be_used(row: dict[str, str], key: str, certificates: Certificates, tmp_path: Path) -> None:
    """A CA file or client certificate that is missing or incomplete is an error at start that names the setting."""
    (tmp_path / "empty").write_text("")
    places = {"EMPTY": str(tmp_path / "empty"), "CA": str(certificates.ca)}
    row = {name: places.get(value, value) for name, value in row.items()}
    with pytest.raises(ConfigError) as caught:
        ConnectionPool(settings_from({"upstreams": upstream_row(f"https://{NAME}", **row)}))
    assert caught.value.key == f"gateway.upstreams.x.{key}"


def test_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Azure deployment gets its path, its `api-version` on every request, and its key in `api-key`."""
    monkeypatch.setenv("AZURE_KEY", "held-by-the-gateway")
    with RawUpstream(ANSWER) as upstream:
        url = f"{upstream.url}/openai/deployments/gpt?api-version=2024-10-21"
        answers = ask(Front(upstreams=upstream_row(url, key_env="AZURE_KEY", key_header="api-key")))
    assert [answer.status_code for answer in answers] == [200, 200]
    lines = [request.split(b"\r\n")[0] for request in upstream.requests]
    assert lines == [
        b"POST /openai/deployments/gpt/chat/completions?api-version=2024-10-21 HTTP/1.1",
        b"GET /openai/deployments/gpt/files?api-version=2024-10-21 HTTP/1.1",
    ]
    assert all(b"\r\napi-key: held-by-the-gateway\r\n" in request for request in upstream.requests)
