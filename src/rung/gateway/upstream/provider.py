"""Port to the provider of an upstream: which wire formats it speaks, and the URL, headers and body of each request.

The direct providers (anthropic, openai) take a client's request as it is. The others get another path, another body or
credentials that change. Nothing here sends a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.failures import Kind
from rung.gateway.http.url import parse_url
from rung.wires.wire_json import load_json

if TYPE_CHECKING:
    from typing import Any

    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

# Names of wire formats, as in the registry.
MESSAGES_API, CHAT_API, RESPONSES_API, GEMINI_API = "messages", "chat", "responses", "gemini"
PATH_OF_WIRE: Final = {MESSAGES_API: "/v1/messages", CHAT_API: "/v1/chat/completions", RESPONSES_API: "/v1/responses"}
_FAMILY_PREFIX: Final = {
    MESSAGES_API: b"anthropic-",
    CHAT_API: b"openai-",
    RESPONSES_API: b"openai-",
    GEMINI_API: b"x-goog-",
}
_FAMILY_PREFIXES: Final = tuple(set(_FAMILY_PREFIX.values()))


class ProviderRequest(NamedTuple):
    """Request for an upstream: a POST of the body to the target, below the upstream's base URL."""

    target: str
    headers: Headers
    body: bytes


class UpstreamProvider(ABC):
    """Provider of one upstream. It lives as long as its settings, and keeps their tokens."""

    def __init__(self, upstream: UpstreamSettings) -> None:
        self.upstream = upstream
        self._names = dict(upstream.models)

    def model_name(self, model: str) -> str:
        """Return the name of a model at this upstream."""
        return self._names.get(model, model)

    def known_name(self, model: str) -> str:
        """Return the name that tells what a model accepts: the upstream's name may be a deployment or a profile."""
        return model

    def version_prefix(self, version: str) -> str:
        """Return the path of an API version; empty if the upstream's URL ends with it."""
        path = f"/{version}"
        return "" if parse_url(self.upstream.url).path.endswith(path) else path

    @abstractmethod
    def wires_for(self, model: str) -> tuple[str, ...]:
        """Return the wire formats that the upstream speaks for a model, the best first; empty: it has no such model."""

    def wire_for(self, model: str) -> str:
        """Return the best wire format for a model; empty if there is none."""
        return next(iter(self.wires_for(model)), "")

    def is_direct(self, wire: str, model: str) -> bool:  # noqa: ARG002  # for those that override it
        """Return whether a client's request in this format can be sent without `prepare` and `wrap`."""
        return False

    @abstractmethod
    async def prepare(
        self, *, wire: str, model: str, stream: bool, target: str, headers: Headers, body: bytes
    ) -> ProviderRequest:
        """Return the request for a body in a wire format that the upstream speaks.

        `target` is the client's. `headers` are those of `headers_for_upstream`. Raise AttemptError, or an error of the
        credentials' library, if there are no credentials or they cannot be refreshed. Both are failed attempts.
        """

    def wrap(self, response: UpstreamResponse) -> UpstreamResponse:
        """Return the response in the wire format of the request."""
        return response


def family_headers(headers: Headers, wire: str) -> Headers:
    """Return the headers without those that only another API understands, such as the betas of Anthropic."""
    own = _FAMILY_PREFIX[wire]
    return [each for each in headers if each[0].startswith(own) or not each[0].startswith(_FAMILY_PREFIXES)]


def with_header(headers: Headers, name: bytes, value: bytes) -> Headers:
    """Return the headers with this one in place of any other of its name."""
    return [*(each for each in headers if each[0] != name), (name, value)]


def parse_request(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a request; raise AttemptError if it is none."""
    try:
        parsed = load_json(body)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise AttemptError("request body is not a JSON object", finding=Kind.INVALID_REQUEST)
    return parsed


def require_package(package: str, extra: str, upstream: UpstreamSettings) -> None:
    """Raise ConfigError if the package of an extra is not installed; do not import it."""
    from importlib.util import find_spec

    try:
        is_installed = find_spec(package) is not None
    except ModuleNotFoundError:  # a parent of it is missing
        is_installed = False
    if not is_installed:
        allowed = f"used with the package of its credentials: pip install 'rung[{extra}]'"
        raise ConfigError(f"gateway.upstreams.{upstream.name}.type", upstream.type, allowed)
