"""Gateway keys: each limit of a key is enforced for real clients before any upstream request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from rung.gateway.keys import hash_key
from rung.gateway.settings import settings_from
from tests.gateway.behind import ASK, Behind, chat, messages, responses

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "rung-a-key-for-tests"  # the same in every process that collects these
DIGEST = hash_key(KEY)
PRICES = {"small": {"input": 0.0, "output": 1_000.0}}
Refused = (anthropic.APIStatusError, openai.APIStatusError)


def claude(behind: Behind, key: str) -> Any:
    with anthropic.Anthropic(base_url=behind.url, api_key=key, max_retries=0) as client:
        return messages(client, stream=False)


def gpt(behind: Behind, key: str) -> Any:
    with openai.OpenAI(base_url=f"{behind.url}/v1", api_key=key, max_retries=0) as client:
        return chat(client, stream=True)


def codex(behind: Behind, key: str) -> Any:
    with openai.OpenAI(base_url=f"{behind.url}/v1", api_key=key, max_retries=0) as client:
        return responses(client, stream=False)


CLIENTS = pytest.mark.parametrize("client", [claude, gpt, codex])


@CLIENTS
@pytest.mark.parametrize(
    ("row", "key", "status", "words"),
    [
        ({}, "rung-wrong", 401, "unknown API key"),
        ({"revoked": True}, KEY, 401, "revoked"),
        ({"expires": "2020-01-01"}, KEY, 401, "key expired on 2020-01-01"),
        ({"models": ["large"]}, KEY, 403, "model 'small' is not allowed for this key; allowed: large"),
        ({"dollars": 0.0}, KEY, 429, "for this key is spent"),
    ],
    ids=["wrong", "revoked", "expired", "model", "spent"],
)
def test_what_a_key_is_not_for(
    client: Callable[[Behind, str], Any], row: dict[str, Any], key: str, status: int, words: str
) -> None:
    """An unknown, revoked, expired, restricted or exhausted key is rejected without an upstream request."""
    with Behind(keys=[{"hash": DIGEST, **row}]) as behind:
        with pytest.raises(Refused, match=words) as caught:
            client(behind, key)
        assert getattr(caught.value, "status_code", 0) == status
        assert behind.lab.requests == []


@CLIENTS
def test_a_good_key(client: Callable[[Behind, str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a valid key, the upstream gets the gateway's key and never the client's."""
    monkeypatch.setenv("HELD", "sk-held")
    with Behind() as behind:
        held = {wire: {"wire": wire, "url": behind.lab.url, "key_env": "HELD"} for wire in ("anthropic", "openai")}
        table = {"upstreams": held, "keys": [{"hash": DIGEST, "project": "site", "expires": "2999-01-01"}]}
        assert behind.served.reload_settings(lambda: settings_from(table))
        client(behind, KEY)
        (asked,) = behind.lab.calls
        assert "sk-held" in asked.headers.get("x-api-key", "") + asked.headers.get("authorization", "")
        assert KEY not in repr(asked.headers)


def test_keys_end_while_it_runs() -> None:
    """A key that is removed from the file, or exhausts its budget, is rejected from the next call on."""
    with Behind(keys=[{"hash": DIGEST, "dollars": 0.05}], prices=PRICES) as behind:
        claude(behind, KEY)
        claude(behind, KEY)
        with pytest.raises(anthropic.RateLimitError, match="for this key is spent"):
            claude(behind, KEY)
        other = {"keys": [{"hash": hash_key("another")}]}
        assert behind.served.reload_settings(lambda: behind.settings(**other))
        with pytest.raises(anthropic.AuthenticationError):
            claude(behind, KEY)


def test_without_a_key() -> None:
    """A request without a key is rejected; health checks need no key."""
    with Behind(keys=[{"hash": DIGEST}]) as behind, behind.http() as client:
        for path in ("/v1/messages", "/v1/chat/completions", "/v1/responses"):
            got = client.post(path, json={"model": "small", "messages": ASK})
            assert got.status_code == 401
            assert "requires one of its own keys" in got.json()["error"]["message"]
        assert client.get("/v1/models").status_code == 401
        assert client.get("/healthz").status_code == 200
