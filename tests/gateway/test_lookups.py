"""Model lists and token counts: retried upstream; models fall back to the policy, counts are never estimated."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from rung.gateway.keys import new_key
from tests.gateway.behind import ASK, Behind

COUNT: Any = {"model": "small", "messages": ASK}
BOTH = {"models": ["small", "large"]}


def test_a_count_survives_a_fault() -> None:
    """A token count that fails transiently is retried and comes from the upstream."""
    with Behind([{"fault": "overloaded", "times": 1}]) as behind:
        counted = behind.claude().messages.count_tokens(**COUNT)
        direct = anthropic.Anthropic(base_url=behind.lab.url, api_key="k").messages.count_tokens(**COUNT)
        assert counted.input_tokens == direct.input_tokens


def test_a_count_nobody_can_make_is_an_error() -> None:
    """If the upstream is down, a token count is an error in the API's format that the client may repeat."""
    with Behind() as behind, behind.http() as client:
        nowhere = {"anthropic": "http://127.0.0.1:9", "openai": "http://127.0.0.1:9"}
        assert behind.served.reload_settings(lambda: behind.settings(**nowhere))
        got = client.post("/v1/messages/count_tokens", json=COUNT)
        assert got.status_code == 502
        assert got.json()["type"] == "error"
        assert "x-should-retry" not in got.headers
        assert "input_tokens" not in got.text


def test_models_where_the_upstream_has_none() -> None:
    """The model list comes from the upstream, else from the policy, in a form both SDKs parse."""
    with Behind(policy=BOTH) as behind:
        assert [model.id for model in behind.gpt().models.list()]
        nowhere = {"anthropic": "http://127.0.0.1:9", "openai": "http://127.0.0.1:9"}
        assert behind.served.reload_settings(lambda: behind.settings(**nowhere))
        assert [model.id for model in behind.gpt().models.list()] == ["small", "large"]
        assert [model.id for model in behind.claude().models.list()] == ["small", "large"]
        assert behind.gpt().models.retrieve("large").id == "large"
        with pytest.raises(openai.NotFoundError, match="available: small, large"):
            behind.gpt().models.retrieve("huge")
        assert behind.http().head("/").status_code == 200


def test_models_of_a_key() -> None:
    """A key that is restricted to models lists only these."""
    key, digest = new_key()
    with Behind(keys=[{"hash": digest, "models": ["small"]}]) as behind:
        client = openai.OpenAI(base_url=f"{behind.url}/v1", api_key=key, max_retries=0)
        assert [model.id for model in client.models.list()] == ["small"]
        client.close()
