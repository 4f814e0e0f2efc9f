"""Types of upstreams: what each speaks, which defaults it has, and which credentials it gets."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from rung.core.domain.errors import AttemptError, ConfigError
from rung.gateway.settings import settings_from
from rung.gateway.upstream.make_provider import make_provider
from rung.gateway.upstream.table import UpstreamTable
from tests.gateway.upstream.requests_seen import sent_by_rung, upstream_of

AWS = {"type": "bedrock", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("row", "model", "wires"),
    [
        ({"type": "anthropic"}, "claude-x", ("messages",)),
        ({"wire": "anthropic", "url": "http://x"}, "claude-x", ("messages",)),
        ({"type": "openai"}, "gpt-x", ("responses", "chat")),
        ({"wire": "openai", "url": "http://x/v1"}, "m", ("chat", "responses")),
        ({"wire": "openai", "url": "http://x/v1", "apis": ["chat"]}, "m", ("chat",)),
        ({"type": "azure", "url": "http://x", "key_env": "K"}, "m", ("responses", "chat")),
        ({"type": "azure", "url": "http://x", "key_env": "K", "apis": ["chat"]}, "m", ("chat",)),
        (AWS, "us.anthropic.claude-x-v1:0", ("messages",)),
        (AWS, "arn:aws:bedrock:us-east-1:1:inference-profile/x", ("messages",)),
        (AWS, "amazon.nova-pro-v1:0", ()),
        (AWS | {"models": {"fast": "anthropic.claude-x"}}, "fast", ("messages",)),
        ({"type": "vertex"}, "claude-x@1", ("messages",)),
        ({"type": "vertex"}, "gemini-x", ("gemini",)),
        ({"type": "gemini", "key_env": "K"}, "gemini-x", ("gemini",)),
    ],
)
def test_wires(row: dict[str, Any], model: str, wires: tuple[str, ...]) -> None:
    """Each type speaks certain wire formats for a model, the best one first."""
    provider = make_provider(upstream_of(**row))
    assert provider.wires_for(model) == wires
    assert provider.wire_for(model) == (wires[0] if wires else "")


def test_direct_requests() -> None:
    """A request needs no preparation if the upstream takes it as it is."""
    plain = make_provider(upstream_of(wire="openai", url="http://x", apis=["chat"]))
    renamed = make_provider(upstream_of(wire="openai", url="http://x", models={"a": "b"}))
    assert plain.is_direct("chat", "a")
    assert not plain.is_direct("responses", "a")
    assert not plain.is_direct("messages", "a")
    assert renamed.is_direct("chat", "b")
    assert not renamed.is_direct("chat", "a")
    for row in (AWS, {"type": "vertex"}, {"type": "azure", "url": "http://x", "key_env": "K"}):
        assert not make_provider(upstream_of(**row)).is_direct("messages", "claude-x")


@pytest.mark.parametrize(
    ("row", "url"),
    [
        ({"type": "anthropic"}, "https://api.anthropic.com"),
        ({"type": "openai"}, "https://api.openai.com"),
        ({"type": "gemini", "key_env": "K"}, "https://generativelanguage.googleapis.com"),
        (AWS, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ({"type": "bedrock", "region": "cn-north-1"}, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ({"type": "vertex"}, "https://aiplatform.googleapis.com"),
        ({"type": "vertex", "region": "eu"}, "https://aiplatform.eu.rep.googleapis.com"),
        ({"type": "vertex", "region": "us-east5"}, "https://us-east5-aiplatform.googleapis.com"),
    ],
)
def test_urls(row: dict[str, Any], url: str) -> None:
    """Without a URL, the provider's own is used, for its region."""
    assert upstream_of(**row).url == url


def test_regions_and_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions and projects come from the settings, the URL, or the variables of the SDKs, in this order."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    assert upstream_of(type="bedrock").region == "eu-west-3"
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert upstream_of(type="bedrock").region == "eu-west-1"
    url = "https://vpce-1.bedrock-runtime.us-west-2.vpce.amazonaws.com"
    assert upstream_of(type="bedrock", url=url).region == "us-west-2"
    assert upstream_of(type="bedrock", url=url, region="us-east-2").region == "us-east-2"
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p-env")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "us-east5")
    assert (upstream_of(type="vertex").project, upstream_of(type="vertex").region) == ("p-env", "us-east5")
    assert upstream_of(type="vertex", project="p").project == "p"


