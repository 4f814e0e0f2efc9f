"""URLs of upstreams are checked when settings are read, and request targets stay below them."""

from __future__ import annotations

import pytest

from rung.gateway.http.url import parse_url


@pytest.mark.parametrize(
    ("url", "authority", "target"),
    [
        ("https://api.example.com", "api.example.com", "/v1/messages"),
        ("https://api.example.com/v1/", "api.example.com", "/v1/messages"),
        ("http://api.example.com:8080/proxy", "api.example.com:8080", "/proxy/v1/messages"),
        ("http://[::1]:80/a/v1", "[::1]", "/a/v1/messages"),
        ("https://bücher.example:443", "xn--bcher-kva.example", "/v1/messages"),
        ("http://127.0.0.1:9", "127.0.0.1:9", "/v1/messages"),
        ("https://x/openai/v1?api-version=preview", "x", "/openai/v1/messages?api-version=preview"),
        ("https://x/openai/deployments/d/?api-version=1", "x", "/openai/deployments/d/messages?api-version=1"),
    ],
)
def test_where_a_url_leads(url: str, authority: str, target: str) -> None:
    """The authority leaves out default ports, /v1 is not repeated, and the query is kept."""
    parsed = parse_url(url)
    assert (parsed.authority, parsed.target("/v1/messages")) == (authority, target)
    assert parse_url(str(parsed)) == parsed


def test_the_query_of_the_settings_wins() -> None:
    """A client's query is kept, except for the names that the URL of the upstream sets."""
    url = parse_url("https://x/v1?api-version=1&tenant=a")
    assert url.target("/v1/models?limit=3&API-VERSION=9") == "/v1/models?limit=3&api-version=1&tenant=a"


@pytest.mark.parametrize("path", ["/v1/../../other", "/v1/%2e%2E/other", "/..", "/v1/.", "/v1\\..\\x", "/v1/.%2e"])
def test_no_target_leaves_the_base_path(path: str) -> None:
    """A dot segment is rejected, encoded or not."""
    with pytest.raises(ValueError, match="segments"):
        parse_url("https://x/tenant-a").target(path)


def test_dots_inside_names_are_not_segments() -> None:
    """Dots and escapes inside a segment pass unchanged, also in a query."""
    assert parse_url("https://x").target("/v1/models/gpt-4.1%2Fa..b?x=/../") == "/v1/models/gpt-4.1%2Fa..b?x=/../"
