"""Routes: paths are brought into one form before anything is decided about them."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.gateway.admission.routes import check_path, find_route, normal_path
from rung.gateway.keys import RequestRejected
from rung.gateway.settings import GatewayKey, settings_from
from rung.wires.registry import PATHS

PIECES = st.sampled_from(
    [
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "\\",
        "%252e",
        "%25",
        "%",
        "v1",
        "messages",
        "p",
        "%6d",
        ";x",
        "é",
    ]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join))
def test_any_path(path: str) -> None:
    """A path is rejected, or has one form that no later decoding leaves."""
    try:
        normal = normal_path(path)
    except RequestRejected:
        return
    assert normal_path(normal) == normal
    assert re.fullmatch(r"/|(/[A-Za-z0-9!$&'()*+,=:@~_.%-]+)+", normal)
    while (decoded := unquote(normal)) != normal:
        normal = decoded
    assert not {".", ".."} & set(re.split(r"[/\\]", normal))


@pytest.mark.parametrize(
    ("path", "expected", "project", "known"),
    [
        ("/v1/messages", "/v1/messages", "", True),
        ("/chat/completions", "/v1/chat/completions", "", True),
        ("/p/my%20site/responses/", "/v1/responses", "my site", True),
        ("/p/site", "/", "site", False),
        ("/v1/models/meta-llama%2FLlama-3", "/v1/models/meta-llama%2FLlama-3", "", False),
        ("/v1/messages;x=1", "/v1/messages%3Bx=1", "", False),
        ("/", "/", "", False),
    ],
)
def test_where_a_path_leads(path: str, expected: str, project: str, known: bool) -> None:
    """A path has a project, a normal form and, for model calls, a wire format."""
    route = find_route(path.encode())
    assert (route.path, route.project, route.wire) == (expected, project, PATHS[expected] if known else None)


@pytest.mark.parametrize("path", ["v1/files", "/v1/files/", "/v1//files", "/v1/../x", "get /v1/files", "/v1/f*", "", 7])
def test_patterns_that_could_never_match(path: object) -> None:
    """A pattern that is not in normal form is an error at start."""
    table = {"keys": [{"hash": "0" * 64, "paths": [path]}]}
    with pytest.raises(ConfigError, match=r"gateway.keys\[0\].paths\[0\]"):
        settings_from(table)


def test_what_a_pattern_allows() -> None:
    """A pattern allows its path, with `/*` also what is below it, for all methods or the one that it names."""
    key = GatewayKey(hash="0" * 64, paths=("/v1/a", "GET /v1/b/*", "DELETE /v1/b/c"))
    allowed = {("GET", "/v1/a"), ("PUT", "/v1/a"), ("GET", "/v1/b"), ("GET", "/v1/b/c/d"), ("DELETE", "/v1/b/c")}
    refused = {("GET", "/v1/a/x"), ("POST", "/v1/b"), ("GET", "/v1/bc"), ("DELETE", "/v1/b/c/d"), ("GET", "/")}
    for method, path in allowed:
        check_path(key, method, find_route(path.encode()))
    for method, path in refused:
        with pytest.raises(RequestRejected, match="paths"):
            check_path(key, method, find_route(path.encode()))
