"""A limited key reaches only what can be priced, however its path is written."""

from __future__ import annotations

import socket
from itertools import product
from typing import Any

import pytest

from tests.security.tenant.shared import ALICE, HELD_KEY, HELD_KEY_ENV, PATHS, Shared, asked, key_row

UNPRICED = (
    ("POST", "/v1/messages/batches"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/images/generations"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/fine_tuning/jobs"),
    ("POST", "/v1/organization/admin_api_keys"),
    ("GET", "/v1/files"),
    ("DELETE", "/v1/files/file-1"),
    ("GET", "/v1/responses/resp_1"),
    ("PUT", "/v1/messages"),
    ("OPTIONS", "/v1/messages"),
    ("DELETE", "/v1/models/cheap"),
)
LIMITS = [{"models": ["cheap"]}, {"dollars": 2.0}]


@pytest.mark.parametrize("limits", LIMITS, ids=["models", "dollars"])
def test_what_cannot_be_priced(limits: dict[str, Any]) -> None:
    """A key with models or dollars gets 403 for a path that cannot be priced, and nothing is sent upstream."""
    with Shared(keys=[key_row(ALICE, **limits)]) as behind, behind.http(headers={"x-api-key": ALICE}) as client:
        for method, path in UNPRICED:
            got = client.request(method, path, json=asked("opus"))
            assert got.status_code == 403, (method, path)
            assert f"{method} {path} is not allowed for this key" in got.json()["error"]["message"]
        assert behind.lab.requests == []


WRITTEN = (
    "/v1/messages/",
    "//v1/messages",
    "/v1//messages",
    "/v1/./messages",
    "/v1/x/../messages",
    "/v1/%6dessages",
    "/v1/messages/%2e",
    "/p/site//v1/messages/",
    "/messages/",
)


def test_how_a_path_is_written() -> None:
    """A model call is recognised and checked however its path is written, and is sent in normal form."""
    good = b'{"model":"cheap","max_tokens":500,"messages":[{"role":"user","content":"count to 40 as apple"}]}'
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        for path in WRITTEN:
            assert _raw_post(behind, path, good.replace(b"cheap", b"opus")).startswith(b"HTTP/1.1 403"), path
        assert behind.lab.requests == []
        for path in WRITTEN:
            assert _raw_post(behind, path, good).startswith(b"HTTP/1.1 200"), path
        sent = {(call.path, call.headers["x-api-key"]) for call in behind.lab.calls}
        assert sent == {("/v1/messages", HELD_KEY)}


LEAVING = ("/v1/../../tenant-b/v1/files", "/v1/%2e%2e/%2e%2e/tenant-b", "/v1/x%2f..%2f..%2f..%2ftenant-b", "/..")


@pytest.mark.parametrize("keys", [[], [key_row(ALICE, paths=["/*"])]], ids=["no keys", "any path"])
def test_no_path_leaves_the_upstreams_prefix(keys: list[dict[str, Any]]) -> None:
    """A path that climbs above its root is rejected, so that it cannot leave the path prefix of an upstream."""
    with Shared(keys=keys) as behind:
        prefixed = {
            "anthropic": {"wire": "anthropic", "url": f"{behind.lab.url}/tenant-a", "key_env": HELD_KEY_ENV},
            "openai": {"wire": "openai", "url": f"{behind.lab.url}/tenant-a/v1", "key_env": HELD_KEY_ENV},
        }
        assert behind.served.reload_settings(lambda: behind.settings(upstreams=prefixed))
        for path in LEAVING:
            assert _raw_post(behind, path, b"{}").startswith(b"HTTP/1.1 400"), path
        assert behind.lab.requests == []


def test_a_key_that_says_so() -> None:
    """A key reaches exactly the further methods and paths that it names."""
    keys = [key_row(ALICE, models=["cheap"], paths=["POST /v1/embeddings", "/v1/files/*"])]
    with Shared(keys=keys) as behind, behind.http(headers={"x-api-key": ALICE}) as client:
        sent = [("POST", "/v1/embeddings"), ("GET", "/v1/files"), ("DELETE", "/v1/files/file-1")]
        refused = [("GET", "/v1/embeddings"), ("POST", "/v1/embeddings/x"), ("GET", "/v1/filesystem"), ("GET", "/v1/x")]
        for method, path in sent:
            assert client.request(method, path).status_code != 403
        for method, path in refused:
            assert client.request(method, path).status_code == 403
        assert [(one.method, one.path) for one in behind.lab.requests] == sent


def test_a_key_without_limits() -> None:
    """A key without limits reaches stateless calls; files, batches and administration need to be named."""
    with Shared(keys=[key_row(ALICE)]) as behind, behind.http(headers={"x-api-key": ALICE}) as client:
        assert client.post("/v1/embeddings", json={}).status_code != 403
        for path in ("/v1/files", "/v1/messages/batches", "/v1/organization/users", "/v1/responses/resp_1"):
            assert client.get(path).status_code == 403
        assert [one.path for one in behind.lab.requests] == ["/v1/embeddings"]


def test_models_that_a_body_names_elsewhere() -> None:
    """A key's models bind the models of fallback lists and of tools, too."""
    elsewhere: tuple[dict[str, Any], ...] = (
        {"models": ["cheap", "opus"]},
        {"tools": [{"type": "advisor", "model": "opus"}]},
    )
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        for path, more in product(PATHS.values(), elsewhere):
            got = behind.post(path, json=asked(**more))
            assert got.status_code == 403
            assert "model 'opus' is not allowed" in got.json()["error"]["message"]
        assert behind.lab.requests == []


def test_token_counts_are_bound_to_models() -> None:
    """A key's models bind token counts, too."""
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        assert behind.post("/v1/messages/count_tokens", json=asked("opus")).status_code == 403
        assert behind.lab.requests == []
        assert behind.post("/v1/messages/count_tokens", json={"messages": []}).status_code == 400
        assert behind.post("/v1/messages/count_tokens", json=asked("cheap")).status_code == 200


def test_further_paths_are_bound_to_models() -> None:
    """A key's models bind a body on a further path, and the upstream gets the model that was checked."""
    with Shared(keys=[key_row(ALICE, models=["cheap"], paths=["/v1/*"])]) as behind:
        for body in (b'{"model":"opus"}', b'{"model":"cheap","model":"opus"}', b'{"model":"cheap","models":["opus"]}'):
            assert behind.post("/v1/embeddings", content=body).status_code == 403
        assert behind.lab.requests == []
        behind.post("/v1/embeddings", content=b'{"model":"opus","model":"cheap"}')
        behind.post("/v1/files", content=b"--x\r\nno JSON")
        assert [one.body for one in behind.lab.requests] == [b'{"model":"cheap"}', b"--x\r\nno JSON"]


def _raw_post(behind: Shared, path: str, body: bytes) -> bytes:
    """Send a request whose path no client library has normalised; return the start of the response."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {ALICE}\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", behind.served.port), timeout=60) as raw:
        raw.sendall(head.encode() + body)
        return raw.recv(65_536)