@pytest.mark.parametrize(
    ("row", "variable"),
    [
        ({"type": "anthropic"}, "ANTHROPIC_API_KEY"),
        ({"type": "openai"}, "OPENAI_API_KEY"),
        ({"type": "openai", "url": "https://eu.api.openai.com/v1"}, "OPENAI_API_KEY"),
        ({"type": "azure", "url": "https://r.openai.azure.com"}, "AZURE_OPENAI_API_KEY"),
        (AWS, "AWS_BEARER_TOKEN_BEDROCK"),
        ({"type": "gemini"}, "GEMINI_API_KEY"),
        ({"type": "gemini"}, "GOOGLE_API_KEY"),
    ],
)
def test_keys_of_the_environment(monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], variable: str) -> None:
    """An upstream with a type uses the variable of the provider's SDK, unless `key_env` names another one."""
    monkeypatch.setenv(variable, "key")
    upstream = upstream_of(**row)
    assert (upstream.key_env, upstream.client_credentials) == (variable, "drop")
    assert upstream.account == variable
    assert upstream_of(**row, key_env="OTHER").key_env == "OTHER"


def test_a_key_for_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's key of the environment is not sent to another host."""
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "key")
    assert not upstream_of(type="openai", url="https://api.openai.com.example/v1").key_env
    assert not upstream_of(**AWS, url="https://proxy.example").key_env
    assert not upstream_of(type="azure", url="https://proxy.example").key_env
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    assert upstream_of(type="azure").key_env == "AZURE_OPENAI_API_KEY"
    assert not upstream_of(type="azure", url="https://other.openai.azure.com").key_env
    assert not upstream_of(type="gemini", url="https://proxy.example").key_env


def test_settings_without_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream without a type gets no key of the environment: the client's credentials are forwarded."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    for settings in (
        settings_from({}),
        settings_from({"anthropic": "https://api.anthropic.com"}),
        settings_from({"upstreams": {"x": {"wire": "openai", "url": "https://api.openai.com"}}}),
    ):
        for upstream in settings.upstreams:
            assert (upstream.key_env, upstream.client_credentials, upstream.account) == ("", "forward", "")
            assert upstream.type == upstream.wire
    forwarding = upstream_of(type="anthropic", client_credentials="forward")
    assert (forwarding.key_env, forwarding.client_credentials) == ("", "forward")


def test_clouds_and_clients() -> None:
    """An upstream of a cloud gets no credentials of clients, has an account of its own, and is the home of none."""
    settings = settings_from(
        {
            "upstreams": {
                "b": AWS,
                "v": {"type": "vertex"},
                "a": {"wire": "anthropic", "url": "https://api.anthropic.com"},
            }
        }
    )
    assert [each.client_credentials for each in settings.upstreams] == ["drop", "drop", "forward"]
    assert len({each.account for each in settings.upstreams}) == 3
    assert [each.wire for each in settings.upstreams] == ["anthropic", "", "anthropic"]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"url": "http://x"}, "type"),
        ({"wire": "openai"}, "url"),
        ({"type": "smtp"}, "type"),
        ({"type": "bedrock"}, "region"),
        ({"type": "bedrock", "region": "no such region"}, "region"),
        ({"type": "azure"}, "url"),
        ({"type": "openai", "wire": "anthropic"}, "wire"),
        ({"type": "openai", "apis": ["messages"]}, "apis[0]"),
        ({"type": "openai", "models": {"a": 1}}, "models.a"),
        (AWS | {"client_credentials": "forward"}, "client_credentials"),
        ({"type": "vertex", "client_credentials": "forward"}, "client_credentials"),
        ({"type": "gemini", "key_env": "K", "client_credentials": "forward"}, "client_credentials"),
    ],
)
def test_bad_settings(row: dict[str, Any], key: str) -> None:
    """A setting that is missing or wrong is named with its full key."""
    with pytest.raises(ConfigError) as caught:
        upstream_of(**row)
    assert caught.value.key == f"gateway.upstreams.x.{key}"


def test_a_region_for_signatures() -> None:
    """A URL without a region needs the setting: signatures contain it."""
    with pytest.raises(ConfigError) as caught:
        make_provider(upstream_of(type="bedrock", url="https://proxy.example"))
    assert caught.value.key == "gateway.upstreams.x.region"


@pytest.mark.parametrize(
    ("row", "package", "extra"),
    [
        (AWS, "botocore", "bedrock"),
        ({"type": "vertex"}, "google.auth", "vertex"),
        ({"type": "azure", "url": "https://r.openai.azure.com"}, "azure", "azure"),
    ],
)
def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], package: str, extra: str) -> None:
    """A missing package is a settings error that names the command which installs it."""
    upstream = upstream_of(**row)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.setattr(sys, "meta_path", [_Hidden(package), *sys.meta_path])
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError) as caught:
        make_provider(upstream)
    assert caught.value.key == "gateway.upstreams.x.type"
    assert f"pip install 'rung[{extra}]'" in str(caught.value)


