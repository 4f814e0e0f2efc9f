"""A page in a browser on the same machine cannot use the gateway."""

from __future__ import annotations

from itertools import product

import pytest

from rung.core.domain.errors import ConfigError
from tests.security.tenant.shared import ALICE, Shared, asked, key_row

FOREIGN = [
    ({"host": "rebound.evil.example"}, 421),
    ({"host": "localhost.evil.example"}, 421),
    ({"host": "127.0.0.1.evil.example:8484"}, 421),
    ({"host": "10.0.0.1"}, 421),
    ({"host": "["}, 421),
    ({"host": ""}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://["}, 403),
    ({"origin": "http://127.0.0.1:1"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"host": "rebound.evil.example", "origin": "http://rebound.evil.example"}, 421),
]


def test_foreign_pages_are_refused() -> None:
    """A rebound name gets 421 and a foreign page 403, on every path; nothing is sent with the held key."""
    requests = [("POST", "/v1/messages"), ("OPTIONS", "/v1/messages"), ("GET", "/v1/files"), ("GET", "/metrics")]
    with Shared() as behind, behind.http() as client:
        for (method, path), (headers, status) in product(requests, FOREIGN):
            plain = {"content-type": "text/plain", **headers}
            got = client.request(method, path, json=asked(), headers=plain)
            assert got.status_code == status, (method, path, headers)
        assert behind.lab.requests == []


def test_who_is_at_home() -> None:
    """Loopback names, the same origin and clients that are no browser are served."""
    with Shared() as behind, behind.http() as client:
        port = behind.served.port
        for headers in (
            {"host": f"localhost:{port}"},
            {"host": "LOCALHOST"},
            {"host": f"[::1]:{port}"},
            {"origin": behind.url, "sec-fetch-site": "same-origin"},
            {"sec-fetch-site": "none"},
        ):
            assert client.post("/v1/messages", json=asked(), headers=headers).status_code == 200, headers


def test_names_and_pages_that_the_settings_allow() -> None:
    """`allowed_hosts` adds names, `allowed_origins` adds pages; the refusal says how."""
    with Shared() as behind, behind.http() as client:
        refused = client.post("/v1/messages", json=asked(), headers={"host": "llm.internal"})
        assert "allowed_hosts" in refused.json()["error"]["message"]
        more = {"allowed_hosts": ["LLM.internal"], "allowed_origins": ["app://obsidian.md"]}
        assert behind.served.reload_settings(lambda: behind.settings(**more))
        page = {"host": "llm.internal:80", "origin": "app://obsidian.md", "sec-fetch-site": "cross-site"}
        assert client.post("/v1/messages", json=asked(), headers=page).status_code == 200
        page["origin"] = "app://evil"
        assert client.post("/v1/messages", json=asked(), headers=page).status_code == 403


def test_a_public_address_accepts_addresses_but_no_names() -> None:
    """A gateway that listens on all addresses accepts IP addresses as Host, which cannot be rebound, and no names."""
    with Shared(host="0.0.0.0", keys=[key_row(ALICE)]) as behind:
        for host, status in (("10.1.2.3:8484", 200), ("[fe80::1]", 200), ("evil.example", 421)):
            assert behind.post("/v1/messages", json=asked(), headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("allowed_hosts", "llm.internal"),
        ("allowed_hosts", ["llm.internal:8484"]),
        ("allowed_hosts", ["http://llm.internal"]),
        ("allowed_origins", ["llm.internal"]),
        ("allowed_origins", ["http://llm.internal/"]),
    ],
)
def test_settings_that_could_never_match(key: str, value: object) -> None:
    """A name with a port, or an origin with a path, is an error at start: no request would match it."""
    with pytest.raises(ConfigError, match=f"gateway.{key}"):
        Shared(**{key: value}).settings()
