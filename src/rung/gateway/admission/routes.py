"""Routes of the gateway: the normal form of a path, its project and wire format, and the paths that a key may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from rung.gateway.keys import RequestRejected
from rung.gateway.model_listing import is_lookup
from rung.gateway.upstream.headers import is_anthropic_client
from rung.wires.gemini_path import parse_path
from rung.wires.registry import GEMINI, PATHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.gateway.settings import GatewayKey, GatewaySettings
    from rung.wires.registry import WireFormat

MAX_NAME_CHARACTERS: Final = 100  # of a project
_PROJECT_PREFIX: Final = "/p/"
_UNESCAPED: Final = "!$&'()*+,=:@~"  # beside letters, digits and `_.-`; `;` is escaped: it begins parameters
_SEPARATORS: Final = re.compile(rb"[/\\]")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
# Calls that keep no state at the provider, so that tenants who share its key do not meet. The gateway cannot price them.
_STATELESS_POSTS: Final = frozenset(
    {
        "/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/rerank", "/v1/responses/input_tokens",
        "/v1/images/generations", "/v1/images/edits", "/v1/images/variations",
        "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations",
    }
)  # fmt: skip


# The same of Gemini's API: methods of a model.
_STATELESS_METHODS: Final = frozenset({"embedContent", "batchEmbedContents"})
# The APIs of Anthropic, OpenAI and Google beside model calls.
_KNOWN_PATHS: Final = ("/v1beta/*", "/v1alpha/*", "/upload/*", *(
    f"/v1/{name}/*"
    for name in (
        "messages", "chat/completions", "responses", "models", "completions", "embeddings", "moderations", "rerank", "images",
        "audio", "videos", "files", "uploads", "batches", "vector_stores", "assistants", "threads", "conversations",
        "containers", "fine_tuning", "evals", "realtime", "organization", "skills", "usage", "complete",
    )
))  # fmt: skip


class Route(NamedTuple):
    """Destination of a request. The upstream gets the same path that is checked."""

    path: str  # in normal form, without the project
    project: str = ""
    wire: WireFormat | None = None  # of a model call's path


def find_route(raw_path: bytes) -> Route:
    """Return the route of a path as the client sent it."""
    path = raw_path.decode("latin-1")
    wire = PATHS.get(path)
    if wire is not None:
        return Route(path, "", wire)
    path, project = normal_path(path), ""
    if path.startswith(_PROJECT_PREFIX):
        name, _, rest = path.removeprefix(_PROJECT_PREFIX).partition("/")
        path, project = "/" + rest, unquote(name)[:MAX_NAME_CHARACTERS]
    wire = PATHS.get(path)
    if wire is None and "/v1" + path in PATHS:  # the client's base URL lacks /v1
        path = "/v1" + path
        wire = PATHS[path]
    elif wire is None and (method := parse_path(path)) is not None and method.is_generation:
        wire = GEMINI
    return Route(path, project, wire)


def normal_path(path: str) -> str:
    """Return a path without empty and dot segments, each octet written in one way; reject one that leaves its root."""
    segments: list[str] = []
    for raw in path.split("/"):
        segment = unquote_to_bytes(raw)
        if segment == b"..":
            if not segments:
                raise RequestRejected(400, f"invalid path {path[:100]!r}: it leaves its root")
            segments.pop()
        elif segment not in (b"", b"."):
            if _CONTROL.search(segment) or _hides_dots(segment):
                raise RequestRejected(400, f"invalid path {path[:100]!r}: it hides control characters or dot segments")
            segments.append(quote(segment, safe=_UNESCAPED))
    return "/" + "/".join(segments)


def _hides_dots(segment: bytes) -> bool:
    """Return whether an upstream that decodes a segment again could find a dot segment in it."""
    while (decoded := unquote_to_bytes(segment)) != segment:
        segment = decoded
    return any(part in (b".", b"..") for part in _SEPARATORS.split(segment))


def check_path(key: GatewayKey, method: str, route: Route) -> None:
    """Reject a method and path that the key may not use."""
    if (method == "POST" and route.wire is not None) or is_lookup(method, route.path):
        return
    if method == "POST" and _is_stateless(route.path) and not key.is_limited:
        return
    if not any(matches(pattern, method, route.path) for pattern in key.paths):
        raise RequestRejected(
            403,
            f"{method} {route.path[:100]} is not allowed for this key, because the gateway cannot limit its cost or"
            " separate it from other keys; to allow it, add it to the key's `paths` in [[gateway.keys]]",
        )


def _is_stateless(path: str) -> bool:
    parsed = parse_path(path)
    return path in _STATELESS_POSTS if parsed is None else parsed.method in _STATELESS_METHODS


def find_forward(
    settings: GatewaySettings, key: GatewayKey | None, method: str, route: Route, headers: Mapping[bytes, bytes]
) -> str:
    """Return the name of the upstream that the settings forward a path to; empty: that of its API.

    Reject a path that is neither known nor named in the settings: a key that it carries is not meant for a guess.
    """
    for pattern, upstream in settings.forward.items():
        if matches(pattern, method, route.path):
            return upstream
    allowed = _KNOWN_PATHS if key is None else (*_KNOWN_PATHS, *key.paths)
    allowed = (*allowed, "/api/*") if is_anthropic_client(headers) else allowed  # Claude Code calls such paths
    if any(matches(pattern, method, route.path) for pattern in allowed):
        return ""
    raise RequestRejected(
        404,
        f"{method} {route.path[:100]} is no path that the gateway knows; to forward it without recovery, name its upstream in"
        " [gateway.forward]",
    )


def matches(pattern: str, method: str, path: str) -> bool:
    """Return whether a pattern such as `/v1/files/*` or `GET /v1/files` allows a request."""
    allowed_method, _, allowed = pattern.rpartition(" ")
    if allowed_method not in ("", method):
        return False
    below = allowed.removesuffix("/*")
    return path == below or (below != allowed and path.startswith(below + "/"))
