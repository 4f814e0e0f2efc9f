"""Model lists that name providers: one line is enough, and what it cannot keep is said."""

from __future__ import annotations

import pytest

from rung.core.domain.errors import ConfigError
from rung.core.policy.parser import parse_policy_file
from rung.gateway.settings import GatewaySettings, settings_from
from rung.gateway.upstream.table import UpstreamTable


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def settings(*models: str, **gateway: object) -> GatewaySettings:
    return settings_from(gateway, parse_policy_file({"policy": {"models": list(models)}}))


def test_a_listed_provider_needs_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that only the model list names is an upstream, with its SDK's defaults."""
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-gemini")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    models = ("anthropic/claude-sonnet-4-5", "bedrock/eu.anthropic.claude-sonnet-4-5", "gemini/gemini-3-pro")
    found = settings(*models, anthropic="https://api.anthropic.com")
    assert [(each.name, each.type) for each in found.upstreams] == [
        ("anthropic", "anthropic"), ("bedrock", "bedrock"), ("gemini", "gemini"),
    ]  # fmt: skip
    assert "eu-central-1" in found.upstreams[1].url
    assert found.upstreams[2].key_env == "GEMINI_API_KEY"


def test_a_table_of_that_name_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream that has a table is not added again."""
    monkeypatch.setenv("OTHER", "key")
    table = {"gemini": {"type": "gemini", "url": "http://127.0.0.1:9", "key_env": "OTHER"}}
    found = settings("gemini/gemini-3-pro", upstreams=table)
    assert [each.url for each in found.upstreams if each.name == "gemini"] == ["http://127.0.0.1:9"]


def test_a_listed_provider_without_credentials_is_an_error() -> None:
    """A provider that no client has credentials for must have its own: the error names the variable."""
    with pytest.raises(ConfigError, match="AWS_REGION"):
        settings("bedrock/anthropic.claude-sonnet-4-5")


def test_a_model_for_clients_of_its_own_api_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key of the gateway, a model of another API cannot help: the log says so."""
    found = settings("anthropic/claude-sonnet-4-5", "openai/gpt-5.1")
    warnings = UpstreamTable(found.upstreams).warnings(found.book.default.models)
    assert [line.split()[0] for line in warnings] == ["openai/gpt-5.1"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-gateway")
    assert UpstreamTable(found.upstreams).warnings(found.book.default.models) == []


def test_an_untrusted_name_is_no_provider() -> None:
    """A model name with a slash that names no provider stays a model name."""
    found = settings("meta-llama/llama-3-70b")
    assert [each.name for each in found.upstreams] == ["anthropic", "openai", "gemini"]