class _Hidden:
    """Import finder that does not find one package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._package or name.startswith(f"{self._package}."):
            raise ModuleNotFoundError(name)


def test_static_keys_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider with a key imports no package of a cloud."""
    monkeypatch.setenv("K", "key")
    for row in ({"type": "azure", "url": "http://x"}, {"type": "gemini"}, {"type": "vertex", "project": "p"}):
        make_provider(upstream_of(**row, key_env="K"))


def test_providers_survive_a_reload() -> None:
    """Settings that are loaded again keep the providers, and so the tokens, of unchanged upstreams."""
    aws, other = upstream_of(**AWS), replace(upstream_of(type="vertex"), name="other")
    first = UpstreamTable([aws])
    again = UpstreamTable([aws, other], first)
    assert again.provider(aws) is first.provider(aws)
    assert again.provider(other).upstream is other
    changed = replace(aws, region="us-east-2")
    assert UpstreamTable([changed], first).provider(changed) is not first.provider(aws)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_bodies_that_are_not_json(body: bytes) -> None:
    """A body that has to be rewritten and is no JSON object fails the attempt."""
    provider = make_provider(upstream_of(**AWS, key_env="K"))
    with pytest.raises(AttemptError):
        asyncio.run(
            provider.prepare(wire="messages", model="claude-x", stream=False, target="/", headers=[], body=body)
        )


@pytest.mark.parametrize("header", [[], [(b"anthropic-version", b"2026-10-21")]])
def test_versions(header: list[tuple[bytes, bytes]]) -> None:
    """The version that all models have is asked for, whatever the client's is; one in the body stays."""
    body = {"model": "claude-x", "messages": []}
    clouds: list[tuple[dict[str, Any], str]] = [
        ({"type": "bedrock", "region": "us-east-1"}, "bedrock-2023-05-31"),
        ({"type": "vertex", "project": "p"}, "vertex-2023-10-16"),
    ]
    for row, version in clouds:
        seen = sent_by_rung("messages", body, header, key_env="UPSTREAM_KEY", **row)
        own = sent_by_rung("messages", body | {"anthropic_version": "v"}, header, key_env="UPSTREAM_KEY", **row)
        assert (seen.json["anthropic_version"], own.json["anthropic_version"]) == (version, "v")
        assert "anthropic-version" not in seen.headers


def test_betas_of_the_settings() -> None:
    """Only the betas that the settings allow are asked for; none of them leaves no empty header."""
    headers = [(b"anthropic-beta", b"a, b"), (b"anthropic-beta", b"c")]
    body = {"model": "claude-x", "messages": []}
    row = {"type": "bedrock", "region": "us-east-1", "key_env": "UPSTREAM_KEY"}
    some = sent_by_rung("messages", body, headers, betas=["c", "b"], **row)
    none = sent_by_rung("messages", body, headers, betas=[], **row)
    assert (some.json["anthropic_beta"], some.headers["anthropic-beta"]) == (["b", "c"], "b,c")
    assert "anthropic_beta" not in none.json
    assert "anthropic-beta" not in none.headers


@pytest.mark.parametrize(
    ("wire", "row", "target", "names"),
    [
        ("messages", {"type": "anthropic"}, "/v1/messages", {"anthropic-version", "x-api-key"}),
        ("chat", {"type": "openai"}, "/v1/chat/completions", {"openai-beta", "authorization"}),
        ("responses", {"type": "openai"}, "/v1/responses", {"openai-beta", "authorization"}),
    ],
)
def test_translated_requests(wire: str, row: dict[str, str], target: str, names: set[str]) -> None:
    """A request of another wire gets the path of this one, and only the headers that its API knows."""
    headers = [(b"openai-beta", b"x"), (b"x-goog-api-client", b"x")]
    call = {"target": "/v1beta/models/x:generateContent?key=k", "model": "m"}
    seen = sent_by_rung(wire, {"model": "m"}, headers, key_env="UPSTREAM_KEY", call=call, **row)
    assert seen.target == target
    watched = {"anthropic-version", "x-api-key", "openai-beta", "authorization", "x-goog-api-client"}
    assert watched & set(seen.headers) == names


def test_the_name_of_a_model() -> None:
    """The upstream's name of a model replaces it in the body; the query of a client's own path stays."""
    seen = sent_by_rung(
        "messages", {"model": "claude-x", "stream": True}, type="anthropic", key_env="UPSTREAM_KEY",
        models={"claude-x": "claude-x-mine"}, call={"target": "/v1/messages?beta=true"},
    )  # fmt: skip
    assert seen.target == "/v1/messages?beta=true"
    assert seen.json == {"model": "claude-x-mine", "stream": True}
    unchanged = json.dumps({"model": "other"}).encode()
    assert sent_by_rung("messages", {"model": "other"}, type="anthropic", key_env="UPSTREAM_KEY").body == unchanged
