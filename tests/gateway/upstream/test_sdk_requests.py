"""The requests of each provider are those of its own SDK: path, query, credentials and JSON body."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AnthropicBedrock, AnthropicVertex
from google.genai import Client
from google.oauth2.credentials import Credentials
from openai import AzureOpenAI, OpenAI

from rung.gateway.upstream.make_provider import make_provider
from tests.gateway.upstream.requests_seen import send_to, sent_by, sent_by_rung, upstream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.upstream.requests_seen import SeenRequest

KEY = "held-by-the-gateway"
MESSAGES: Any = [{"role": "user", "content": "hi"}]
BODY: dict[str, Any] = {"max_tokens": 5, "messages": MESSAGES}
BETA = [(b"anthropic-beta", b"b-1,b-2"), (b"anthropic-version", b"2023-06-01"), (b"x-api-key", b"of-the-client")]
VERTEX_BETAS = ("interleaved-thinking-2025-05-14", "web-search-2025-03-05")  # of those that Vertex accepts
COMPARED = (
    "authorization",
    "api-key",
    "x-goog-api-key",
    "x-api-key",
    "content-type",
    "anthropic-beta",
    "anthropic-version",
)


def assert_same(ours: SeenRequest, theirs: SeenRequest, **added: Any) -> None:
    """`added` are the members of the body that the SDK does not send."""
    assert (ours.method, ours.target) == (theirs.method, theirs.target)
    assert ours.json == {**theirs.json, **added}
    for name in COMPARED:
        assert ours.headers.get(name) == theirs.headers.get(name), name


CLAUDE_MODELS = [
    "anthropic.claude-x-20250929-v1:0",
    "us.anthropic.claude-x-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc",
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", CLAUDE_MODELS)
def test_bedrock(model: str, stream: bool) -> None:
    """A call of AnthropicBedrock with the version that all models have; betas are in the header and in the body."""

    def call(url: str) -> object:
        client: Any = AnthropicBedrock(aws_region="us-east-1", api_key=KEY, base_url=url, max_retries=0)
        version = {"anthropic_version": "bedrock-2023-05-31"}
        return client.beta.messages.create(model=model, stream=stream, betas=["b-1", "b-2"], extra_body=version, **BODY)

    body = {"model": model, "stream": stream, **BODY}
    ours = sent_by_rung("messages", body, BETA, type="bedrock", region="us-east-1", key_env="UPSTREAM_KEY")
    assert_same(ours, sent_by(call))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("base", ["", "/v1"])
def test_claude_on_vertex(base: str, stream: bool) -> None:
    """A call of AnthropicVertex, whether the URL ends with the version or not; betas are in the body, too.

    Vertex reads some betas from the header alone, others from the body alone.
    """

    def call(url: str) -> object:
        client: Any = AnthropicVertex(
            region="us-east5", project_id="p-1", access_token=KEY, base_url=f"{url}/v1", max_retries=0
        )
        version = {"anthropic_version": "vertex-2023-10-16"}
        return client.beta.messages.create(
            model="claude-x@20250929", stream=stream, betas=list(VERTEX_BETAS), extra_body=version, **BODY
        )

    beta = [(b"anthropic-beta", ",".join(VERTEX_BETAS).encode()), *BETA[1:]]
    body = {"model": "claude-x@20250929", "stream": stream, **BODY}
    row = {"type": "vertex", "region": "us-east5", "project": "p-1", "key_env": "UPSTREAM_KEY", "base": base}
    assert_same(sent_by_rung("messages", body, beta, **row), sent_by(call), anthropic_beta=list(VERTEX_BETAS))


def call_azure(wire: str, model: str, **options: Any) -> Callable[[str], object]:
    def call(url: str) -> object:
        client = AzureOpenAI(azure_endpoint=url, max_retries=0, **options)
        if wire == "chat":
            return client.chat.completions.create(model=model, messages=MESSAGES)
        return client.responses.create(model=model, input="hi")

    return call


OPENAI_BODIES: dict[str, dict[str, Any]] = {"chat": {"messages": MESSAGES}, "responses": {"input": "hi"}}


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("base", ["", "/openai"])
def test_azure_with_an_api_version(wire: str, base: str) -> None:
    """A call of AzureOpenAI: the deployment is in the path of Chat Completions, and in the body."""
    theirs = sent_by(call_azure(wire, "my deployment", api_version="2024-10-21", api_key=KEY))
    body = {"model": "gpt-x", **OPENAI_BODIES[wire]}
    ours = sent_by_rung(
        wire, body, type="azure", api_version="2024-10-21", key_env="UPSTREAM_KEY",
        models={"gpt-x": "my deployment"}, base=base,
    )  # fmt: skip
    assert_same(ours, theirs)


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("base", ["", "/openai", "/openai/v1"])
def test_azure_without_an_api_version(wire: str, base: str) -> None:
    """A call of OpenAI to the v1 paths, whichever part of them is in the URL; the key has the header of Azure."""

    def call(url: str) -> object:
        client = OpenAI(base_url=f"{url}/openai/v1/", api_key=KEY, max_retries=0)
        if wire == "chat":
            return client.chat.completions.create(model="gpt-x", messages=MESSAGES)
        return client.responses.create(model="gpt-x", input="hi")

    theirs = sent_by(call)
    ours = sent_by_rung(
        wire, {"model": "gpt-x", **OPENAI_BODIES[wire]}, type="azure", key_env="UPSTREAM_KEY", base=base
    )
    assert (ours.method, ours.target, ours.json) == (theirs.method, theirs.target, theirs.json)
    assert (ours.headers["api-key"], ours.headers.get("authorization")) == (KEY, None)


def test_azure_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint, key and version of the variables that AzureOpenAI reads give its request."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")

    def ask(url: str) -> None:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", url)
        provider = make_provider(upstream_of(type="azure"))
        asyncio.run(send_to(provider, "chat", {"model": "gpt-x", "messages": MESSAGES}))

    theirs = sent_by(call_azure("chat", "gpt-x"))
    assert_same(sent_by(ask), theirs)


def call_genai(client: Client, *, stream: bool) -> object:
    if stream:
        return list(client.models.generate_content_stream(model="gemini-x", contents="hi"))
    return client.models.generate_content(model="gemini-x", contents="hi")


GEMINI_BODY = {"contents": [{"parts": [{"text": "hi"}], "role": "user"}]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("base", ["", "/v1beta"])
def test_gemini(base: str, stream: bool) -> None:
    """A call of google-genai with a key; the key of a client, also one in its query, is not forwarded."""

    def call(url: str) -> object:
        options = {"base_url": url, "api_version": "v1beta"}
        return call_genai(Client(api_key=KEY, http_options=options), stream=stream)  # type: ignore[arg-type]

    arguments = {"model": "gemini-x", "stream": stream, "target": "/v1beta/models/other:generateContent?key=secret"}
    ours = sent_by_rung("gemini", GEMINI_BODY, BETA, type="gemini", key_env="UPSTREAM_KEY", base=base, call=arguments)
    assert_same(ours, sent_by(call))


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_on_vertex(stream: bool) -> None:
    """A call of google-genai to Vertex AI with a project and a location."""

    def call(url: str) -> object:
        options = {"base_url": url, "api_version": "v1"}
        credentials = Credentials(token=KEY)  # type: ignore[no-untyped-call]
        client = Client(
            vertexai=True, project="p-1", location="us-central1", credentials=credentials,
            http_options=options,  # type: ignore[arg-type]
        )  # fmt: skip
        return call_genai(client, stream=stream)

    row: dict[str, Any] = {"type": "vertex", "region": "us-central1", "project": "p-1", "key_env": "UPSTREAM_KEY"}
    arguments = {"model": "gemini-x", "stream": stream}
    assert_same(sent_by_rung("gemini", GEMINI_BODY, call=arguments, **row), sent_by(call))
