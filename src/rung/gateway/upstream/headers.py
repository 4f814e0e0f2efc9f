"""Headers of upstream requests: which client headers are forwarded, and which credentials an upstream gets."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError, VariableNotSet
from rung.gateway.upstream.settings import AZURE, DROP, GEMINI
from rung.wires.registry import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

# Hop-by-hop headers, and headers that the gateway writes itself.
_DROPPED: Final = frozenset(
    {
        b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"trailers", b"upgrade", b"accept-encoding",
        b"expect",
    }
)  # fmt: skip
OWN_PREFIX: Final = b"x-rung-"
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie"})
_CREDENTIAL_ENDINGS: Final = (b"-key", b"-token", b"-secret", b"-password", b"-authorization", b"-signature")
_NOT_CREDENTIALS: Final = frozenset({b"idempotency-key", b"x-idempotency-key"})
_NO_COMPRESSION: Final = (b"accept-encoding", b"identity")
_KEY_HEADERS: Final = {ANTHROPIC: "x-api-key", AZURE: "api-key", GEMINI: "x-goog-api-key"}


def headers_for_upstream(headers: Headers, upstream: UpstreamSettings) -> Headers:
    """Return the headers of a client for an upstream, with the credentials that its settings grant it.

    One of several keys is added when the request is sent: see `CallKeys`.
    """
    named = connection_named(headers)
    forwarded = [
        header
        for header in headers
        if header[0] not in _DROPPED and not header[0].startswith(OWN_PREFIX) and header[0] not in named
    ]
    if upstream.client_credentials == DROP:
        forwarded = [header for header in forwarded if not _is_credential(header[0])]
    if upstream.key_env:
        forwarded.append(credential_header(upstream, upstream_key(upstream)))
    forwarded.append(_NO_COMPRESSION)
    return forwarded


def own_headers(upstream: UpstreamSettings) -> Headers:
    """Return the headers of a request to another API than the client's: its headers and its key are not meant for it."""
    headers = [(b"content-type", b"application/json"), (b"user-agent", b"rung"), _NO_COMPRESSION]
    return [*headers, credential_header(upstream, upstream_key(upstream))] if upstream.key_env else headers


def without_credentials(headers: Headers) -> Headers:
    """Return the headers of a client that describe its request: without credentials, and without those of the connection."""
    named = connection_named(headers)
    return [
        header
        for header in headers
        if header[0] not in _DROPPED and header[0] not in named and not _is_credential(header[0])
        and not header[0].startswith(OWN_PREFIX)
    ]  # fmt: skip


def has_credentials(headers: Headers) -> bool:
    """Return whether a client sends credentials."""
    return any(_is_credential(name) for name, _ in headers)


def is_anthropic_client(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether headers are those of Anthropic's API; its key must not go to the owner of another API."""
    return (
        b"x-api-key" in headers
        or headers.get(b"authorization", b"").startswith(b"Bearer sk-ant-")
        or any(name.startswith(b"anthropic-") for name in headers)
    )


def connection_named(headers: Headers) -> tuple[bytes, ...]:
    """Return the names of the headers that a Connection header declares as hop-by-hop."""
    for name, value in headers:
        if name == b"connection" and value.lower() not in (b"keep-alive", b"close"):
            values = b",".join(value for name, value in headers if name == b"connection")
            return tuple(value.strip() for value in values.lower().split(b","))
    return ()


@lru_cache(maxsize=512)  # clients share a small set of header names
def _is_credential(name: bytes) -> bool:
    name = name.lower().replace(b"_", b"-")
    return name in _CREDENTIALS or ((b"-" + name).endswith(_CREDENTIAL_ENDINGS) and name not in _NOT_CREDENTIALS)


def upstream_key(upstream: UpstreamSettings) -> bytes:
    """Return the gateway's own key for an upstream; empty if it has none."""
    return os.environ.get(upstream.key_env, "").encode("latin-1", "replace") if upstream.key_env else b""


def has_own_key(upstream: UpstreamSettings) -> bool:
    """Return whether the gateway has a key of its own for an upstream."""
    return any(os.environ.get(name) for name in upstream.key_names)


def credential_header(upstream: UpstreamSettings, key: bytes) -> tuple[bytes, bytes]:
    """Return the header by which an upstream gets a key."""
    name = upstream.key_header.lower() or _KEY_HEADERS.get(upstream.type or upstream.wire, "authorization")
    return name.encode(), (b"Bearer " if name == "authorization" else b"") + key


def check_keys(upstreams: Iterable[UpstreamSettings]) -> None:
    """Raise ConfigError if a key of an upstream is missing or cannot be sent in a header; do not show the key."""
    for upstream in upstreams:
        setting = f"gateway.upstreams.{upstream.name}.{'key_envs' if upstream.key_envs else 'key_env'}"
        for name in upstream.key_names:
            key = os.environ.get(name, "")
            if not key:
                raise VariableNotSet(setting, name)
            if not key.isascii() or not key.isprintable() or " " in key:
                allowed = "the name of a variable whose value is ASCII, without spaces and line breaks"
                raise ConfigError(setting, name, allowed)
