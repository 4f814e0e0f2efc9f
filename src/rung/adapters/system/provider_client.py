"""Minimal client that sends a recorded request to its model, one call at a time."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.usage_formats import anthropic_usage, chat_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.request import Request
    from rung.core.domain.usage import Usage

TIMEOUT_SECONDS: Final = 300.0
DEFAULT_MAX_TOKENS: Final = 4_096  # if the request has no limit and the API requires one
MAX_ERROR_BODY_BYTES: Final = 64 * 1024
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_KEY_REPLACEMENT: Final = "<secret:provider-key>"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an HTTPError: following it would send the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


class MeteredAnswer(NamedTuple):
    """Text of a response, and the tokens that the provider charges."""

    text: str
    usage: Usage


class ProviderClient(NamedTuple):
    """Base URL and API key of one provider API."""

    wire: str  # anthropic or openai
    url: str
    key: str

    def supports(self, request: Request) -> bool:
        """Return whether this client serves the request's model. Names that start with "claude" are Anthropic's."""
        name = request.model.rpartition("/")[2]
        return bool(name) and bool(self.key) and (name.startswith("claude") == (self.wire == "anthropic"))

    def __call__(self, request: Request) -> MeteredAnswer:
        """Send the request and return the response. An HTTP error is raised with its evidence."""
        messages = list(request.messages) or [{"role": "user", "content": request.prompt}]
        body = {"model": request.model, "messages": messages, **dict(request.params)}
        if self.wire == "anthropic":
            body.setdefault("max_tokens", request.max_tokens or DEFAULT_MAX_TOKENS)
            path, headers = "/v1/messages", {"x-api-key": self.key, "anthropic-version": "2023-06-01"}
        else:
            if request.max_tokens is not None:
                body.setdefault("max_completion_tokens", request.max_tokens)
            path, headers = "/v1/chat/completions", {"authorization": f"Bearer {self.key}"}
        answer = self._post(path, body, headers)
        read, usage = anthropic_usage if self.wire == "anthropic" else chat_usage, answer.get("usage")
        return MeteredAnswer(_text(answer, self.wire), read(usage if isinstance(usage, dict) else {}))

    def _post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        url = self.url.rstrip("/").removesuffix("/v1") + path
        request = urllib.request.Request(  # noqa: S310  # a URL that the user has configured
            url, json.dumps(body).encode(), {"content-type": "application/json", **headers}, method="POST"
        )
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                data = response.read(MAX_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            text = clip(self._without_key(_decode(error.read(MAX_ERROR_BODY_BYTES))), MAX_ERROR_BODY_BYTES)
            kept = {name: self._without_key(value) for name, value in error.headers.items()}
            raise AttemptError(text or f"HTTP {error.code}", status=error.code, headers=kept) from None
        if len(data) > MAX_ANSWER_BYTES:
            raise AttemptError(f"answer is larger than {MAX_ANSWER_BYTES} bytes", finding="resource_exhausted")
        try:
            return json.loads(self._without_key(_decode(data)))
        except (ValueError, RecursionError):
            raise AttemptError("the answer is not JSON", finding="malformed_output") from None

    def _without_key(self, text: str) -> str:
        """Return the text without the key, which a provider may echo."""
        return text.replace(self.key, _KEY_REPLACEMENT) if self.key else text


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _text(answer: Any, wire: str) -> str:
    try:
        if wire == "anthropic":
            return "".join(block.get("text", "") for block in answer["content"])
        return str(answer["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError):
        raise AttemptError(
            "the answer has no text", finding="malformed_output", output=clip(str(answer), 500)
        ) from None


def from_environment() -> list[ProviderClient]:
    """Return clients for the providers whose API keys are set in the environment."""
    clients = []
    for wire, name, url in (
        ("anthropic", "ANTHROPIC", "https://api.anthropic.com"),
        ("openai", "OPENAI", "https://api.openai.com"),
    ):
        key = os.environ.get(f"{name}_API_KEY", "")
        if key:
            clients.append(ProviderClient(wire, os.environ.get(f"{name}_BASE_URL") or url, key))
    return clients
