"""Upstreams that cannot be used safely are rejected before the gateway listens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.gateway.gateway import Gateway
from rung.gateway.settings import settings_from
from tests.gateway.behind import Behind

PASSWORD = "hunter2-and-more"


def start(**table: Any) -> None:
    """Make a gateway, as at start."""
    asyncio.run(Gateway(settings_from(table)).close())


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        (f"https://bob:{PASSWORD}@api.example.com", "without user and password"),
        ("https://api.example.com:99999", "port"),
        ("https://api.example.com:0", "port"),
        ("https://api.example.com:https", "port"),
        ("http://[::1", "host"),
        ("http://[fe80::1%25eth0]", "host"),
        ("http://", "host"),
        ("http:///v1", "host"),
        ("http://-a.example", "host"),
        ("http://a..example", "host"),
        ("http://1.2.3.400", "host"),
        ("http://a\\b", "host"),
        ("http://a%62c/", "host"),
        ("http://a" + "b" * 64 + ".example", "host"),
        ("http://a.example/\x00", "control characters"),
        ("http://a.example/v1#part", "fragment"),
        ("http://a.example/ä", "percent-encoded"),
        ("http://a.example/a/../b", "segments"),
        ("ftp://a.example", "http:// or https://"),
    ],
)
def test_a_bad_url(url: str, allowed: str) -> None:
    """A URL with user, password, bad port, bad host, fragment or dot segments names what is allowed."""
    for table, key in (
        ({"anthropic": url}, "gateway.anthropic"),
        ({"upstreams": {"x": {"wire": "openai", "url": url}}}, "gateway.upstreams.x.url"),
    ):
        with pytest.raises(ConfigError, match=allowed) as caught:
            settings_from(table)
        assert caught.value.key == key
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(None, "is not set"), ("", "is not set"), ("a b", "spaces"), ("key\n", "spaces"), ("schlüssel", "ASCII")],
)
def test_a_key_that_cannot_be_sent(value: str | None, allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `key_env` that is not set, or holds no sendable key, is an error at start that does not show the key."""
    monkeypatch.delenv("HELD_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("HELD_KEY", value)
    with pytest.raises(ConfigError, match=allowed) as caught:
        start(upstreams={"x": {"wire": "openai", "url": "http://x", "key_env": "HELD_KEY"}})
    assert caught.value.key == "gateway.upstreams.x.key_env"
    assert caught.value.value == "HELD_KEY"


def test_a_reload_is_checked_too() -> None:
    """Settings whose key is missing are not loaded, and the gateway keeps those it has."""
    with Behind() as behind:
        table = {"upstreams": {"x": {"wire": "openai", "url": "http://x", "key_env": "NO_SUCH_KEY"}}}
        assert not behind.served.reload_settings(lambda: settings_from(table))
        assert "settings not reloaded: gateway.upstreams.x.key_env" in behind.log_lines[-1]
        assert behind.gateway.settings.upstreams[0].url == behind.lab.url


OTHER_HOST = {"wire": "openai", "url": "https://other.example"}


def test_a_second_owner_without_a_word() -> None:
    """A fallback on another host must say whose key it gets."""
    with pytest.raises(ConfigError, match=r"key_env.*forward.*drop") as caught:
        settings_from({"openai": "https://first.example", "upstreams": {"x": OTHER_HOST}})
    assert caught.value.key == "gateway.upstreams.x.client_credentials"


@pytest.mark.parametrize(
    ("row", "more"),
    [
        ({"key_env": "A", "client_credentials": "forward"}, {}),
        ({"client_credentials": "forward"}, {"keys": [{"hash": "0" * 64}]}),
    ],
    ids=["own key", "gateway keys"],
)
def test_credentials_that_contradict(row: dict[str, str], more: dict[str, Any]) -> None:
    """A client's key is not forwarded beside the gateway's own key, nor is a key that the gateway issued."""
    with pytest.raises(ConfigError) as caught:
        settings_from({"upstreams": {"x": {**OTHER_HOST, **row}}, **more})
    assert caught.value.key == "gateway.upstreams.x.client_credentials"
